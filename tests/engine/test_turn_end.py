"""What ends a turn is in the log, for good, before anybody is told that the turn has ended."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.fakes.engine import STARTED, USAGE, FakeLog, FakeProvider, ports
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.errors import StoreError
from treadle.protocol.events import Event, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ReplyStop, StreamStop, StreamText
from treadle.protocol.notifications import TurnEnded, TurnOutcome
from treadle.protocol.sealed import TurnSettled

HERE = Source(kind="test")
REPLY = (StreamText(text="Done."), StreamStop(reason=ReplyStop.END_TURN, usage=USAGE))


def settles(events: Sequence[Event]) -> bool:
    return any(isinstance(event.data, TurnSettled) for event in events)


class WatchedLog(FakeLog):
    """Says which batches had to last, and what was told when the end of the turn was written."""

    def __init__(self) -> None:
        super().__init__()
        self.durable: list[bool] = []

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        if settles(events):
            self.durable.append(durable)
            await self.end()
        await super().append(events, durable=durable)

    async def end(self) -> None:
        """Do what this log does with the end of a turn."""


class BrokenLog(WatchedLog):
    async def end(self) -> None:
        raise StoreError("log-unwritable", "The log cannot be written.", why="The disk is full.", fix="Make room.")


class HangingLog(WatchedLog):
    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def end(self) -> None:
        self.begun.set()
        await self.go.wait()


async def begun(log: WatchedLog) -> tuple[Session, asyncio.Task[None], list[TurnOutcome], list[TurnOutcome]]:
    """A session whose turn is under way, with who followed it and who asked for it: what they were told of its end."""
    made = ports(FakeProvider(*REPLY), log=log)
    session = Session(Track(), made.clock)
    shown: list[TurnOutcome] = []
    answered: list[TurnOutcome] = []
    feed = session.follow()

    async def follow() -> None:
        async for item in feed:
            shown.extend([item.outcome] if isinstance(item, TurnEnded) else [])

    follower = asyncio.create_task(follow())
    session.answer_to(HERE, answered.append)
    working = asyncio.create_task(session.run(made))
    working.add_done_callback(lambda _: follower.cancel())
    await session.post(STARTED)
    await session.post(Prompt(id="p", content=(Text(text="go"),)), HERE)
    return session, working, shown, answered


async def test_the_end_of_a_turn_survives_a_power_cut() -> None:
    log = WatchedLog()
    session, working, _, answered = await begun(log)
    while not answered:
        await asyncio.sleep(0)
    assert log.durable == [True]
    await session.close()
    await working


async def test_nobody_is_told_of_an_end_that_could_not_be_written() -> None:
    log = BrokenLog()
    _, working, shown, answered = await begun(log)
    with pytest.raises(ExceptionGroup) as caught:
        await working
    assert caught.group_contains(StoreError)
    assert (shown, answered, log.durable) == ([], [], [True])


async def test_nobody_is_told_of_an_end_while_it_is_being_written() -> None:
    log = HangingLog()
    session, working, shown, answered = await begun(log)
    await log.begun.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    assert (shown, answered) == ([], [])
    log.go.set()
    while not (shown and answered):
        await asyncio.sleep(0)
    await session.close()
    await working
