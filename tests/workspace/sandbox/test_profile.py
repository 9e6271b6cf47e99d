"""Profiles, denials, and what is found to protect."""

from dataclasses import replace
from pathlib import Path

import pytest

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.sandbox import (
    Profile,
    SandboxState,
    Surroundings,
    Survey,
    allow,
    prepare,
    survey,
    usual_profile,
)
from treadle.workspace.sandbox.bubblewrap import bubblewrap
from treadle.workspace.sandbox.ground import Ground, Kind, Place

PROFILE = Profile(root="/w", protected=("/w/.git/", "/w/AGENTS.md"), masked=("/h/.ssh",), tmp="/p/tmp", lock="/p/lock")


def ground(*protected: Place) -> Ground:
    return Ground(
        protected=protected, masked=(), writable=(), readable=(), folders=frozenset(), sockets=("/s", "/w/s", "/run/s")
    )


def test_one_right_opens_one_thing() -> None:
    assert allow(PROFILE, SandboxDenial(right=Right.NETWORK)) == replace(PROFILE, network=True)
    assert allow(PROFILE, SandboxDenial(right=Right.READ, target="/h/.ssh")) == replace(PROFILE, masked=())
    assert allow(PROFILE, SandboxDenial(right=Right.READ, target="/tmp/x")) == replace(PROFILE, readable=("/tmp/x",))
    assert allow(PROFILE, SandboxDenial(right=Right.WRITE, target="/w/.git/")) == replace(
        PROFILE, protected=("/w/AGENTS.md",)
    )
    assert allow(PROFILE, SandboxDenial(right=Right.WRITE, target="/x")) == replace(PROFILE, writable=("/x",))
    plan = replace(PROFILE, change_root=False)
    assert allow(plan, SandboxDenial(right=Right.WRITE, target="/w")) == PROFILE


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
