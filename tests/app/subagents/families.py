"""Sessions with a scripted model that begin subagents or programs, as tests drive them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from treadle.app.compose import Opening, open_session, open_store
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, Notification, QuestionAsked, TurnEnded, TurnOutcome
from treadle.protocol.permissions import Mode, Question
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import CallResult
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ME = Source(kind="test")
MODEL = "anthropic-compatible/scripted"


def call(name: str, **arguments: Any) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


class Family:
    """A session with subagents, and what its surface heard."""

    def __init__(self, live: LiveSession) -> None:
        self.live = live
        self.heard: list[Notification] = []
        self.asked: list[Question] = []
        self.pause = 0.0
        """Seconds that its person takes for each answer."""
        self.meanwhile: Callable[[], object] = lambda: None
        """What its person does before the answer that is given to the rest."""
        self.first: list[dict[str, Any]] = []
        """The answers to the first questions, which are not those to the rest."""

    async def turn(self, prompt: str = "Go.", **answer: Any) -> TurnOutcome:
        """Run one turn; each question gets the same answer."""
        async with self.live.follow() as feed:
            await self.live.post(Prompt(id=prompt, content=(Text(text=prompt),)), ME)
            async for one in feed:
                self.heard.append(one)
                if isinstance(one, QuestionAsked):
                    self.asked.append(one.question)
                    await asyncio.sleep(self.pause)
                    given = self.first.pop(0) if self.first else answer
                    if given is answer:
                        self.meanwhile()
                    await self.live.post(Answer(question_id=one.question.id, **given), ME)
                if isinstance(one, TurnEnded):
                    return one.outcome
        raise AssertionError("the session ended")

    @property
    def result(self) -> CallResult:
        """What came of the call that began them."""
        return next(
            one.result
            for one in reversed(self.heard)
            if isinstance(one, CallChanged) and one.status is CallStatus.FINISHED and one.result is not None
        )

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.result.content if isinstance(block, Text))


@asynccontextmanager
async def family(
    folder: Path,
    *turns: Turn,
    mode: Mode = Mode.ASK,
    present: bool = True,
    resume: str = "",
    servers: tuple[McpServer, ...] = (),
    exchanges: Mapping[str, Any] = {},
    **settings: Any,
) -> AsyncIterator[Family]:
    async with ScriptedServer(Script(turns=turns)) as server:
        chosen = Settings(
            model=MODEL, base_url=server.base_url, mode=mode, tool_protocol=ToolProtocol.NATIVE, **settings
        )
        opening = Opening(
            workspace=folder,
            settings=chosen,
            user_present=present,
            trust=session_trust(folder, once=True),
            resume=resume,
            servers=servers,
            exchanges=exchanges,
        )
        async with await open_session(opening) as live:
            yield Family(live)


def events_of(kind: type[Any]) -> list[Any]:
    """The events of a type in all logs, the root's first."""
    store = open_store()
    try:
        rows = sorted(store.sessions(subagents=True), key=lambda row: (bool(row.root), row.id))
        return [event.data for row in rows for event in store.read(row.id) if isinstance(event.data, kind)]
    finally:
        store.close()
