"""What a model call is billed that did not end well: what the provider said, an estimate of the rest, never nothing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.engine import SPEC, STARTED, FakeLog, ports
from tests.fakes.folding import spending_of
from treadle.app.reports.usage_sums import UsageReader
from treadle.context.compaction_words import CompactionSettings, CompactionStrategy
from treadle.context.log_reader import TranscriptReader
from treadle.engine.core import compaction
from treadle.engine.core.advance import fold
from treadle.engine.core.budgets import LEAST_REPLY
from treadle.engine.core.past_history import calls_under_way, read_past
from treadle.engine.core.state import Compacting, Retrying, replace
from treadle.engine.ports import UnsentError, unsent
from treadle.engine.runtime.lost import lost_calls
from treadle.engine.runtime.model_requests import CallMeter, RequestSize, priced
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.side_question import answer_aside
from treadle.engine.runtime.track import Track
from treadle.protocol.errors import SessionClosedError
from treadle.protocol.events import (
    ENGINE,
    Compacted,
    CompactNow,
    Event,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    SummaryWritten,
)
from treadle.protocol.limits import Budget, Limits
from treadle.protocol.messages import Text, text_of
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    Prices,
    PriceStep,
    ReplyStop,
    StreamCallArguments,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
)
from treadle.protocol.notifications import Notice, Notification, ReplyDropped, TurnStop
from treadle.protocol.sealed import OF_SUMMARY, SideAnswered, TurnSettled
from treadle.protocol.usage import Usage

SIZE = RequestSize(tokens=100, cached=40, bytes_per_token=3.6)
TOLD = Usage(input_tokens=90, output_tokens=1)
PROSE = "abcd efgh " * 9
"""Twenty tokens at 4.5 letters each."""

PRICED = replace(SPEC, prices=Prices(input=1_000.0, output=10_000.0))
FAILED = StreamFailure(error=ModelError(kind=ErrorKind.SERVER, message="no"))


def used(*items: StreamEvent, size: RequestSize = SIZE) -> Usage:
    meter = CallMeter()
    meter.send(size)
    for item in items:
        meter.take(item)
    return meter.used


WRITTEN = (StreamUsage(usage=TOLD), StreamText(text=PROSE))
OWN = Usage(input_tokens=60, cache_read_tokens=40, estimated=True)
BILLS: list[tuple[str, Sequence[StreamEvent], Usage]] = [
    ("cut before any word", (), OWN),
    ("refused", (FAILED,), Usage()),
    ("taken, then failed", (StreamUsage(), FAILED), OWN),
    ("failed with its use", (StreamFailure(error=FAILED.error, usage=TOLD),), replace(TOLD, estimated=True)),
    ("cut in a text", (StreamText(text=PROSE),), replace(OWN, output_tokens=20)),
    ("cut in thoughts", (StreamThinking(text=PROSE), StreamText(text=PROSE)), replace(OWN, output_tokens=40)),
    ("cut in secret thoughts", (StreamThinkingDone(redacted="x" * 96),), replace(OWN, output_tokens=20)),
    ("input told", (StreamUsage(usage=TOLD), StreamText(text=PROSE)), replace(TOLD, output_tokens=21, estimated=True)),
    (
        "all told so far",
        (StreamUsage(usage=TOLD), StreamText(text=PROSE), StreamUsage(usage=replace(TOLD, output_tokens=17))),
        replace(TOLD, output_tokens=17, estimated=True),
    ),
    (
        "told, and more written",
        (StreamText(text=PROSE), StreamUsage(usage=replace(TOLD, output_tokens=17)), StreamText(text=PROSE)),
        replace(TOLD, output_tokens=37, estimated=True),
    ),
    (
        "told without news",
        (StreamUsage(usage=TOLD), StreamText(text=PROSE), StreamUsage(usage=TOLD), FAILED),
        replace(TOLD, output_tokens=21, estimated=True),
    ),
    (
        "searched",
        (StreamUsage(usage=replace(TOLD, searches=2)), FAILED),
        replace(TOLD, searches=2, estimated=True),
    ),
]


@pytest.mark.parametrize(("items", "bill"), [one[1:] for one in BILLS], ids=[one[0] for one in BILLS])
def test_a_call_is_billed_what_was_said_and_written(items: Sequence[StreamEvent], bill: Usage) -> None:
    assert used(*items) == bill


def test_a_call_that_was_never_sent_is_billed_nothing() -> None:
    assert CallMeter().used == Usage()
    assert [priced(None, one)[1] for one in (Usage(), OWN, Usage(searches=1))] == [0.0, None, None]


@pytest.mark.parametrize("price", [float("inf"), float("nan")])
def test_a_price_that_is_no_amount_is_unknown(price: float) -> None:
    spec = replace(SPEC, prices=Prices(input=price, output=1.0))
    assert [priced(spec, one)[1] for one in (OWN, Usage(output_tokens=1))] == [None, None]


def test_text_of_a_model_with_short_tokens_counts_for_more() -> None:
    short = replace(SIZE, bytes_per_token=1.8)
    assert used(StreamText(text=PROSE), size=short).output_tokens == 40
    assert used(StreamText(text='{"a":[1,2]}')).output_tokens == 6
    assert used(StreamText(text="漢字")).output_tokens == 3
    called = (StreamCallStart(index=0, name="read_file"), StreamCallArguments(index=0, text='{"path":"a"}'))
    assert used(*called).output_tokens == 21


UNSENT: list[tuple[str, Sequence[StreamEvent], Usage]] = [
    ("nothing had left", (), Usage()),
    ("a part of the reply was there", WRITTEN, replace(TOLD, output_tokens=21, estimated=True)),
    ("a reply that goes on was billed", (StreamUsage(usage=TOLD),), replace(TOLD, estimated=True)),
]


@pytest.mark.parametrize(("items", "bill"), [one[1:] for one in UNSENT], ids=[one[0] for one in UNSENT])
def test_a_request_that_had_not_left_is_billed_nothing(items: Sequence[StreamEvent], bill: Usage) -> None:
    meter = CallMeter()
    meter.send(SIZE)
    for item in items:
        meter.take(item)
    meter.cut(UnsentError())
    assert meter.used == bill


@dataclass
class Hanging:
    """Says these things of each reply, then nothing more until the call is cut; its request may never leave."""

    items: tuple[StreamEvent, ...]
    said: asyncio.Event
    before: list[list[StreamEvent]]
    leaves: bool = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if self.before:
            for item in self.before.pop(0):
                yield item
            return
        for item in self.items:
            yield item
        self.said.set()
        with nullcontext() if self.leaves else unsent():
            await asyncio.Event().wait()

    async def close(self) -> None:
        pass


def hanging(*items: StreamEvent, before: Sequence[list[StreamEvent]] = ()) -> Hanging:
    return Hanging(items, asyncio.Event(), [*before])


async def begun(provider: Hanging, log: FakeLog, limits: Limits = Limits(), **others: Any) -> tuple[Session, Any]:  # noqa: B008 - it is frozen
    made = ports(provider, log=log, model=lambda _: PRICED, **others)
    session = Session(Track(), made.clock)
    working = asyncio.create_task(session.run(made))
    await session.post(replace(STARTED, limits=limits))
    await session.post(Prompt(id="p", content=(Text(text="go"),)))
    return session, working


async def over(session: Session) -> None:
    """Wait for the end of the turn."""
    while session.state.turn is not None:
        await asyncio.sleep(0.001)


def of(log: FakeLog, kind: type[Any]) -> list[Any]:
    return [event.data for event in log.events if isinstance(event.data, kind)]


COST = (90 * 1_000 + 21 * 10_000) / 1_000_000


async def test_an_interrupted_call_is_billed_to_its_turn_and_told_to_surfaces() -> None:
    provider, log = hanging(*WRITTEN), FakeLog()
    session, working = await begun(provider, log)
    feed = session.follow()
    await provider.said.wait()
    await session.post(Interrupt())
    await over(session)
    (failed,) = of(log, ReplyFailed)
    assert (failed.usage, failed.cost, failed.left) == (replace(TOLD, output_tokens=21, estimated=True), COST, False)
    spent = session.state.money.spent
    assert (spent.cost, spent.tokens, spent.estimated) == (COST, 111, True)
    await session.close()
    await working
    told = [item async for item in feed if isinstance(item, ReplyDropped)]
    assert told == [ReplyDropped(usage=failed.usage, cost=COST, kept=failed.partial)]


async def test_a_call_that_is_interrupted_before_it_left_costs_nothing() -> None:
    provider, log = hanging(), FakeLog()
    provider.leaves = False
    session, working = await begun(provider, log)
    await provider.said.wait()
    await session.post(Interrupt())
    await over(session)
    assert [(one.usage, one.cost) for one in of(log, ReplyFailed)] == [(Usage(), 0.0)]
    await session.close()
    await working


async def test_an_estimate_counts_against_a_budget() -> None:
    provider, log = hanging(*WRITTEN), FakeLog()
    least = LEAST_REPLY * 10_000 / 1_000_000
    session, working = await begun(provider, log, Limits(session=Budget(cost=least + COST), raisable=False))
    await provider.said.wait()
    await session.post(Interrupt())
    await over(session)
    await session.post(Prompt(id="q", content=(Text(text="go on"),)))
    await over(session)
    last = of(log, TurnSettled)[-1].outcome
    assert last.stop is TurnStop.BUDGET
    assert "about $0.30 is spent" in last.why
    assert len(of(log, ReplyFailed)) == 1
    await session.close()
    await working


async def test_a_call_of_a_session_that_is_closed_is_billed_and_made_again_when_it_is_taken_up() -> None:
    provider, log = hanging(*WRITTEN), FakeLog()
    session, working = await begun(provider, log)
    await provider.said.wait()
    await session.close()
    await working
    (failed,) = of(log, ReplyFailed)
    assert (failed.usage.output_tokens, failed.cost, failed.left) == (21, COST, True)
    assert failed.partial is not None
    assert text_of(failed.partial.content) == "abcd efgh " * 9
    assert isinstance(session.state.activity, Retrying)
    assert session.state.turn is not None
    assert fold(log.events) == session.state
    assert not list(lost_calls(session.state, session.reader, PRICED))


async def test_a_call_of_a_killed_program_is_billed_by_our_own_count() -> None:
    provider, log = hanging(*WRITTEN), FakeLog()
    session, working = await begun(provider, log)
    await provider.said.wait()
    (lost,) = lost_calls(session.state, session.reader, PRICED)
    assert isinstance(lost, ReplyFailed)
    assert (lost.left, lost.usage.estimated, lost.usage.output_tokens) == (True, True, 0)
    assert lost.cost == lost.usage.input_tokens * 1_000 / 1_000_000 > 0
    (unpriced,) = lost_calls(session.state, session.reader, None)
    assert isinstance(unpriced, ReplyFailed)
    assert (unpriced.usage, unpriced.cost) == (lost.usage, None)
    reader, events = TranscriptReader(), list(log.events)
    for event in events:
        reader.take(event)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert list(lost_calls(fold(events), reader, PRICED)) == [lost]


async def asked_aside() -> "tuple[Session, FakeLog, asyncio.Task[None], asyncio.Task[Any]]":
    """Ask a question beside the work, and wait until a part of its answer has come."""
    whole: list[StreamEvent] = [
        StreamText(text="Done."),
        StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=50)),
    ]
    provider, log = hanging(*WRITTEN, before=[whole]), FakeLog()
    session, working = await begun(provider, log)
    await over(session)

    async def ask(*given: Any) -> SideAnswered:
        return await answer_aside("why?", *given)

    asking = asyncio.create_task(session.aside(ask))
    await provider.said.wait()
    return session, log, working, asking


async def test_an_interrupted_side_question_is_billed() -> None:
    session, log, working, asking = await asked_aside()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    while not (answered := of(log, SideAnswered)):
        await asyncio.sleep(0)
    assert [(one.question, one.cost, one.usage.estimated) for one in answered] == [("why?", COST, True)]
    await session.close()
    await working


async def test_a_provider_that_fails_is_billed_for_each_attempt_that_it_took() -> None:
    broken: list[StreamEvent] = [StreamUsage(usage=TOLD), StreamText(text=PROSE), FAILED]
    whole: list[StreamEvent] = [
        StreamText(text="Done."),
        StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=90)),
    ]
    provider, log = hanging(before=[[FAILED], broken, whole]), FakeLog()
    session, working = await begun(provider, log)
    await over(session)
    assert [(one.cost, one.usage.estimated) for one in of(log, ReplyFailed)] == [(0.0, False), (COST, True)]
    (finished,) = of(log, ReplyFinished)
    assert session.state.money.spent.cost == pytest.approx(COST + finished.cost)
    await session.close()
    await working


async def test_a_side_question_that_is_going_on_when_the_session_is_closed_is_billed() -> None:
    session, log, working, asking = await asked_aside()
    await session.close()
    await working
    with pytest.raises(SessionClosedError):
        await asking
    assert [(one.question, one.cost) for one in of(log, SideAnswered)] == [("why?", COST)]


async def test_an_answer_of_which_the_provider_tells_nothing_is_billed_by_our_own_count() -> None:
    silent: list[StreamEvent] = [StreamText(text=PROSE), StreamStop(reason=ReplyStop.END_TURN, usage=Usage())]
    whole: list[StreamEvent] = [
        StreamText(text="Done."),
        StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=50)),
    ]
    provider, log = hanging(before=[whole, silent]), FakeLog()
    session, working = await begun(provider, log)
    await over(session)

    async def ask(*given: Any) -> SideAnswered:
        return await answer_aside("why?", *given)

    answered = await session.aside(ask)
    assert answered.usage.estimated
    assert (answered.usage.output_tokens, answered.cost) > (10, 0.1)
    await session.close()
    await working


async def test_a_side_question_of_a_killed_program_is_billed_once_by_our_own_count() -> None:
    _, log, working, asking = await asked_aside()
    events = list(log.events)
    working.cancel()
    asking.cancel()
    await asyncio.gather(working, asking, return_exceptions=True)
    past = read_past(events)
    assert (past.state.asked, calls_under_way(past.state)) == (("why?",), 1)
    (lost,) = lost_calls(past.state, past.reader, PRICED)
    assert isinstance(lost, SideAnswered)
    assert (lost.question, lost.usage.estimated, lost.usage.output_tokens) == ("why?", True, 0)
    assert lost.cost is not None
    assert lost.cost > 0
    track = Track(past)
    track.take(Event(seq=events[-1].seq + 1, at=events[-1].at, source=ENGINE, data=lost))
    assert not list(lost_calls(track.state, track.reader, PRICED))
    assert track.state.money.spent.cost == pytest.approx(past.state.money.spent.cost + lost.cost)


def test_every_call_beside_the_work_is_billed_after_a_kill_and_none_that_was_not_sent() -> None:
    making = replace(fold([]), activity=Compacting(step=1, attempt=0, wanted=True))
    assert not list(lost_calls(making, TranscriptReader(), PRICED)), "the summary was not asked for yet"
    asked = replace(making, asked=("why?", OF_SUMMARY, "why?"))
    lost = [one for one in lost_calls(asked, TranscriptReader(), PRICED) if isinstance(one, SideAnswered)]
    assert [one.question for one in lost] == ["why?", OF_SUMMARY, "why?"]
    for one in lost:
        asked = compaction.side_answered(asked, one)[0]
    assert asked.asked == ()


def said(text: str) -> list[StreamEvent]:
    used = Usage(input_tokens=100, output_tokens=10)
    return [StreamText(text=text), StreamStop(reason=ReplyStop.END_TURN, usage=used)]


async def cut_summary(limits: Limits, *, of_turn: bool) -> tuple[Session, FakeLog, list[Notification]]:
    """Interrupt a summary in the middle, of a turn or between turns; the session is closed after that."""
    answers = [said(f"{number} one more word " * 200) for number in range(3)]
    provider, log = hanging(*WRITTEN, before=answers), FakeLog()
    window = 3_300 if of_turn else 200_000
    spec = replace(PRICED, context_window=window, max_output=100)
    settings = CompactionSettings(strategy=CompactionStrategy.SUMMARY)
    made = ports(provider, log=log, model=lambda _: spec, compaction=settings)
    session = Session(Track(), made.clock)
    feed = session.follow()
    working = asyncio.create_task(session.run(made))
    await session.post(replace(STARTED, limits=limits))
    for number in range(3):
        await session.post(Prompt(id=str(number), content=(Text(text="a question " * 40),)))
        await over(session)
    await session.post(Prompt(id="last", content=(Text(text="b " * 1_500),)) if of_turn else CompactNow())
    await provider.said.wait()
    assert isinstance(session.state.activity, Compacting)
    assert (session.state.turn is not None) is of_turn
    assert (session.state.asked, calls_under_way(session.state)) == ((OF_SUMMARY,), 1)
    await session.post(Interrupt())
    await over(session)
    while not of(log, SideAnswered):
        await asyncio.sleep(0)
    assert session.state.asked == ()
    await session.close()
    await working
    return session, log, [item async for item in feed]


@pytest.mark.parametrize("refused", [False, True])
async def test_a_summary_between_turns_is_in_what_surfaces_show_live_and_from_the_log(refused: bool) -> None:
    summary = [StreamText(text="short" if refused else "A summary. " * 10), *said("")[1:]]
    provider, log = hanging(before=[*(said(f"{n} one more word " * 200) for n in range(3)), summary]), FakeLog()
    made = ports(provider, log=log, model=lambda _: PRICED)
    session = Session(Track(), made.clock)
    feed = session.follow()
    working = asyncio.create_task(session.run(made))
    await session.post(STARTED)
    for number in range(3):
        await session.post(Prompt(id=str(number), content=(Text(text="a question " * 40),)))
        await over(session)
    await session.post(CompactNow())
    while not of(log, Compacted):
        await asyncio.sleep(0)
    await session.close()
    await working
    (written,) = of(log, SummaryWritten)
    assert (bool(written.error), written.cost > 0, session.state.asked) == (refused, True, ())
    spent = sum(one.cost for one in of(log, ReplyFinished)) + written.cost
    told = [item async for item in feed]
    live, past = spending_of(told), spending_of(one.notification for one in read_past(log.events).stamped)
    assert live.total == past.total == pytest.approx(spent) == pytest.approx(session.state.money.spent.cost)
    notices = [one.text for one in told if isinstance(one, Notice) and one.cost]
    text = f"The summary used 110 tokens, ${written.cost:.2f}."
    assert notices == [f"{text} It is part of what the session and the day cost, and of no turn."]


@pytest.mark.parametrize("of_turn", [True, False])
async def test_a_summary_that_is_cut_is_billed_and_said_though_its_turn_has_ended(of_turn: bool) -> None:
    session, log, told = await cut_summary(Limits(), of_turn=of_turn)
    (answered,) = of(log, SideAnswered)
    assert (answered.question, answered.cost, answered.usage.estimated) == (OF_SUMMARY, COST, True)
    outcomes = [one.outcome for one in of(log, TurnSettled)]
    ended = sum(outcome.cost or 0.0 for outcome in outcomes)
    if of_turn:
        assert (outcomes[-1].stop, outcomes[-1].cost) == (TurnStop.CANCELLED, 0.0)
    assert session.state.money.spent.cost == pytest.approx(ended + COST)
    assert fold(log.events) == session.state
    notices = [one for one in told if isinstance(one, Notice) and one.cost]
    said = f"Nothing was removed. The summary that was cut used 111 tokens, about ${COST:.2f}."
    assert [one.text for one in notices] == [f"{said} It is part of what the session and the day cost, and of no turn."]
    live, past = spending_of(told), spending_of(one.notification for one in read_past(log.events).stamped)
    assert live.total == past.total == pytest.approx(ended + COST)
    assert live.estimated
    assert past.estimated
    reader = UsageReader()
    for event in log.events:
        reader.take(event)
    assert reader.logged().spending.total == pytest.approx(ended + COST)


async def test_a_question_beside_the_work_is_billed_to_the_turn_or_told_of_by_itself() -> None:
    provider, log = hanging(before=[said("Done."), said("Because.")]), FakeLog()
    session, working = await begun(provider, log)
    feed = session.follow()
    await over(session)

    async def ask(*given: Any) -> SideAnswered:
        return await answer_aside("why?", *given)

    answered = await session.aside(ask)
    await session.close()
    await working
    told = [item async for item in feed]
    assert [one.cost for one in told if isinstance(one, Notice) and one.cost] == [answered.cost]
    assert spending_of(told).total == pytest.approx(session.state.money.spent.cost)


@pytest.mark.parametrize(
    ("told", "believed", "whole"),
    [
        (Usage(input_tokens=95, output_tokens=20), True, Usage(input_tokens=95, output_tokens=20)),
        (Usage(), False, Usage(input_tokens=60, cache_read_tokens=40, output_tokens=20, estimated=True)),
        # What its cache had is not in its count.
        (
            Usage(input_tokens=5, output_tokens=18),
            False,
            Usage(input_tokens=5, cache_read_tokens=95, output_tokens=18, estimated=True),
        ),
        (
            Usage(input_tokens=5),
            False,
            Usage(input_tokens=5, cache_read_tokens=95, output_tokens=20, estimated=True),
        ),
        (Usage(input_tokens=900, output_tokens=18), False, Usage(input_tokens=900, output_tokens=18)),
        (Usage(input_tokens=900), False, Usage(input_tokens=900, output_tokens=20, estimated=True)),
    ],
)
def test_what_a_server_leaves_out_of_its_count_is_estimated_and_says_so(
    told: Usage, believed: bool, whole: Usage
) -> None:
    meter = CallMeter()
    meter.send(SIZE)
    for item in (StreamText(text=PROSE), StreamStop(reason=ReplyStop.END_TURN, usage=told)):
        meter.take(item)
    assert meter.used_by_reply(believed=believed) == whole


@pytest.mark.parametrize(
    ("hour", "request_tokens", "cost", "estimated"),
    [
        (6.0, 1_000, 700 * 3.75 + 300 * 6.0, False),
        (None, 1_000, 700 * 3.75 + 300 * 6.0, True),  # twice the input, which no list says
        (6.0, 300_000, 299_700 * 7.5 + 300 * 12.0, True),
    ],
)
def test_what_the_cache_keeps_for_an_hour_costs_more(
    hour: float | None, request_tokens: int, cost: float, estimated: bool
) -> None:
    step = PriceStep(above=200_000, input=6.0, output=22.5, cache_write=7.5)
    prices = Prices(input=3.0, output=15.0, cache_write=3.75, cache_write_hour=hour, steps=(step,))
    usage = Usage(cache_write_tokens=request_tokens, cache_write_hour_tokens=300)
    marked, price = priced(replace(SPEC, prices=prices), usage)
    assert price == pytest.approx(cost / 1_000_000)
    assert marked.estimated is estimated
