"""Prompts of a program and what comes of them, whoever cancels or follows them."""

import asyncio
from collections.abc import Callable
from typing import Any, Self, cast

import pytest

from tests.fakes.feed import FakeFeed
from treadle.app.session.shared.turn_asking import PromptRun, SessionClient
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Interrupt, Op, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notification, PromptDelivered, TurnEnded, TurnOutcome, TurnStop

TASK = (Text(text="Do it."),)
OUTCOME = TurnOutcome(stop=TurnStop.END_TURN, text="Done.")


class Refusing:
    """A session that takes a moment to refuse every prompt."""

    def __init__(self) -> None:
        self.heard: list[Notification] = []
        self.posted: list[Op] = []
        self.asked = asyncio.Event()
        self.feed = FakeFeed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for notification in self.heard:
            self.feed.tell(notification)
        self.feed.close()

    def follow(self) -> Feed:
        return self.feed

    def answer_to(self, source: Source, handler: Callable[[TurnOutcome], None]) -> None:
        """Nothing is answered."""

    async def failure(self) -> None:
        """It just ends."""

    async def post(self, op: Op, source: Source) -> None:
        self.posted.append(op)
        self.asked.set()
        await asyncio.sleep(0.05)
        raise RefusedError("Prompt", "working", "the queue is full")


async def test_a_prompt_that_is_refused_after_its_sender_was_cancelled_does_not_hide_that() -> None:
    session = Refusing()
    async with SessionClient(cast("Any", session), Source(kind="library", id="main")) as client:
        asking = asyncio.create_task(client.ask(TASK))
        await session.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert [type(op) for op in session.posted] == [Prompt]
    assert not any(isinstance(op, Interrupt) for op in session.posted)


class Open(Refusing):
    """A session that takes prompts, and stays open."""

    async def failure(self) -> None:
        await asyncio.Event().wait()

    async def post(self, op: Op, source: Source) -> None:
        self.posted.append(op)


async def test_an_error_of_a_listener_reaches_whoever_asks_and_hangs_nobody() -> None:
    def hears(_: Stamped) -> None:
        raise ValueError("a mistake of the program")

    async def asks() -> None:
        async with SessionClient(cast("Any", session), Source(kind="library", id="main"), hears) as client:
            run = await client.ask(TASK)
            followed = await client.ask(TASK, followed=True)
            session.feed.tell(PromptDelivered(prompt_id=run.id, content=TASK))
            for waits in (run.wait(), anext(aiter(followed)), client.ask(TASK)):
                with pytest.raises(ValueError, match="a mistake"):
                    await waits

    session = Open()
    with pytest.raises(ValueError, match="a mistake"):  # also on leaving, where nobody saw it before
        await asks()
    assert len(session.posted) == 2


def happened(run: PromptRun) -> list[Notification]:
    """Let a turn come and go."""
    heard: list[Notification] = [
        PromptDelivered(prompt_id=run.id, content=TASK),
        TurnEnded(outcome=OUTCOME),
    ]
    for number, one in enumerate(heard):
        if number:
            run.answered(OUTCOME)
        run.hear(one)
    return heard


async def test_a_run_keeps_what_happened_only_where_it_is_followed() -> None:
    followed, alone = PromptRun(followed=True), PromptRun()
    heard = happened(followed)
    happened(alone)
    assert [one async for one in followed] == heard
    assert [one async for one in alone] == []
    assert (await followed.wait(), await alone.wait()) == (OUTCOME, OUTCOME)


class Taking(Refusing):
    """A session that does what is asked when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[Source, Callable[[TurnOutcome], None]] = {}
        self.waiting: list[tuple[Prompt, Source]] = []

    async def __aexit__(self, *_: object) -> None:
        self.feed.close()

    def answer_to(self, source: Source, handler: Callable[[TurnOutcome], None]) -> None:
        self.handlers[source] = handler

    async def post(self, op: Op, source: Source) -> None:
        assert isinstance(op, Prompt)
        self.waiting.append((op, source))

    async def work(self, run: PromptRun) -> None:
        """Do the first thing that was asked, for this run."""
        prompt, source = self.waiting.pop(0)
        self.feed.tell(PromptDelivered(prompt_id=prompt.id, content=prompt.content))
        self.handlers[source](OUTCOME)
        self.feed.tell(TurnEnded(outcome=OUTCOME))
        assert await run.wait() == OUTCOME


async def test_a_session_keeps_as_many_handlers_as_prompts_were_on_their_way_at_once() -> None:
    session = Taking()
    async with SessionClient(cast("Any", session), Source(kind="library", id="main")) as client:
        for _ in range(3):
            await session.work(await client.ask(TASK))
        first, second = await client.ask(TASK), await client.ask(TASK)
        await session.work(first)
        third = await client.ask(TASK)
        await session.work(second)
        await session.work(third)
    assert sorted(source.id for source in session.handlers) == ["main 1", "main 2"]
