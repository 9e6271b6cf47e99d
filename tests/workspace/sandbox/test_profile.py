"""Profiles, denials, and what is found to protect."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.normal_user import MODES, normal_user

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement, Right, SandboxDenial
from treadle.workspace.sandbox import (
    Profile,
    SandboxState,
    Surroundings,
    Survey,
    allow,
    prepare,
    profile_for,
)
from treadle.workspace.sandbox.bubblewrap import bubblewrap
from treadle.workspace.sandbox.home import home_for
from treadle.workspace.sandbox.present import Present
from treadle.workspace.sandbox.profile import is_within

PROFILE = Profile(root="/w", protected=("/w/.git", "/w/AGENTS.md"), masked=("/h/.ssh",), tmp="/p/tmp", private="/p")


def test_one_right_opens_one_thing() -> None:
    assert allow(PROFILE, SandboxDenial(right=Right.NETWORK)) == replace(PROFILE, network=True)
    assert allow(PROFILE, SandboxDenial(right=Right.READ, target="/h/.ssh")) == replace(PROFILE, masked=())
    assert allow(PROFILE, SandboxDenial(right=Right.READ, target="/tmp/x")) == replace(PROFILE, readable=("/tmp/x",))
    assert allow(PROFILE, SandboxDenial(right=Right.WRITE, target="/w/.git")) == replace(
        PROFILE, protected=("/w/AGENTS.md",), writable=("/w/.git",)
    )
    assert allow(PROFILE, SandboxDenial(right=Right.WRITE, target="/x")) == replace(PROFILE, writable=("/x",))
    plan = replace(PROFILE, change_root=False)
    assert allow(plan, SandboxDenial(right=Right.WRITE, target="/w")) == PROFILE


@normal_user
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("closed", [".nvm", ".nvm/versions/node", ".conda/envs"])
def test_a_credential_of_the_home_is_hidden_where_its_folder_cannot_be_listed(
    closed: str, mode: int, tmp_path: Path
) -> None:
    secrets = [".nvm/.npmrc", ".nvm/versions/node/v1/etc/npmrc", ".conda/envs/one/pip.conf"]
    for name in secrets:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("token")
    (tmp_path / closed).chmod(mode)
    found = home_for(str(tmp_path), str(tmp_path / "private"), {}, roots=[], environments=[])
    (tmp_path / closed).chmod(0o755)
    for name in secrets:
        if mode & 0o100 or not name.startswith(closed):
            assert any(is_within(str(tmp_path / name), path) for path in found.masked), name


def test_what_lies_in_a_protected_folder_is_not_opened_again() -> None:
    present = Present(protected=("/w/.git", "/w/.git/hooks", "/w/a/.npmrc"))
    line = " ".join(bubblewrap("bwrap", PROFILE, present, seccomp=True))
    assert "--bind /w /w --ro-bind /w/.git /w/.git --bind /w/a /w/a --ro-bind /w/a/.npmrc /w/a/.npmrc --set" in line
    assert "/w/.git/hooks" not in line


def test_a_folder_with_other_contents_is_written_there_and_needs_no_protection() -> None:
    profile = replace(PROFILE, change_root=False, contents=(("/w", "/mnt/copy"),))
    present = Present(protected=("/w/.git",), masked_files=("/w/.env", "/etc/shadow"))
    line = " ".join(bubblewrap("bwrap", profile, present, seccomp=False))
    assert "--bind /mnt/copy /w" in line
    assert "/w/.git" not in line
    assert "/w/.env" not in line
    assert "--ro-bind /dev/null /etc/shadow" in line


def test_what_is_hidden_shows_only_what_is_named_in_it_and_is_closed_at_last() -> None:
    profile = replace(
        PROFILE, root="/h/w", protected=(), scratch=(("/h/.cache", "/p/cache"),), replaced=(("/h/.gitconfig", "/p/g"),)
    )
    present = Present(hidden=("/h",), readable=("/h/.cargo/bin",), masked_files=("/h/.netrc", "/h/w/.env"))
    line = " ".join(bubblewrap("bwrap", profile, present, seccomp=False))
    places = [line.index(text) for text in ("--tmpfs /h ", "--bind /p/cache /h/.cache", "--bind /h/w /h/w")]
    assert places == sorted(places)
    assert line.index("--remount-ro /h ") > line.index("--ro-bind /h/.cargo/bin /h/.cargo/bin")
    assert "--ro-bind /p/g /h/.gitconfig" in line
    assert "/h/.netrc" not in line
    assert "--ro-bind /dev/null /h/w/.env" in line


def test_sockets_outside_of_the_workspace_are_covered() -> None:
    present = Present(sockets=("/s", "/w/s", "/run/s"), shared=("/run",))
    line = " ".join(bubblewrap("bwrap", PROFILE, present, seccomp=False))
    assert line.count("--ro-bind-try /dev/null") == 1
    assert "--ro-bind-try /dev/null /s" in line


def test_without_a_sandbox_nothing_is_wrapped(tmp_path: Path) -> None:
    profile = replace(PROFILE, tmp=str(tmp_path / "t"), private=str(tmp_path / "l"))
    with pytest.raises(ToolError, match="there is no sandbox on this system \\(too old\\)"):
        prepare(profile, SandboxState(backend=None, reason="too old"))


@pytest.mark.parametrize("kind", [Confinement.LOOK, Confinement.WORK, Confinement.GIT])
def test_each_confinement_keeps_what_every_command_must_leave_alone(kind: Confinement, tmp_path: Path) -> None:
    home, work = tmp_path / "h", tmp_path / "w"
    for folder in (home / ".cargo/bin", work / ".git/hooks", work / "bin", work / ".venv"):
        folder.mkdir(parents=True)
    around = Surroundings(
        home=str(home),
        data=str(home / "data"),
        private=str(tmp_path / "p"),
        variables={"PATH": f"/usr/bin:{work}/bin:rel"},
    )
    found = Survey(
        control=((f"{work}/.git", ""), (f"{work}/a/.npmrc", "")), secrets=(f"{work}/.env",), python=(f"{work}/.venv",)
    )
    profile = profile_for(kind, (str(work),), around, (found,))
    repository = f"{work}/.git/hooks" if kind is Confinement.GIT else f"{work}/.git"
    assert profile.protected == (
        *(() if kind is Confinement.GIT else (f"{work}/.git",)),
        f"{work}/a/.npmrc",
        f"{work}/.venv",
        f"{work}/bin",
    ) + ((repository,) if kind is Confinement.GIT else ())
    assert {str(home / "data"), f"{work}/.env"} <= {*profile.masked}
    assert (profile.network, profile.change_root) == (False, kind is not Confinement.LOOK)
    assert str(home) in profile.hidden
    assert str(home / ".cargo/bin") in profile.shown
    assert (profile.limits.memory > 0, profile.limits.file > 0, profile.limits.disk > 0) == (True, True, True)


def test_an_open_command_has_no_profile(tmp_path: Path) -> None:
    around = Surroundings(home="/h", data="/d", private=str(tmp_path), variables={})
    with pytest.raises(ValueError, match="no profile"):
        profile_for(Confinement.OPEN, ("/w",), around, ())
