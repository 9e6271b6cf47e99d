"""How commands are run: hardened where they only read, in the sandbox of the mode, with the right that was granted."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from treadle.app.security.command_confinement import confine, confine_as, look_through
from treadle.app.security.command_folders import CommandFolders
from treadle.app.session.commands.judging import policy_context
from treadle.policy.decision_context import PolicyContext
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Mode, Standing
from treadle.protocol.tools import Confinement, Right, Rights, SandboxDenial
from treadle.workspace.commands.confinement import OPEN, Setup
from treadle.workspace.commands.variables import HARDENED_GIT, path_outside
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.sandbox import Backend, SandboxState
from treadle.workspace.workspace import open_workspace

NO_SANDBOX = SandboxState(backend=None, reason="for this test")


@pytest.fixture
def place(tmp_path: Path) -> CommandFolders:
    (tmp_path / "work").mkdir()
    return CommandFolders(root=str(tmp_path / "work"), data=tmp_path / "data", private=tmp_path / "data" / "private")


@pytest.fixture
def unsandboxed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.app.security.command_confinement.probe", lambda: NO_SANDBOX)


@pytest.fixture
def bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SandboxState(backend=Backend.BUBBLEWRAP, program="/usr/bin/bwrap")
    monkeypatch.setattr("treadle.app.security.command_confinement.probe", lambda: state)


def context(place: CommandFolders, mode: Mode) -> PolicyContext:
    return policy_context(place.root, Standing(mode=mode), home="/home/somebody", trusted=True)


def git(folder: str, *arguments: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(("git", "-C", folder, *arguments), check=True, capture_output=True, env=environment)


@pytest.mark.usefixtures("unsandboxed")
@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("git status", True),
        ("git log --oneline | head -3; ls", True),
        ("cd . && git diff HEAD", True),
        ("ls", True),
        ("git commit -m x", False),
        ("git status && git commit -m x", False),
        ("make release", False),
        ("git -c core.pager=less log", False),
        ("git fetch", False),
    ],
)
def test_lines_that_only_read_are_hardened(place: CommandFolders, line: str, reads: bool) -> None:
    found = confine(line, OPEN, place, context(place, Mode.ASK))
    hardened = {**HARDENED_GIT, "PATH": path_outside(os.environ["PATH"], place.root)}
    assert found == Setup(variables=hardened if reads else {})


HOSTILE = {
    "core.fsmonitor": "touch {trap}/fsmonitor; false",
    "core.pager": "touch {trap}/pager; cat",
    "pager.log": "touch {trap}/pager; cat",
    "log.showSignature": "true",
    "gpg.program": "{trap}/program",
    "core.alternateRefsCommand": "touch {trap}/refs",
    "core.sshCommand": "touch {trap}/ssh",
}


def hostile(folder: str, trap: Path) -> None:
    """Make a repository whose settings and hooks run programs; each leaves a file in `trap`."""
    git(folder, "init", "-q", "-b", "main")
    Path(folder, "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "one")
    for name, value in HOSTILE.items():
        git(folder, "config", name, value.format(trap=trap))
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        script = Path(folder, ".git", "hooks", hook)
        script.write_text(f"#!/bin/sh\ntouch {trap}/hook-{hook}\n")
        script.chmod(0o755)
    program = trap.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}/program\n")
    program.chmod(0o755)


READS = (
    "git status",
    "git status --porcelain",
    "git diff",
    "git diff HEAD",
    "git log -p",
    "git show HEAD",
    "git blame a.txt",
    "git grep one",
    "git ls-files -m",
    "git describe --always --dirty",
    "git branch -a",
    "git stash list",
    "git check-ignore a.txt; true",
)


@pytest.mark.usefixtures("unsandboxed")
async def test_reading_with_git_runs_nothing_that_a_repository_or_its_submodule_names(
    place: CommandFolders, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    hostile(place.root, trap)
    inner = f"{place.root}/inner"
    Path(inner).mkdir()
    hostile(inner, trap)
    git(place.root, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "add", "inner")
    workspace = open_workspace(place.root, spool=tmp_path / "spool")
    for made in trap.iterdir():
        made.unlink()
    for line in READS:
        Path(place.root, "a.txt").write_text("one\ntwo\n")
        Path(inner, "a.txt").write_text("one\ntwo\n")
        command = workspace.launcher.start(line, setup=confine(line, OPEN, place, context(place, Mode.ASK)))
        await command.finish(30)
        assert command.status == 0, command.take_output()
        await command.close()
        assert [made.name for made in trap.iterdir()] == [], line
    # The trap works, and a commit runs its hooks: nobody reads there.
    line = "git -c user.name=A -c user.email=a@b commit -qam two"
    command = workspace.launcher.start(line, setup=confine(line, OPEN, place, context(place, Mode.ASK)))
    await command.finish(30)
    await command.close()
    assert {"hook-pre-commit", "fsmonitor"} <= {made.name for made in trap.iterdir()}
    await workspace.close()


@pytest.mark.parametrize("mode", Mode)
def test_a_line_runs_under_its_rights_whatever_the_mode_is_by_now(
    place: CommandFolders, bubblewrap: None, mode: Mode
) -> None:
    def inner(confinement: Confinement, *granted: SandboxDenial) -> tuple[str, ...]:
        rights = Rights(confinement=confinement, granted=granted)
        return confine("make", rights, place, context(place, mode)).wrapping.inner

    for confinement in (Confinement.LOOK, Confinement.WORK, Confinement.GIT):
        assert "--unshare-net" in inner(confinement)
        assert "--unshare-net" not in inner(confinement, SandboxDenial(right=Right.NETWORK))
        binds = " ".join(inner(confinement))
        assert (f"--bind {place.root} {place.root}" in binds) is (confinement is not Confinement.LOOK)
    assert inner(Confinement.OPEN) == ()


@pytest.mark.parametrize("mode", Mode)
def test_commands_share_what_others_of_their_kind_of_mode_do(
    place: CommandFolders, bubblewrap: None, mode: Mode
) -> None:
    """In plan mode nothing is changed, so no server that may change something is reached from there."""
    shared = replace(place, namespaces=SessionNamespaces(), plan_namespaces=SessionNamespaces())
    try:
        used = shared.plan_namespaces if mode is Mode.PLAN else shared.namespaces
        joins = confine("make", Rights(confinement=Confinement.WORK), shared, context(place, mode)).wrapping.joins
        assert used is not None
        holder = used.living()
        assert holder is not None
        assert joins == f"{holder.pid} {holder.started} 0"
        assert [
            one is not None and one.living() is not None for one in (shared.namespaces, shared.plan_namespaces)
        ] == [
            mode is not Mode.PLAN,
            mode is Mode.PLAN,
        ]
    finally:
        for one in (shared.namespaces, shared.plan_namespaces):
            if one is not None:
                one.close()


def test_what_is_treadles_own_is_never_offered(place: CommandFolders, bubblewrap: None) -> None:
    found = confine("cat x", Rights(confinement=Confinement.LOOK), place, context(place, Mode.AUTO))
    place.data.joinpath("keys.json").write_text("{}")
    denial = found.find_denial(f"cat: {place.data}/keys.json: Permission denied")
    assert denial is not None
    assert found.why_never(denial).startswith(" No yes to that opens it: it is Treadle's own. ")
    assert found.find_denial("curl: (6) Could not resolve host: x") is not None


def binds_of(place: CommandFolders, target: Path) -> tuple[bool, bool]:
    """Say whether a path is opened for writing, by itself, with a right to it and without."""
    right = SandboxDenial(right=Right.WRITE, target=str(target))
    setups = [confine_as(Confinement.WORK, "x", place, granted=granted) for granted in ((right,), ())]
    opened = [f"--bind {target} {target}" in " ".join(setup.wrapping.inner) for setup in setups]
    return opened[0], opened[1]


def test_a_right_opens_what_was_asked_about_and_nothing_of_treadles_own(
    place: CommandFolders, tmp_path: Path, bubblewrap: None
) -> None:
    (place.data / "sub").mkdir(parents=True)
    for file in (tmp_path / "other", place.data / "keys.json", place.data / "sub" / "a"):
        file.write_text("x")
    assert binds_of(place, tmp_path / "other") == (True, False)
    for own in (place.data, place.data / "keys.json", place.data / "sub" / "a"):
        assert binds_of(place, own) == (False, False)


def test_after_a_control_file_that_could_not_be_moved_away_no_command_is_started(
    place: CommandFolders, bubblewrap: None
) -> None:
    place.data.mkdir(exist_ok=True)
    (place.data / "quarantine").write_text("a file")
    setup = confine_as(Confinement.WORK, "make", place)
    file = Path(place.root, "AGENTS.md")
    file.write_text("evil")
    assert len(setup.settle("", ended=True)) == 1
    with pytest.raises(ToolError, match=f"^The command was not started: {file} was made or closed by an earlier"):
        look_through(place)
    with pytest.raises(ToolError, match="could not be moved away or looked into"):
        confine_as(Confinement.WORK, "make", place)
    file.unlink()
    assert [survey.unlisted for survey in look_through(place)] == [()]
    assert setup.settle("", ended=True) == ()
