"""The whole terminal app in one process with a clock of its own: seconds pass when nobody has anything to do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput

from tests.person import ESCAPE, Stroke
from treadle.app.config.sections import Settings
from treadle.app.models.offered import OfferedModel
from treadle.app.session.live import LiveSession
from treadle.app.session.own_commands.own_shell import Ended
from treadle.protocol.attach import Stamped
from treadle.protocol.events import Answer, Interrupt, Op, Prompt, SetMode, SetModel, Source
from treadle.protocol.messages import text_of
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import Phase, QuestionAsked, QuestionClosed, TurnStarted
from treadle.protocol.permissions import Mode, Question
from treadle.tui.lists.filter_list import Pick
from treadle.tui.paint.look import look_of
from treadle.tui.paint.painter import Painter
from treadle.tui.question.dialog import Dialog
from treadle.tui.session.surface import Surface

MODELS = tuple(
    OfferedModel(ref=f"fake/{name}", title="Fake", window=1000, price_in=1.0, price_out=2.0, usable=True, thinks=True)
    for name in ("one", "two", "three", "other")
)


@dataclass(frozen=True, slots=True)
class Sent:
    """An op that the surface sent, and when."""

    at: float
    op: Op


@dataclass(slots=True)
class FakeLive:
    """A session that keeps what it is asked for, and closes a question that was answered."""

    sent: list[Sent] = field(default_factory=list)
    surface: Surface | None = None
    closed: bool = False
    commands: list[str] = field(default_factory=list)
    past: Sequence[Stamped] = ()

    def as_live(self, folder: Path) -> LiveSession:
        status = SimpleNamespace(
            phase=Phase.WAITING_FOR_EVENT,
            mode=Mode.ASK,
            model="fake/one",
            tokens=0,
            window=1000,
            turn_active=False,
            queue=(),
            held=(),
            questions=(),
            allowances=(),
        )
        live = SimpleNamespace(
            source=LiveSession.source,
            continues=False,
            id="s",
            past=self.past,
            opening=(),
            status=status,
            workspace=folder,
            roots=(),
            notices=(),
            before=None,
            post=self.post,
            closed=False,
            own_shell=SimpleNamespace(run=self.run),
            servers=None,
            sees_images=True,
            trust=SimpleNamespace(trusted=False, workspace=folder, items=()),
            offered_models=lambda: MODELS,
            choose=lambda ref, thinking: SetModel(choice=ModelChoice(model=ref, tool_protocol=ToolProtocol.NATIVE)),
        )
        return cast("LiveSession", live)

    async def run(self, line: str, output: Callable[[str], None], stop: asyncio.Event) -> Ended:
        """Keep a command of the person's own; it runs until it is stopped."""
        self.commands.append(line)
        await stop.wait()
        return Ended(line=line, status=None, said="", output="", seconds=0)

    async def post(self, op: Op, source: Source) -> None:
        self.sent.append(Sent(asyncio.get_running_loop().time(), op))
        assert self.surface is not None
        if isinstance(op, Answer):
            closed = QuestionClosed(question_id=op.question_id, option=op.option, scope=op.scope)
            self.surface.hear(Stamped(notification=closed))

    @property
    def answers(self) -> list[Sent]:
        return [one for one in self.sent if isinstance(one.op, Answer)]

    @property
    def prompts(self) -> list[str]:
        return [text_of(one.op.content) for one in self.sent if isinstance(one.op, Prompt)]

    def count(self, kind: type[Interrupt | SetMode]) -> int:
        return sum(isinstance(one.op, kind) for one in self.sent)


@dataclass(slots=True)
class OpenApp:
    """A running surface, its keyboard, and what it sent. What is read aside is there at once."""

    surface: Surface
    live: FakeLive
    keyboard: PipeInput
    filtered: list[str] = field(default_factory=list)
    """What was typed into the filters of lists."""

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def ask(self, question: Question) -> None:
        """Let the session ask."""
        self.surface.hear(Stamped(notification=TurnStarted(turn=1)))
        self.surface.hear(Stamped(notification=QuestionAsked(question=question)))

    async def does(self, strokes: Sequence[Stroke]) -> None:
        """Let the person do these things."""
        for stroke in strokes:
            await asyncio.sleep(stroke.pause)
            if stroke.data:
                self.keyboard.send_text(stroke.data)
                await asyncio.sleep(0.0001)

    async def close_pager(self) -> None:
        """Go back from the pager, if it is open."""
        while self.surface.screen.paging:
            await self.does([Stroke(0.1, ESCAPE), Stroke(0.5, "")])

    async def close_list(self) -> None:
        """Close the list to choose from, if one is open."""
        while self.surface._lists.pickers.open:
            await self.does([Stroke(0.1, ESCAPE), Stroke(0.5, "")])

    async def done(self) -> None:
        """Close the question, and let the person clear everything and rest."""
        await self.close_pager()
        await self.close_list()
        self.surface.hear(Stamped(notification=QuestionClosed(question_id="q")))
        self.surface.screen.put("")
        while self.surface.own.stop():
            pass
        await asyncio.sleep(10)
        self.live.sent.clear()
        self.live.commands.clear()
        self.filtered.clear()

    @property
    def dialog(self) -> Dialog:
        """What keys and time made of the question."""
        return self.surface._questions.dialog

    @property
    def draft(self) -> str:
        """The draft with all that its pieces hold."""
        return self.surface.screen.draft.pieces.text(self.surface.screen.text)

    @property
    def words(self) -> str:
        return self.surface.screen.words


@asynccontextmanager
async def open_app(folder: Path = Path("/project")) -> AsyncIterator[OpenApp]:
    """Run the surface without a session behind it."""
    live = FakeLive()
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=DummyOutput()):
        surface = Surface(live.as_live(folder), InMemoryHistory(), look_of(Settings()))
        live.surface = surface
        post = asyncio.create_task(surface.outbox.run())
        own = asyncio.create_task(surface.own.run())
        run = asyncio.create_task(surface.screen.run())
        await surface.screen.painted.wait()
        surface.start_painting(Painter)
        # What is drawn changes nothing of what keys do, and takes most of the time.
        surface.screen._app._redraw = lambda render_as_done=False: None  # type: ignore[method-assign]
        surface._lists.aside.start = lambda work, done, instead: done(work())  # type: ignore[method-assign]
        app = OpenApp(surface, live, keyboard)
        press = surface._lists.pickers.press

        def pressed(key: Pick, text: str) -> None:
            app.filtered.append(text if key is Pick.TEXT else "")
            press(key, text)

        surface._lists.pickers.press = pressed  # type: ignore[method-assign]
        try:
            yield app
        finally:
            surface.screen.leave(0)
            post.cancel()
            own.cancel()
            await asyncio.gather(run, post, own, return_exceptions=True)
