"""Whoever starts a program in a sandbox starts it again where a place that was to be covered went away meanwhile.

Otherwise nothing runs, and what is not known would be taken for an answer that says nothing.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.diagnostics.starting import starting
from tests.workspace.sandbox.running import bubblewrap
from tests.workspace.sandbox.vanishing import Vanishing, vanishing
from treadle.app.config.hook_settings import HookEvent, HookSpec
from treadle.app.hooks.hook_commands import CommandHook, HookPlace
from treadle.app.hooks.hook_places import LogPlaces
from treadle.app.security.hook_files import HookFiles
from treadle.app.session.commands.callers import Callers
from treadle.app.session.commands.git_calls import GitCalls
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Decision, Mode, Standing, Verdict
from treadle.protocol.tools import Access, Confinement, Risk, ToolSpec
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.wrapping import TIMES_AGAIN
from treadle.workspace.diagnostics.linter import Linter
from treadle.workspace.namespaces.git_broker import GitCall
from treadle.workspace.sandbox import GitReader, Profile, probe
from treadle.workspace.workspace import Workspace, open_workspace

RUNS = range(TIMES_AGAIN + 1)
"""How often the place goes away so that the program is run after all."""


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    bubblewrap()
    (root := tmp_path / "ws").mkdir()
    subprocess.run(("git", "init", "-q", "-b", "main", root), check=True)
    return Profile(root=str(root), tmp=str(tmp_path / "tmp"), private=str(tmp_path / "private"))


@pytest.fixture(params=[*RUNS, len(RUNS)])
def prepared(request: pytest.FixtureRequest) -> Any:
    with vanishing(request.param) as found:
        yield found


@pytest.fixture
async def workspace(profile: Profile, prepared: Vanishing) -> AsyncIterator[Workspace]:
    opened = open_workspace(Path(profile.root), confine=lambda *_, **__: Setup(prepared(profile, probe())))
    yield opened
    await opened.close()


def judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing) -> Decision:
    return Decision(verdict=Verdict.ALLOW, risk=Risk.READ, confinement=Confinement.WORK)


async def stays() -> None:
    await asyncio.sleep(60)


async def test_a_call_of_git_is_answered_or_said_not_to_have_run(workspace: Workspace, prepared: Vanishing) -> None:
    def standing() -> Standing:
        return Standing(mode=Mode.AUTO)

    calls = GitCalls(workspace, judge, standing, Callers(standing), note=lambda _: None)
    given = GitCall(words=("rev-parse", "--show-prefix"), cwd=workspace.root, variables={}, process=0)
    nothing, (read, written) = os.open(os.devnull, os.O_RDWR), os.pipe()
    status, said = await calls(given, (nothing, written, nothing), stays())
    os.close(written)
    printed = os.read(read, 100)
    for each in (nothing, read):
        os.close(each)
    if prepared.times in RUNS:
        assert (status, said, printed) == (0, "", b"\n")
    else:
        assert (status, said[:40], printed) == (128, "It could not be started (bwrap: Can't mk", b"")


async def test_what_git_is_asked_is_answered_or_not_known(
    profile: Profile, prepared: Vanishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.workspace.sandbox.reading_git.prepare", prepared)
    ask = GitReader(profile.root, profile.private)
    if prepared.times in RUNS:
        assert ask("rev-parse", "--is-inside-work-tree") == b"true\n"
    else:
        with pytest.raises(ToolError, match="Git did not say"):
            ask("rev-parse", "--is-inside-work-tree")


async def test_a_hook_answers_or_is_said_to_have_failed(
    profile: Profile, workspace: Workspace, prepared: Vanishing
) -> None:
    place = HookPlace(
        launcher=lambda: workspace.launcher,
        confine=lambda *_, **__: Setup(prepared(profile, probe())),
        logs=LogPlaces(workspace.root, Path(profile.private, "people")),
        private=Path(profile.private),
        root=workspace.root,
        session_id="s1",
        tell=lambda text: None,
        files=HookFiles(Path(workspace.root), ()),
    )
    answer = await CommandHook(HookSpec(event=HookEvent.PRE_TOOL_USE, command="cat"), place)({"reason": "given"})
    if prepared.times in RUNS:
        assert answer.objects == ({"reason": "given"},)
    else:
        assert answer.unread.startswith("exit status 1: bwrap: ")


async def test_a_linter_finds_what_there_is_or_did_not_work(workspace: Workspace, prepared: Vanishing) -> None:
    start = starting(workspace, confined=True)
    lint = Linter(name="lint", line="echo a.py:3: odd; : {files}", patterns=("*",), root=workspace.root, start=start)
    if prepared.times in RUNS:
        assert [one.message for one in await lint.check([__file__])] == ["odd"]
    else:
        with pytest.raises(ToolError, match=r"lint did not work: Exit status 1\. bwrap: "):
            await lint.check([__file__])
