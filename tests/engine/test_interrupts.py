"""An interrupt ends the turn, at whatever pass of the event loop it comes."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.fakes.engine import STARTED, FakeLog, FakeProvider, FakeTool, calls, ports
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.protocol.events import Event, Interrupt, Prompt, SetPresence
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnEnded, TurnStop
from treadle.protocol.tools import CallResult, Outcome, result_text

PATIENCE = 90.0
FOLLOWED = ("Prompt", "ContextReady", "CallProposed", "ReplyFinished", "CallJudged", "CallStarted")
PASSES = range(9)


async def for_ever(_: object) -> CallResult:
    await asyncio.sleep(3600)
    raise AssertionError


async def at_once(_: object) -> CallResult:
    return result_text(Outcome.OK, "done")


async def interrupted(kind: str, passes: int, *tools: FakeTool) -> tuple[TurnStop, FakeLog]:
    """Post an interrupt some passes of the loop after an event of this kind was logged first."""
    log = FakeLog()
    made = ports(FakeProvider(*calls(*(tool.name for tool in tools))), *tools, log=log)
    session = Session(Track(), made.clock)

    def interrupt(left: int) -> None:
        if left:
            asyncio.get_running_loop().call_soon(interrupt, left - 1)
        else:
            session.post_soon(Interrupt())

    def look(events: Sequence[Event]) -> None:
        if any(type(event.data).__name__ == kind for event in events):
            log.appended = lambda _: None
            interrupt(passes)

    log.appended = look
    feed = session.follow()
    working = asyncio.create_task(session.run(made))
    for event in (STARTED, SetPresence(user_present=True), Prompt(id="p", content=(Text(text="go"),))):
        await session.post(event)
    async with asyncio.timeout(PATIENCE):
        outcome = await anext(item.outcome async for item in feed if isinstance(item, TurnEnded))
    await session.close()
    await working
    return outcome.stop, log


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("kind", FOLLOWED)
async def test_an_interrupt_at_any_pass_of_the_loop_ends_a_turn_with_a_call_that_never_ends(
    kind: str, passes: int
) -> None:
    stop, log = await interrupted(kind, passes, FakeTool("wait", for_ever))
    assert stop is TurnStop.CANCELLED
    kinds = [type(event.data).__name__ for event in log.events]
    assert kinds.count("CallFinished") == kinds.count("CallStarted")


@pytest.mark.parametrize("kind", FOLLOWED)
async def test_an_interrupt_ends_a_turn_in_the_middle_of_several_calls(kind: str) -> None:
    for passes in PASSES:
        stop, _ = await interrupted(kind, passes, FakeTool("first", at_once), FakeTool("second", for_ever))
        assert stop is TurnStop.CANCELLED


async def test_the_sweep_reaches_the_start_of_a_call_and_the_interrupt_in_one_batch() -> None:
    batches = [
        batch
        for passes in PASSES
        for batch in (await interrupted("CallJudged", passes, FakeTool("wait", for_ever)))[1].batches
    ]
    assert ("CallStarted", "Interrupt") in batches
