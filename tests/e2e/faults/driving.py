"""What the tests of faults share: scripts of a few calls, a session with somebody to ask, what a request says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import PATIENCE, model
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.session.live import LiveSession
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import Notification, QuestionAsked, TurnEnded, TurnOutcome
from treadle.protocol.permissions import OptionKind, Question
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

TEST = Source(kind="test")


def make(name: str, **arguments: Any) -> MakeCall:
    """A call."""
    return MakeCall(name=name, arguments=arguments)


def run(command: str, **arguments: Any) -> MakeCall:
    """A call of execute_command."""
    return make("execute_command", command=command, **arguments)


def block(search: str, replace: str) -> str:
    """One SEARCH/REPLACE block."""
    return f"------- SEARCH\n{search}=======\n{replace}+++++++ REPLACE\n"


DONE = Turn(items=(make("attempt_completion", result="Done."),))


def script(*steps: MakeCall | tuple[MakeCall, ...]) -> Script:
    """A script that makes these calls step by step, and then is done."""
    turns = (Turn(items=step if isinstance(step, tuple) else (step,)) for step in steps)
    return Script(turns=(*turns, DONE))


def results(server: ScriptedServer) -> list[str]:
    """The results of the calls of the last step but one, as the model was sent them."""
    return [
        block["content"]
        if isinstance(block["content"], str)
        else "".join(part.get("text", "") for part in block["content"])
        for block in server.requests[-1].body["messages"][-1]["content"]
        if block["type"] == "tool_result"
    ]


@dataclass(frozen=True)
class Worked:
    """How a task went: the process, what the model was sent last, and everything that it was sent, as JSON."""

    ended: Ended
    results: list[str]
    sent: str


async def work(
    tmp_path: Path, *steps: MakeCall | tuple[MakeCall, ...], flags: tuple[str, ...] = (), **given: Any
) -> Worked:
    """Work a script off without a person, in full mode, in the folder `ws`."""
    root = tmp_path / "ws"
    root.mkdir(exist_ok=True)
    async with ScriptedServer(script(*steps)) as server:
        program = Program(tmp_path / "home", given.pop("extra", {}))
        usual = ("--mode", "full") if "--mode" not in flags else ()
        ended = await program.run("-p", "Work.", *model(server), *usual, *flags, "-C", str(root), **given)
        sent = json.dumps([request.body for request in server.requests])
        found = results(server) if len(server.requests) > 1 else []
    assert server.violations == []
    return Worked(ended, found, sent)


@dataclass
class Attended:
    """A session in this process with somebody to ask."""

    live: LiveSession
    feed: AsyncIterator[Notification]
    server: ScriptedServer

    async def begin(self) -> None:
        """Give the task."""
        await self.live.post(Prompt(id="p", content=(Text(text="Work."),)), TEST)

    async def asked(self) -> Question:
        """Wait for the next question."""
        async with asyncio.timeout(PATIENCE):
            return await anext(item.question async for item in self.feed if isinstance(item, QuestionAsked))

    async def answer(self, question: Question, option: OptionKind) -> None:
        """Answer it."""
        await self.live.post(Answer(question_id=question.id, option=option), TEST)

    async def ended(self) -> TurnOutcome:
        """Wait for the end of the turn."""
        async with asyncio.timeout(PATIENCE):
            return await anext(item.outcome async for item in self.feed if isinstance(item, TurnEnded))


@asynccontextmanager
async def attended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *steps: MakeCall | tuple[MakeCall, ...],
    resume: str = "",
    protocol: ToolProtocol | None = None,
) -> AsyncIterator[Attended]:
    """Open a session in the folder `ws`, in the usual mode, whose commands ask first."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    root = tmp_path / "ws"
    root.mkdir(parents=True, exist_ok=True)
    async with ScriptedServer(script(*steps)) as server:
        settings = Settings(
            model="anthropic-compatible/scripted", base_url=server.base_url, tool_protocol=protocol, try_first=False
        )
        live = await open_session(Opening(workspace=root, settings=settings, user_present=True, resume=resume))
        feed = live.follow()
        async with live:
            yield Attended(live, feed, server)
    assert server.violations == []
