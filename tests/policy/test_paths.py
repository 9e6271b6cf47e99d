"""Where paths lead: spelled in any way, through links, and for names that do not exist yet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.name_patterns import pattern_hits
from treadle.policy.path_check import Where, check_path
from treadle.protocol.permissions import Mode
from treadle.protocol.protected_names import control_name, secret_name

READ, WRITE, LIST = PathOp.READ, PathOp.WRITE, PathOp.LIST


def _where(path: str, op: PathOp, files: MemoryView | None = None) -> Where:
    return check_path(path, op, ROOT, context(files=files)).where


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", ".GIT/config", "sub/.git", ".git./config", ".git /config", ".git::$INDEX_ALLOCATION/x",
     "git~1/config", ".git\\config", ".g\u0131t/../.git/x", "\uff0egit/config", ".treadle/rules.toml", ".mcp.json",
     ".vscode/tasks.json", "x.code-workspace", ".husky/pre-push", ".github/workflows/ci.yml", "AGENTS.md",
     "docs/CLAUDE.md",
     ".npmrc", ".yarnrc.yml", ".pre-commit-config.yaml", ".envrc", ".bashrc", ".env", "sitecustomize.py", "~/.profile",
     "file:///home/user/ws/.git/config", f"{HOME}/.config/fish/config.fish", f"{HOME}/Library/LaunchAgents/x.plist"],
)  # fmt: skip
def test_control_files_are_protected_from_writing_before_they_exist(path: str) -> None:
    assert _where(path, WRITE) is Where.PROTECTED


@pytest.mark.parametrize(
    "path",
    [".env", ".ENV", ".env.production", "a/.env.local", "id_rsa", "server.key", "cert.pem", ".netrc",
     "terraform.tfstate",
     ".git-credentials", "~/.ssh/config", "~/.aws/credentials", "~/.config/gh/hosts.yml", "/proc/1/environ", "/dev/sda",
     "/etc/shadow", "~/.bash_history", "service-account-prod.json"],
)  # fmt: skip
def test_secrets_are_protected_from_reading(path: str) -> None:
    assert _where(path, READ) is Where.PROTECTED


@pytest.mark.parametrize(
    "path",
    [".env.example", ".env.sample", ".env.template", "environment.py", "id_rsa.pub", ".gitignore", ".github/README.md",
     "src/credentials/view.py", "keys.py", "package.json", "..x/y"],
)  # fmt: skip
def test_ordinary_names_are_not_protected(path: str) -> None:
    assert (_where(path, READ), _where(path, WRITE)) == (Where.INSIDE, Where.INSIDE)


@pytest.mark.parametrize("path", ["", "a\0b", "a\nb", "x" * 300, "a/" * 3000, "\ud800"])
def test_a_path_of_no_good_form_is_outside(path: str) -> None:
    assert check_path(path, READ, ROOT, context()).resolved == ""
    assert _where(path, READ) is Where.OUTSIDE


@pytest.mark.parametrize("path", ["a\u202eb", "a\u200bb", "a\ufeff"])
def test_invisible_characters_need_a_yes(path: str) -> None:
    assert _where(path, READ) is Where.PROTECTED


def test_a_byte_that_is_no_utf_8_is_a_character_of_a_name_like_any_other() -> None:
    assert _where("old/caf\udce9.txt", PathOp.WRITE) is Where.INSIDE
    assert _where("caf\udce9/.env", PathOp.READ) is Where.PROTECTED
    assert _where("a\udc80" * 100, PathOp.READ) is Where.INSIDE
    assert _where("\udce9" * 256, PathOp.READ) is Where.OUTSIDE


def test_links_are_followed_for_the_place_and_for_the_name() -> None:
    links = {f"{ROOT}/out": "/srv", f"{ROOT}/n.txt": f"{ROOT}/.env", f"{ROOT}/k": f"{HOME}/.ssh/id_rsa"}
    files = MemoryView(links=links)
    assert [_where(path, READ, files) for path in ("out/x", "n.txt", "k")] == [
        Where.OUTSIDE,
        Where.PROTECTED,
        Where.PROTECTED,
    ]


def test_a_file_with_two_names_needs_a_yes() -> None:
    files = MemoryView(files={f"{ROOT}/a": ""}, counts={f"{ROOT}/a": 2})
    assert (_where("a", READ, files), _where("a", WRITE, files)) == (Where.PROTECTED, Where.OUTSIDE)


def test_listing_shows_that_a_secret_is_there_but_not_beside_keys_at_home() -> None:
    assert (_where(".env", LIST), _where("~/.ssh", LIST)) == (Where.INSIDE, Where.PROTECTED)


@pytest.mark.parametrize("root", ["/", HOME, "/home"])
def test_a_root_that_holds_the_home_directory_is_no_workspace(root: str) -> None:
    wide = PolicyContext(mode=Mode.ASK, roots=(root,), files=MemoryView(), home=HOME)
    assert check_path("/home/user/x", READ, root, wide).where is Where.OUTSIDE


def test_the_state_of_treadle_is_protected() -> None:
    kept = context(state=("/home/user/.local/share/treadle",))
    assert check_path("/home/user/.local/share/treadle/log.db", READ, ROOT, kept).where is Where.PROTECTED


@settings(max_examples=200)
@given(st.text(max_size=40), st.sampled_from(list(PathOp)))
def test_no_text_breaks_the_check(path: str, op: PathOp) -> None:
    assert check_path(path, op, ROOT, context()).reasons


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["a", "..", ".", "b c", ""]), max_size=8))
def test_no_way_of_spelling_leaves_the_workspace_unseen(parts: list[str]) -> None:
    check = check_path("./" + "/".join(parts), READ, ROOT, context())
    assert (check.where is Where.INSIDE) == (check.resolved == ROOT or check.resolved.startswith(ROOT + "/"))


@pytest.mark.parametrize(
    ("pattern", "hit"),
    [(".en\2", True), (".\1", True), ("\0/.ssh/id_\1", True), ("\1.pem", True), ("\1.py", False), ("\1", False),
     ("\1.json", False), ("src/\1", False)],
)  # fmt: skip
def test_a_pattern_counts_as_the_secret_it_could_stand_for(pattern: str, hit: bool) -> None:
    assert (pattern_hits(pattern, writing=False) is not None) is hit


def test_a_pattern_of_many_wildcards_is_answered_at_once() -> None:
    assert pattern_hits("a" + "\1q\2" * 400, writing=False) is None


def test_a_pattern_that_fits_a_protected_name_by_its_end_is_seen() -> None:
    hits = [pattern_hits(text, writing=False) for text in ("serv\2r.key", "xy\2key", "zq\1", "zq.\2")]
    assert [hit is not None for hit in hits] == [True, True, False, False]


def test_names_say_what_is_protected() -> None:
    assert (control_name("x/.GIT/y"), secret_name("a/.Env.Local")) == (".git", ".env.local")
