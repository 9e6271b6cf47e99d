"""The rules for the sandbox of macOS, as text: it cannot be run elsewhere."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.sandbox import Backend, Profile, SandboxState, differences
from treadle.workspace.sandbox.present import Present
from treadle.workspace.sandbox.seatbelt import profile_text
from treadle.workspace.sandbox.wrap import wrap_command

PROFILE = Profile(root="/Users/a/w", roots=("/Users/a/more",), tmp="/Users/a/d/tmp", private="/Users/a/d")
PRESENT = Present(
    protected=("/Users/a/w/.git", "/Users/a/w/AGENTS.md"),
    masked_files=("/Users/a/w/.env",),
    hidden=("/Users/a",),
    readable=("/Users/a/.cargo/bin",),
    writable=("/opt/out",),
)


def at(text: str, rule: str) -> int:
    assert rule in text, rule
    return text.index(rule)


def test_later_rules_win_so_the_narrow_ones_come_last() -> None:
    text = profile_text(PROFILE, PRESENT)
    order = [
        at(text, "(allow default)"),
        at(text, "(deny file-write*)"),
        at(text, '(deny file-read* (subpath "/Users/a") (subpath "/private/tmp")'),
        at(text, '(allow file-read* (subpath "/Users/a/w") (subpath "/Users/a/more") (subpath "/Users/a/.cargo/bin")'),
        at(text, '(allow file-write* (subpath "/Users/a/w") (subpath "/Users/a/more") (subpath "/opt/out")'),
        at(text, '(deny file-write* (subpath "/Users/a/w/.git") (subpath "/Users/a/w/AGENTS.md"))'),
        at(text, '(deny file-read* file-write* (subpath "/Users/a/w/.env"))'),
        at(text, "(deny network*)"),
    ]
    assert order == sorted(order)


def test_a_workspace_that_must_not_change_and_a_network_are_rules_of_their_own() -> None:
    text = profile_text(replace(PROFILE, change_root=False, network=True), replace(PRESENT, writable=()))
    assert '(allow file-write* (subpath "/Users/a/d/tmp"))' in text
    assert "(deny network*)" not in text
    assert "(deny network-outbound (remote unix-socket))" in text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_no_name_ends_its_own_string(name: str) -> None:
    text = profile_text(replace(PROFILE, root=f"/{name}"), Present())
    quoted = text.split('(allow file-read* (subpath "', 1)[1]
    read, escaped = "", False
    for char in quoted:
        if not escaped and char == '"':
            break
        if escaped or char != "\\":
            read += char
        escaped = char == "\\" and not escaped
    assert read == f"/{name}"


def test_the_command_line_runs_it_with_a_private_folder() -> None:
    inner = wrap_command(PROFILE, PRESENT, SandboxState(backend=Backend.SEATBELT), tasks=0).inner
    assert inner[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert inner[-3:] == ("/usr/bin/env", "TMPDIR=/Users/a/d/tmp", "XDG_CACHE_HOME=/Users/a/d/tmp/cache")


def test_each_backend_says_what_it_cannot_do() -> None:
    assert differences(Backend.BUBBLEWRAP) == ()
    for backend in (Backend.LANDLOCK, Backend.SEATBELT):
        assert all(sentence.endswith(".") for sentence in differences(backend))
        assert len(differences(backend)) > 3
