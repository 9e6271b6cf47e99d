"""Profiles, denials, and what is found to protect."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.sandbox import (
    Backend,
    Denial,
    Profile,
    Right,
    RightKind,
    SandboxState,
    Surroundings,
    Survey,
    allow,
    find_denial,
    prepare,
    survey,
    usual_profile,
)
from treadle.workspace.sandbox.bubblewrap import bubblewrap
from treadle.workspace.sandbox.ground import Ground, Kind, Place

PROFILE = Profile(root="/w", protected=("/w/.git/", "/w/AGENTS.md"), masked=("/h/.ssh",), tmp="/p/tmp", lock="/p/lock")
NEVER = Denial("The sandbox may have stopped a system call that it never permits.", None)
NETWORK = Denial("The sandbox has no network.", Right(RightKind.NETWORK))


def ground(*protected: Place) -> Ground:
    return Ground(
        protected=protected, masked=(), writable=(), readable=(), folders=frozenset(), sockets=("/s", "/w/s", "/run/s")
    )


def writing(path: str) -> Denial:
    return Denial(f"The sandbox keeps {path} from being changed.", Right(RightKind.WRITE, path))


@pytest.mark.parametrize(
    ("output", "denial"),
    [
        ("bash: line 1: .git/config: Read-only file system", writing("/w/.git/")),
        ("touch: cannot touch '/usr/share/doc/x/y': Read-only file system", writing("/usr/share/doc")),
        ("OSError: [Errno 30] Read-only file system: 'AGENTS.md'", writing("/w/AGENTS.md")),
        ("error: failed to create /usr/lib/x: Read-only file system (os error 30)", writing("/usr/lib")),
        ("first\ncurl: (6) Could not resolve host: example.org\nlast", NETWORK),
        ("OSError: [Errno 101] Network is unreachable", NETWORK),
        ("npm error code EAI_AGAIN\nnpm error getaddrinfo EAI_AGAIN registry", NETWORK),
        (
            "cat: /h/.ssh/id_rsa: Permission denied",
            Denial("The sandbox keeps /h/.ssh from being read.", Right(RightKind.READ, "/h/.ssh")),
        ),
        ("mount: /mnt: Operation not permitted", NEVER),
        ("bash: ./script: Permission denied", None),
        ("AssertionError: 1 != 2", None),
        ("", None),
    ],
)
def test_a_denial_names_the_right_that_lacked(output: str, denial: Denial | None) -> None:
    assert find_denial(output, PROFILE, Backend.BUBBLEWRAP) == denial


def test_landlock_says_permission_denied_where_something_must_not_be_changed() -> None:
    line = "touch: cannot touch '/usr/x': Permission denied"
    assert find_denial(line, PROFILE, Backend.BUBBLEWRAP) is None
    assert find_denial(line, PROFILE, Backend.LANDLOCK) == writing("/usr")


def test_what_was_allowed_is_not_named_again() -> None:
    for output in ("x: Could not resolve host: y", "bash: .git/config: Read-only file system"):
        denial = find_denial(output, PROFILE, Backend.BUBBLEWRAP)
        assert denial is not None
        assert denial.right is not None
        assert find_denial(output, allow(PROFILE, denial.right), Backend.BUBBLEWRAP) is None


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_output_can_be_looked_through(output: str) -> None:
    find_denial(output, PROFILE, Backend.BUBBLEWRAP)


def test_one_right_opens_one_thing() -> None:
    assert allow(PROFILE, Right(RightKind.NETWORK)) == replace(PROFILE, network=True)
    assert allow(PROFILE, Right(RightKind.READ, "/h/.ssh")) == replace(PROFILE, masked=())
    assert allow(PROFILE, Right(RightKind.WRITE, "/w/.git/")) == replace(PROFILE, protected=("/w/AGENTS.md",))
    assert allow(PROFILE, Right(RightKind.WRITE, "/x")) == replace(PROFILE, writable=("/x",))
    plan = replace(PROFILE, change_root=False)
    assert allow(plan, Right(RightKind.WRITE, "/w")) == PROFILE


def test_what_lies_in_a_protected_folder_is_not_opened_again() -> None:
    places = (Place("/w/.git", Kind.FOLDER), Place("/w/.git/hooks", Kind.FOLDER), Place("/w/a/.npmrc", Kind.FILE))
    line = " ".join(bubblewrap("bwrap", PROFILE, ground(*places), seccomp=True))
    assert "--bind /w /w --ro-bind /w/.git /w/.git --bind /w/a /w/a --ro-bind /w/a/.npmrc /w/a/.npmrc --ro" in line
    assert "/w/.git/hooks" not in line


def test_sockets_outside_of_the_workspace_are_covered() -> None:
    line = " ".join(bubblewrap("bwrap", PROFILE, ground(), seccomp=False))
    assert line.count("--ro-bind-try /dev/null") == 2
    assert "--ro-bind-try /dev/null /w/s" not in line


def test_without_a_sandbox_nothing_is_wrapped(tmp_path: Path) -> None:
    profile = replace(PROFILE, tmp=str(tmp_path / "t"), lock=str(tmp_path / "l"))
    with pytest.raises(ToolError, match="there is no sandbox on this system \\(too old\\)"):
        prepare(profile, SandboxState(backend=None, reason="too old"))


def test_control_files_and_secrets_of_a_workspace_are_found(tmp_path: Path) -> None:
    for name in ("a/.git/config", "a/b/.npmrc", ".env", "src/x.py", "node_modules/x/.npmrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = survey(
        str(tmp_path),
        is_control=lambda path: path.endswith((".git", ".npmrc")),
        is_secret=lambda path: path.endswith((".env", ".npmrc")),
    )
    assert found == Survey(
        protected=(f"{tmp_path}/a/.git",), masked=(f"{tmp_path}/.env", f"{tmp_path}/a/b/.npmrc"), complete=True
    )


def test_the_usual_profile_keeps_what_every_command_must_leave_alone() -> None:
    around = Surroundings(
        home="/h", data="/h/.local/share/treadle", private="/p", variables={"PATH": "/usr/bin:/tmp/tools:rel"}
    )
    profile = usual_profile("/w", around, Survey(protected=("/w/a/.npmrc",), masked=("/w/.env",), complete=True))
    assert {"/w/.git/", "/w/.mcp.json", "/w/.github/workflows/", "/w/AGENTS.md", "/w/a/.npmrc"} <= {*profile.protected}
    assert {"/h/.ssh", "/h/.local/share/treadle", "/w/.env"} <= {*profile.masked}
    assert (profile.network, profile.change_root, profile.readable) == (False, True, ("/tmp/tools",))
