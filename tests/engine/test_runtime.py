"""The runtime: what is sent, run, kept and said when work goes well, fails, is cut, or is taken up again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import SPEC, STARTED, USAGE, FakeLog, FakeProvider, FakeTool, agree, calls, ports
from treadle.engine.core import texts
from treadle.engine.core.copy_fate import KEEP_UNKNOWN
from treadle.engine.core.past_history import read_past
from treadle.engine.core.state import phase, replace
from treadle.engine.ports import Output, Ports, Prepared, SharedSpent
from treadle.engine.runtime import perform, tool_call
from treadle.engine.runtime.feeds import Feed
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.policy.secrets import known_secrets
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import RefusedError, StoreError, ToolError
from treadle.protocol.events import (
    FILES,
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    CompactNow,
    ContextExceeded,
    ContextReady,
    EditChecklist,
    Event,
    Interrupt,
    Noted,
    OfferChanged,
    Op,
    Pin,
    Prompt,
    ReplyFinished,
    Resumed,
    SetFallback,
    SetMode,
    SetPresence,
    Source,
    SummaryWritten,
)
from treadle.protocol.limits import RUN_BUDGET, Budget, Limits
from treadle.protocol.messages import Enclosure, EnclosureKind, Image, Text, ToolResult, text_of
from treadle.protocol.models import (
    ErrorKind,
    ModelChoice,
    ModelError,
    ModelRequest,
    Prices,
    ReplyStop,
    Spent,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.notifications import (
    CallChanged,
    CallOutput,
    ContextCompacted,
    MessageDone,
    Notice,
    Notification,
    Phase,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    TextDelta,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)
from treadle.protocol.permissions import (
    Allowance,
    AllowScope,
    Decision,
    Mode,
    OptionKind,
    Question,
    Situation,
    Standing,
    Verdict,
)
from treadle.protocol.sealed import Passage, PassageKind, PromptPart, ResultMade, system_text
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    Confinement,
    CopyChange,
    CopyChanges,
    Flow,
    Origin,
    Outcome,
    Preview,
    Rights,
    Risk,
    ToolEffect,
    ToolTraits,
    WritePath,
    result_text,
)
from treadle.protocol.usage import Usage
from treadle.workspace.files.names import hash_of_file

PATIENCE = 90.0
DONE: list[StreamEvent] = [StreamText(text="done"), StreamStop(reason=ReplyStop.END_TURN, usage=USAGE)]


class Replies:
    """Gives one reply after the other; the last one from then on."""

    def __init__(self, *replies: Sequence[StreamEvent]) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = replies

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        for event in self._replies[min(len(self.requests), len(self._replies)) - 1]:
            yield event

    async def close(self) -> None:
        pass


class Run:
    """A session that works, and what came of it."""

    def __init__(self, session: Session, log: FakeLog) -> None:
        self.session = session
        self.log = log
        self.feed = session.follow()
        self.told: list[Notification] = []

    async def prompt(self, text: str = "go") -> TurnOutcome:
        """Ask for something and wait for the end of the turn."""
        await self.session.post(Prompt(id=f"p{len(self.log.events)}", content=(Text(text=text),)))
        return await self.end()

    async def end(self) -> TurnOutcome:
        async with asyncio.timeout(PATIENCE):
            async for told in self.feed:
                self.told.append(told)
                if isinstance(told, TurnEnded):
                    return told.outcome
        raise AssertionError("the session was closed")

    async def asked(self) -> Question:
        """Wait for the next question."""
        async with asyncio.timeout(PATIENCE):
            async for told in self.feed:
                if isinstance(told, QuestionAsked):
                    return told.question
        raise AssertionError("the session was closed")

    async def until(self, kind: type) -> None:
        """Wait for a notification of a kind."""
        async with asyncio.timeout(PATIENCE):
            async for told in self.feed:
                self.told.append(told)
                if isinstance(told, kind):
                    return

    def of(self, *kinds: type) -> list[Any]:
        """Give the events of these kinds."""
        return [event.data for event in self.log.events if isinstance(event.data, kinds)]


@asynccontextmanager
async def working(made: Ports, log: FakeLog, *first: Any, track: Track | None = None) -> AsyncIterator[Run]:
    session = Session(track or Track(), made.clock)
    run = Run(session, log)
    task = asyncio.create_task(session.run(made))
    started = replace(STARTED, limits=Limits(asks_end=made.hooks is not None))
    for event in first or (started, SetPresence(user_present=True)):
        await session.post(event)
    try:
        yield run
    finally:
        await session.close()
        await task


async def ok(_: Output) -> CallResult:
    return result_text(Outcome.OK, "worked")


def results(request: ModelRequest) -> list[tuple[str, bool]]:
    """What the model reads as results in the last message."""
    blocks = request.messages[-1].content
    return [(text_of(one.content), one.is_error) for one in blocks if isinstance(one, ToolResult)]


async def test_a_result_goes_back_to_the_model_with_the_next_request() -> None:
    log, provider = FakeLog(), Replies(calls("look"), DONE)
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        outcome = await run.prompt("look at it")
    assert (outcome.stop, outcome.text, outcome.steps) == (TurnStop.END_TURN, "done", 2)
    assert results(provider.requests[1]) == [("worked", False)]
    assert [text_of(provider.requests[0].messages[0].content)] == [
        "<task>look at it</task><environment>\nhere\n</environment>"
    ]
    assert [request.id for request in provider.requests] == ["s-1", "s-2"]
    assert [tool.name for tool in provider.requests[0].tools] == ["look"]


async def test_what_a_reply_says_behind_a_call_is_told_behind_it_however_long_the_log_takes() -> None:
    said = asyncio.Event()

    class SlowLog(FakeLog):
        async def append(self, events: Sequence[Event], *, durable: bool) -> None:
            if any(isinstance(event.data, CallProposed) for event in events):
                await asyncio.wait_for(said.wait(), PATIENCE)
            await super().append(events, durable=durable)

    class Talking(Replies):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            async for event in super().stream(request):
                yield event
                if isinstance(event, StreamText) and event.text == "Two.":
                    await asyncio.sleep(0)
                    said.set()

    *call, stop = calls("look")
    log, provider = SlowLog(), Talking([StreamText(text="One."), *call, StreamText(text="Two."), stop], DONE)
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        await run.prompt()
    told = [one for one in run.told if isinstance(one, TextDelta | CallChanged | MessageDone)]
    assert [getattr(one, "text", type(one).__name__) for one in told[:4]] == [
        *("One.", "CallChanged", "Two.", "MessageDone")
    ]


async def test_the_offer_is_in_the_log_once_and_again_when_it_changes() -> None:
    log, provider = FakeLog(), Replies(calls("look"), DONE)
    tools = {"look": FakeTool("look", ok)}
    system = ["one"]
    made = replace(ports(provider, log=log), tools=tools, system=lambda *_: (PromptPart(name="work", text=system[0]),))
    async with working(made, log) as run:
        await run.prompt()
        system[0] = "two"
        await run.prompt()
        tools["more"] = FakeTool("more", ok)
        await run.prompt()
    offers = run.of(OfferChanged)
    assert [(system_text(offer.system), [tool.name for tool in offer.tools]) for offer in offers] == [
        ("one", ["look"]),
        ("two", ["look"]),
        ("two", ["look", "more"]),
    ]
    sent = [(request.system, len(request.tools)) for request in provider.requests]
    assert sent == [("one", 1), ("one", 1), ("two", 1), ("two", 2)]
    assert provider.requests[0].tools is offers[0].tools


async def test_xml_calls_are_described_in_the_prompt_only() -> None:
    log, provider = FakeLog(), Replies(DONE)
    started = replace(STARTED, choice=replace(STARTED.choice, tool_protocol=ToolProtocol.XML))
    end: list[StreamEvent] = [StreamText(text="<look></look>"), StreamStop(reason=ReplyStop.END_TURN, usage=USAGE)]
    provider = Replies(end, DONE)
    made = ports(provider, FakeTool("look", ok), log=log)
    async with working(made, log, started, SetPresence(user_present=False)) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await run.end()
    assert all(request.tools == () for request in provider.requests)
    assert "worked" in str(provider.requests[1].messages[-1])


async def test_a_failing_tool_gives_the_model_one_line_and_the_developer_the_trace() -> None:
    async def breaks(_: Output) -> CallResult:
        raise ValueError("password hunter22 is wrong")

    async def refuses(_: Output) -> CallResult:
        raise ToolError("Use another name.", invalid=True)

    log, provider, traced = FakeLog(), Replies(calls("breaks", "refuses"), DONE), list[BaseException]()
    made = ports(provider, FakeTool("breaks", breaks), FakeTool("refuses", refuses), log=log)
    made = replace(made, redactor=lambda: known_secrets({"PASSWORD": "hunter22"}), trace=traced.append)
    async with working(made, log) as run:
        await run.prompt()
    (broken, broken_is_error), (refused, refused_is_error) = results(provider.requests[1])
    assert broken.startswith("breaks failed inside Treadle: ValueError: password ")
    assert "hunter22" not in broken
    assert (refused, broken_is_error, refused_is_error) == ("Use another name.", True, True)
    assert [type(error) for error in traced] == [ValueError]
    assert [finished.result.outcome for finished in run.of(CallFinished)] == [Outcome.FAILED, Outcome.INVALID]


async def test_a_tool_that_ends_the_program_ends_its_call_alone() -> None:
    async def leaves(_: Output) -> CallResult:
        raise SystemExit(3)

    log, provider = FakeLog(), Replies(calls("leaves"), DONE)
    async with working(ports(provider, FakeTool("leaves", leaves), log=log), log) as run:
        await run.prompt()
    ((left, left_is_error),) = results(provider.requests[1])
    assert (left, left_is_error) == ("leaves failed inside Treadle: SystemExit: 3. Try another way.", True)


async def test_what_a_running_call_prints_is_shown_without_secrets_and_kept_when_it_is_cut() -> None:
    started = asyncio.Event()

    async def prints(output: Output) -> CallResult:
        output("one hunter22 ")
        output("two\n")
        started.set()
        await asyncio.sleep(3600)
        raise AssertionError

    log, provider = FakeLog(), Replies(calls("prints"), DONE)
    made = replace(
        ports(provider, FakeTool("prints", prints), log=log), redactor=lambda: known_secrets({"PASSWORD": "hunter22"})
    )
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(started.wait(), PATIENCE)
        await run.session.post(Interrupt())
        assert (await run.end()).stop is TurnStop.CANCELLED
        await run.prompt()
    shown = "".join(told.text for told in run.told if isinstance(told, CallOutput))
    assert "hunter22" not in shown
    assert shown.endswith("two\n")
    ((said, is_error),) = results(provider.requests[1])
    assert said.startswith(texts.INTERRUPTED)
    assert said.endswith("two\n")
    assert is_error


async def test_a_long_result_is_cut_to_a_quarter_of_the_window() -> None:
    async def long(_: Output) -> CallResult:
        return result_text(Outcome.OK, "x" * 50_000)

    log, provider = FakeLog(), Replies(calls("long"), DONE)
    async with working(ports(provider, FakeTool("long", long), log=log), log) as run:
        await run.prompt()
    ((said, _),) = results(provider.requests[1])
    assert 5_000 < len(said) < 10_000
    assert "ask for a smaller part" in said


async def test_what_does_not_fit_makes_room_before_it_is_sent() -> None:
    async def long(_: Output) -> CallResult:
        return result_text(Outcome.OK, "word " * 1_600)

    unmeasured = [replace(one, usage=Usage()) if isinstance(one, StreamStop) else one for one in calls("long")]
    log, provider = FakeLog(), Replies(*[unmeasured] * 9, DONE)
    made = ports(provider, FakeTool("long", long), log=log)
    started = replace(STARTED, limits=Limits(max_repeats=100))
    async with working(made, log, started, SetPresence(user_present=True)) as run:
        outcome = await run.prompt("the task")
    assert outcome.stop is TurnStop.END_TURN, outcome
    assert run.of(ContextExceeded)
    (made_room, *_) = run.of(Compacted)
    assert made_room.dropped >= 2
    ready = [event.seq for event in log.events if isinstance(event.data, ContextReady | ReplyFinished)]
    assert made_room.through in ready
    longest = max(len(text_of(one.content)) for request in provider.requests for one in request.messages)
    assert longest < 9_000 * 3
    assert all("the task" in str(request.messages[0]) for request in provider.requests)
    assert read_past(log.events).transcript.messages(ToolProtocol.NATIVE)[:-1] == provider.requests[-1].messages


async def test_the_days_budget_is_reserved_before_a_request_and_prices_are_in_its_terms() -> None:
    reserved: list[Spent] = []

    class Purse:
        async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
            reserved.append(worst)
            return SharedSpent(day=Spent(cost=0.25, tokens=5))

    log, provider = FakeLog(), Replies(DONE)
    spec = replace(SPEC, prices=Prices(input=1.0, output=2.0, cache_write=3.0), max_output=1_500)
    made = replace(ports(provider, log=log), shared_budgets=Purse(), model=lambda _: spec)
    limits = Limits(day=Budget(cost=10.0))
    async with working(made, log, replace(STARTED, limits=limits), SetPresence(user_present=True)) as run:
        outcome = await run.prompt()
    (ready,) = run.of(ContextReady)
    assert ready.terms.day == Spent(cost=0.25, tokens=5)
    assert (ready.terms.input_price, ready.terms.output_price, ready.terms.max_output) == (3.0, 2.0, 1_500)
    assert len(reserved) == 1
    assert 0.003 < reserved[0].cost < 0.01
    assert provider.requests[0].max_tokens == 1_500
    assert outcome.cost == pytest.approx((10 * 1.0 + 2 * 2.0) / 1e6)


@pytest.mark.parametrize("rest", [1.0, 0.001])
async def test_a_request_that_is_sent_again_reserves_the_money_of_the_run_again_or_is_not_sent(rest: float) -> None:
    reserved: list[Spent] = []
    others = [Spent(), Spent(cost=1.0 - rest)]

    class RunPurse:
        async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
            assert not aside
            reserved.append(worst)
            return SharedSpent(run=others[min(len(reserved), 2) - 1])

    busy = ModelError(kind=ErrorKind.OVERLOADED, message="busy", retry_after=0.01)
    log, provider = FakeLog(), Replies([StreamFailure(error=busy)], DONE)
    spec = replace(SPEC, prices=Prices(input=1.0, output=2.0), max_output=1_500)
    made = replace(ports(provider, log=log), shared_budgets=RunPurse(), model=lambda _: spec)
    limits = Limits(run=Budget(cost=1.0))
    async with working(made, log, replace(STARTED, limits=limits), SetPresence(user_present=False)) as run:
        outcome = await run.prompt()
    if rest == 1.0:
        assert (outcome.stop, len(provider.requests), reserved) == (TurnStop.END_TURN, 2, [reserved[0]] * 2)
    else:
        assert (outcome.stop, len(provider.requests), reserved[2]) == (TurnStop.BUDGET, 1, Spent())
        assert outcome.why.startswith(f"{RUN_BUDGET} $1.00: ")


@pytest.mark.parametrize(("price", "most"), [(2.0, 4_000), (20.0, None), (20_000.0, 0)])
async def test_a_model_that_takes_over_is_called_for_what_the_budget_leaves_at_its_own_price(
    price: float, most: int | None
) -> None:
    """It is called with no more than it can answer, and than is left; not at all where that is too little."""
    busy = ModelError(kind=ErrorKind.BALANCE, message="no money")
    log, provider = FakeLog(), Replies([StreamFailure(error=busy)], DONE)
    first = replace(SPEC, context_window=200_000, prices=Prices(input=1.0, output=2.0), max_output=60_000)
    spare = replace(first, name="spare", prices=Prices(input=price / 2, output=price), max_output=4_000)
    if most is None:
        spare = replace(spare, max_output=60_000)
    specs = {"q/spare": spare}
    made = replace(ports(provider, log=log), model=lambda ref: specs.get(ref, first))
    started = replace(STARTED, limits=Limits(session=Budget(cost=0.1)))
    fallback = SetFallback(choice=ModelChoice(model="q/spare", tool_protocol=ToolProtocol.NATIVE))
    async with working(made, log, started, SetPresence(user_present=False), fallback) as run:
        outcome = await run.prompt()
    sent = [(request.model, request.max_tokens) for request in provider.requests]
    bound = sent[0][1] or 0
    assert 40_000 < bound < 50_000, "what $0.10 pays for at $2 for a million"
    if most == 0:
        assert (outcome.stop, len(sent)) == (TurnStop.BUDGET, 1)
        assert "the session's budget of $0.10" in outcome.why
        return
    assert outcome.stop is TurnStop.END_TURN
    assert sent[1][0] == "spare"
    assert sent[1][1] == most if most else 4_000 < (sent[1][1] or 0) < 5_000


async def test_what_was_reserved_for_a_model_that_is_not_called_is_given_back() -> None:
    reserved: list[Spent] = []

    class DayPurse:
        async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
            assert not aside
            reserved.append(worst)
            return SharedSpent()

    busy = ModelError(kind=ErrorKind.BALANCE, message="no money")
    log, provider = FakeLog(), Replies([StreamFailure(error=busy)], DONE)
    first = replace(SPEC, prices=Prices(input=1.0, output=2.0), max_output=1_500)
    spare = replace(first, name="spare", prices=Prices(input=10_000.0, output=20_000.0))
    specs = {"q/spare": spare}
    made = replace(ports(provider, log=log), shared_budgets=DayPurse(), model=lambda ref: specs.get(ref, first))
    fallback = SetFallback(choice=ModelChoice(model="q/spare", tool_protocol=ToolProtocol.NATIVE))
    started = replace(STARTED, limits=Limits(day=Budget(cost=1.0)))
    async with working(made, log, started, SetPresence(user_present=False), fallback) as run:
        outcome = await run.prompt()
    assert (outcome.stop, len(provider.requests), reserved[-1]) == (TurnStop.BUDGET, 1, Spent())


async def test_what_the_user_wrote_into_a_file_comes_before_the_step() -> None:
    found: list[Op | None] = [EditChecklist(text="- [ ] mine"), None, None]

    async def look() -> Op | None:
        return found.pop(0) if found else None

    log, provider = FakeLog(), Replies(DONE)
    async with working(replace(ports(provider, log=log), before_step=(look,)), log) as run:
        await run.prompt()
    (edit,) = [event for event in log.events if isinstance(event.data, EditChecklist)]
    assert edit.source == FILES
    assert "mine" in str(provider.requests[0].messages[0])


async def test_observers_read_what_is_logged_and_cannot_end_the_session() -> None:
    seen: list[Event] = []

    async def observer(events: Sequence[Event], /) -> None:
        seen.extend(events)

    async def broken(_: Sequence[Event], /) -> None:
        raise StoreError("log-unwritable", "The ledger is full.", why="No space.")

    log, provider = FakeLog(), Replies(DONE)
    async with working(replace(ports(provider, log=log), observers=(broken, observer)), log) as run:
        assert (await run.prompt()).stop is TurnStop.END_TURN
    assert seen == log.events
    assert Notice(text="The ledger is full. No space.") in run.told


async def test_a_log_that_cannot_be_written_ends_the_session_and_refuses_the_rest() -> None:
    class Full(FakeLog):
        async def append(self, events: Sequence[Event], *, durable: bool) -> None:
            if any(isinstance(event.data, Prompt) for event in events):
                raise StoreError("log-unwritable", "full")
            await super().append(events, durable=durable)

    made = ports(Replies(DONE), log=Full())
    session = Session(Track(), made.clock)
    task = asyncio.create_task(session.run(made))
    await session.post(STARTED)
    with pytest.raises(RefusedError):
        await session.post(Prompt(id="p", content=(Text(text="go"),)))
    with pytest.raises(ExceptionGroup):
        await task
    assert session.closed
    with pytest.raises(RefusedError):
        await session.post(SetMode(mode=Mode.PLAN))


@pytest.mark.parametrize(("effect", "durable"), [(ToolEffect.PURE, False), (ToolEffect.ONCE, True)])
async def test_what_must_last_is_written_durably(effect: ToolEffect, durable: bool) -> None:
    kept: dict[str, bool] = {}

    class Noting(FakeLog):
        async def append(self, events: Sequence[Event], *, durable: bool) -> None:
            await super().append(events, durable=durable)
            for event in events:
                kept[type(event.data).__name__] = durable

    log = Noting()
    tool = FakeTool("look", ok, traits=ToolTraits(effect=effect))
    async with working(ports(Replies(calls("look"), DONE), tool, log=log), log) as run:
        await run.prompt()
    assert kept["Prompt"]
    assert not kept["ContextReady"]
    assert kept["CallStarted"] is kept["CallFinished"] is durable


def needs_yes(*_: object) -> Decision:
    offer = Allowance(id="all", tool="change")
    return Decision(verdict=Verdict.REQUIRE_USER_CONFIRMATION, risk=Risk.WRITE, digest="d", offers=(offer,))


async def test_a_lasting_yes_is_remembered_and_said_where_it_could_not_be() -> None:
    remembered: list[Allowance] = []

    def remember(allowances: Sequence[Allowance]) -> None:
        remembered.extend(allowances)
        raise StoreError("rules", "The rule was not saved.", why="Read-only.")

    log = FakeLog()
    made = ports(Replies(calls("change"), DONE), FakeTool("change", ok), log=log, judge=needs_yes, remember=remember)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            while not run.session.state.questions:
                await asyncio.sleep(0.001)
        question = run.session.state.questions[0]
        await run.session.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER))
        await run.end()
    assert [one.id for one in remembered] == ["all"]
    assert Notice(text="The rule was not saved. Read-only. It applies to this session only.") in run.told


class Writer:
    """A tool that writes a file, as its journal says; `ran` counts."""

    def __init__(self, path: Path, confined: bool = False) -> None:
        self.path, self.ran, self.rights, self._confined = path, 0, list[Rights](), confined
        self.ready: Prepared | None = None

    @property
    def spec(self) -> Any:
        return FakeTool("write", ok, traits=ToolTraits(effect=ToolEffect.IDEMPOTENT)).spec

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        if self.ready is not None:
            return self.ready
        before = hash_of_file(str(self.path))

        async def run(_: Output) -> CallResult:
            self.ran += 1
            self.path.write_text("after")
            return CallResult(outcome=Outcome.OK, content=(Text(text="written"),), origin=Origin.WEB)

        def within(rights: Rights) -> Prepared:
            self.rights.append(rights)
            return replace(made, confined=None)

        access = WritePath(path=str(self.path), before=before, after=AFTER)
        made = Prepared(accesses=(access,), preview=Preview(title="w"), run=run, confined=None)
        return replace(made, confined=within) if self._confined else made


AFTER = "ec5c8adbabcb40f6ff4b9ef4ca86c2e6e2ba11f0ec1fbd9da1b9a7fd4b5f2b56"


@pytest.fixture(autouse=True)
def _after(tmp_path: Path) -> None:
    """Hash what the writer leaves."""
    global AFTER  # noqa: PLW0603 - a constant that is computed once
    file = tmp_path / "hashed"
    file.write_text("after")
    AFTER = hash_of_file(str(file))
    file.unlink()


async def killed_while_writing(tmp_path: Path) -> tuple[FakeLog, Path]:
    """Give a log that ends while a file was being written."""
    file = tmp_path / "file"
    file.write_text("before")
    log = FakeLog()

    async def hangs(_: Output) -> CallResult:
        await asyncio.sleep(3600)
        raise AssertionError

    tool = Writer(file)
    prepared = await tool.prepare({})
    tool.ready = replace(prepared, run=hangs)
    made = ports(Replies(calls("write"), DONE), tool, log=log)
    session = Session(Track(), made.clock)
    task = asyncio.create_task(session.run(made))
    for event in (STARTED, SetPresence(user_present=True), Prompt(id="p", content=(Text(text="go"),))):
        await session.post(event)
    async with asyncio.timeout(PATIENCE):
        while not any(isinstance(event.data, CallStarted) for event in log.events):
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return log, file


@pytest.mark.parametrize(
    ("content", "ran", "said", "outcome"),
    [
        ("before", 1, tool_call.RERUN, Outcome.OK),
        ("after", 0, tool_call.ALREADY_DONE, Outcome.OK),
        ("another", 0, tool_call.CHANGED_BY_OTHERS, Outcome.UNKNOWN),
    ],
)
async def test_a_file_change_that_was_cut_is_settled_by_its_journal(
    tmp_path: Path, content: str, ran: int, said: str, outcome: Outcome
) -> None:
    cut, file = await killed_while_writing(tmp_path)
    kept = [event for event in cut.events if not isinstance(event.data, CallFinished | ResultMade)]
    kept = kept[: 1 + max(index for index, event in enumerate(kept) if isinstance(event.data, CallStarted))]
    log, tool = FakeLog(), Writer(file)
    log.events += kept
    file.write_text("before")
    judged = next(event.data for event in kept if isinstance(event.data, CallJudged))
    assert judged.accesses[0].after == AFTER  # type: ignore[union-attr]
    file.write_text(content)
    provider = Replies(DONE)
    track = Track(read_past(kept))
    async with working(ports(provider, tool, log=log), log, Resumed(user_present=True), track=track) as run:
        await run.end()
    assert tool.ran == ran
    ((read, is_error),) = results(provider.requests[0])
    assert said in read
    assert is_error is (outcome is not Outcome.OK)
    if ran:
        assert run.session.state.turns == 1
        assert any(finished.result.origin is Origin.WEB for finished in run.of(CallFinished)), "its origin taints"


async def test_a_command_runs_under_the_rights_of_its_decision_only(tmp_path: Path) -> None:
    def judge(*_: object) -> Decision:
        return Decision(verdict=Verdict.ALLOW, risk=Risk.EXECUTE, digest="d", confinement=Confinement.LOOK)

    tool, log = Writer(tmp_path / "file", confined=True), FakeLog()
    async with working(ports(Replies(calls("write"), DONE), tool, log=log, judge=judge), log) as run:
        await run.prompt()
    assert tool.rights == [Rights(confinement=Confinement.LOOK)]
    without, log = Writer(tmp_path / "file", confined=True), FakeLog()
    provider = Replies(calls("write"), DONE)
    async with working(ports(provider, without, log=log, judge=agree), log) as run:
        await run.prompt()
    assert without.ran == 0
    assert results(provider.requests[1]) == [(tool_call.NO_RIGHTS, True)]


async def test_a_judge_that_breaks_lets_nothing_run() -> None:
    ran = list[bool]()

    async def runs(_: Output) -> CallResult:
        ran.append(True)
        return result_text(Outcome.OK, "")

    def judge(spec: object, arguments: object, accesses: object, standing: Standing) -> Decision:
        assert standing.mode is Mode.FULL
        raise KeyError("rule")

    log, provider = FakeLog(), Replies(calls("runs"), DONE)
    async with working(ports(provider, FakeTool("runs", runs), log=log, judge=judge), log) as run:
        await run.prompt()
    assert not ran
    assert results(provider.requests[1])[0][1]


async def test_a_provider_that_breaks_ends_the_turn_with_an_error_and_the_session_goes_on() -> None:
    class Breaks(FakeProvider):
        broken = True

        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:  # type: ignore[override]
            if self.broken:
                raise ValueError("no hunter22")
            for event in DONE:
                yield event

    log, provider = FakeLog(), Breaks()
    made = replace(ports(provider, log=log), redactor=lambda: known_secrets({"PASSWORD": "hunter22"}))
    async with working(made, log) as run:
        outcome = await run.prompt()
        assert outcome.stop is TurnStop.ERROR
        assert outcome.error is not None
        assert "ValueError" in outcome.error.message
        assert "hunter22" not in outcome.error.message
        provider.broken = False
        assert (await run.prompt()).stop is TurnStop.END_TURN


async def test_a_tool_that_is_left_out_is_not_offered_and_says_why() -> None:
    def left_out(model: str, situation: Situation) -> Mapping[str, str]:
        assert (model, situation.user_present) == (SPEC.ref, True)
        return {"look": "not now"}

    log, provider = FakeLog(), Replies(calls("look"), DONE)
    tools = (FakeTool("look", ok), FakeTool("other", ok))
    async with working(ports(provider, *tools, log=log, left_out=left_out), log) as run:
        await run.prompt()
    assert [tool.name for tool in provider.requests[0].tools] == ["other"]
    ((said, is_error),) = results(provider.requests[1])
    assert "not now" in said
    assert is_error


async def test_the_outcome_of_what_is_ended_by_closing_is_kept() -> None:
    started = asyncio.Event()

    async def waits(output: Output) -> CallResult:
        output("half")
        started.set()
        await asyncio.sleep(3600)
        raise AssertionError

    log = FakeLog()
    async with working(ports(Replies(calls("waits"), DONE), FakeTool("waits", waits), log=log), log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        await asyncio.wait_for(started.wait(), PATIENCE)
    finished = run.of(CallFinished)
    assert [one.result.outcome for one in finished] == [Outcome.INTERRUPTED]
    assert "half" in str(finished[0].result.content)
    past = read_past(log.events)
    assert past.state.turn is not None


async def test_an_output_handler_is_given_the_end_of_the_turns_that_its_source_asked_for() -> None:
    log, ends = FakeLog(), list[str]()
    async with working(ports(Replies(DONE), log=log), log) as run:
        mine = Source(kind="web", id="1")
        run.session.answer_to(mine, lambda outcome: ends.append(outcome.text))
        await run.session.post(Prompt(id="a", content=(Text(text="go"),)), mine)
        await run.end()
        await run.session.post(Prompt(id="b", content=(Text(text="go"),)))
        await run.end()
    assert ends == ["done"]


async def test_what_a_call_itself_used_is_billed() -> None:
    async def asks_a_model(_: Output) -> CallResult:
        return replace(result_text(Outcome.OK, "a"), usage=Usage(input_tokens=100), cost=0.5)

    log = FakeLog()
    async with working(ports(Replies(calls("sub"), DONE), FakeTool("sub", asks_a_model), log=log), log) as run:
        outcome = await run.prompt()
    assert outcome.usage.input_tokens == 2 * 10 + 100
    assert run.session.state.money.spent.cost == pytest.approx(0.5)


def test_a_feed_ends_with_what_waits() -> None:
    async def read(feed: Feed) -> list[Notification]:
        return [told async for told in feed]

    made = ports(FakeProvider())
    session = Session(Track(), made.clock)
    feed = session.follow()
    session.publish(Notice(text="a"))
    feed.close()
    session.publish(Notice(text="b"))
    assert asyncio.run(read(feed)) == [Notice(text="a")]


COPY = CopyChanges(digest="c", changes=(CopyChange(path="/made", kind=ChangeKind.ADDED),))


async def in_a_copy(_: Output) -> CallResult:
    return replace(result_text(Outcome.OK, "printed"), copy=COPY)


@asynccontextmanager
async def keeping(keep: Callable[[str], Awaitable[CallResult]], **others: Any) -> AsyncIterator[tuple[Run, Replies]]:
    """A session whose command has changed something in its copy, and whose user has just said to keep it."""
    log, provider = FakeLog(), Replies(calls("run"), DONE)
    made = ports(provider, FakeTool("run", in_a_copy), log=log, keep=keep, **others)
    async with working(made, log) as run:
        await run.session.post(Prompt(id="p", content=(Text(text="go"),)))
        async with asyncio.timeout(PATIENCE):
            while not run.session.state.questions:
                await asyncio.sleep(0.001)
        question = run.session.state.questions[0]
        assert question.copy == COPY
        await run.session.post(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
        yield run, provider


KEPT = "printed\n[The user kept its changes. They are in the workspace now: /made (added).]"


async def test_changes_are_kept_once_the_log_says_that_it_begins() -> None:
    began: list[str] = []

    async def keep(digest: str, /) -> CallResult:
        began.extend((digest, type(run.log.events[-1].data).__name__))
        return CallResult(outcome=Outcome.OK)

    async with keeping(keep) as (run, provider):
        await run.end()
    assert began == ["c", "CallStarted"]
    assert results(provider.requests[1]) == [(KEPT, False)]


async def test_changes_that_cannot_be_kept_are_a_failure_that_the_model_reads() -> None:
    async def keep(_: str, /) -> CallResult:
        raise ToolError("The files were changed to hunter22 meanwhile.")

    async with keeping(keep) as (run, provider):
        await run.end()
    assert results(provider.requests[1]) == [
        ("printed\n[The files were changed to hunter22 meanwhile. The user wanted to keep: /made (added).]", True)
    ]


async def test_an_interrupt_waits_for_changes_that_are_being_kept() -> None:
    started, going_on = asyncio.Event(), asyncio.Event()

    async def keep(_: str, /) -> CallResult:
        started.set()
        await going_on.wait()
        return CallResult(outcome=Outcome.OK)

    async with keeping(keep) as (run, _):
        await asyncio.wait_for(started.wait(), PATIENCE)
        await run.session.post(Interrupt())
        await asyncio.sleep(0.05)
        assert run.session.state.turn is not None
        going_on.set()
        assert (await run.end()).stop is TurnStop.CANCELLED
    last = run.of(CallFinished, ResultMade)[-1]
    assert text_of(last.result.content) == KEPT


async def test_changes_that_are_still_being_applied_when_an_interrupt_waits_no_longer_are_not_said_to_be_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, going_on = asyncio.Event(), asyncio.Event()

    async def keep(_: str, /) -> CallResult:
        started.set()
        await going_on.wait()
        return CallResult(outcome=Outcome.OK)

    monkeypatch.setattr(perform, "_LONGEST_END", 0.01)
    async with keeping(keep) as (run, _):
        await asyncio.wait_for(started.wait(), PATIENCE)
        await run.session.post(Interrupt())
        await run.end()
        going_on.set()
    last = run.of(CallFinished, ResultMade)[-1]
    assert (last.result.outcome, last.result.copy) == (Outcome.UNKNOWN, None)
    assert text_of(last.result.content) == f"printed\n{KEEP_UNKNOWN}"


async def test_before_a_provider_has_counted_prompt_and_tools_are_part_of_the_estimate() -> None:
    counted = StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=1_000, output_tokens=5))
    log, provider = FakeLog(), Replies([StreamText(text="done"), counted])
    made = ports(
        provider, FakeTool("look", ok), log=log, system=lambda *_: (PromptPart(name="work", text="s" * 7_200),)
    )
    async with working(made, log) as run:
        await run.prompt()
        await run.prompt()
    first, second = run.of(ContextReady)
    assert 2_020 < first.tokens < 2_200
    assert 1_005 < second.tokens < 1_100, "the provider's count covers them"


@pytest.mark.parametrize("count", [0, 1, 300, 900_000])
async def test_a_count_that_cannot_be_right_is_marked_and_the_estimate_stays(count: int) -> None:
    counted = StreamStop(reason=ReplyStop.END_TURN, usage=Usage(input_tokens=count))
    log, provider = FakeLog(), Replies([StreamText(text="done"), counted])
    made = ports(provider, log=log, system=lambda *_: (PromptPart(name="work", text="s" * 7_200),))
    async with working(made, log) as run:
        await run.prompt("x" * 18_000)
        await run.prompt()
    first, second = run.of(ReplyFinished)
    assert (first.doubted, second.doubted) == (True, True)
    assert all(one.usage.estimated and one.usage.request_tokens > 6_900 for one in (first, second))
    assert all(6_900 < ready.tokens < 7_200 for ready in run.of(ContextReady))


async def test_only_what_waits_counts_for_a_feed_that_is_bounded() -> None:
    feed = Feed(most=1_000)

    def put(count: int) -> None:
        for number in range(count):
            feed.put(Stamped(number=number, notification=QuestionClosed(question_id=str(number))))

    put(4)
    reader = feed.stamped()
    for _ in range(3):
        await anext(reader)
    put(4)
    states = [feed.behind]
    put(1)
    assert [*states, feed.behind] == [False, True]
    assert [one async for one in reader] == []


PICTURE = Image(media_type="image/png", data="aGk=")


async def test_what_goes_along_with_a_prompt_is_sent_behind_it_and_named_to_surfaces() -> None:
    log, provider = FakeLog(), Replies(DONE)
    enclosed = (Enclosure(kind=EnclosureKind.FILE, origin="a.py", content=(Text(text="[a.py]"), PICTURE)),)
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        await run.session.post(Noted(notes=(Passage(kind=PassageKind.FILES, text="b.py is gone", origin="b.py"),)))
        await run.session.post(Prompt(id="p", content=(Text(text="read @a.py"),), enclosed=enclosed))
        await run.end()
        delivered = [one for one in run.told if isinstance(one, PromptDelivered)]
    texts = [block.text for block in provider.requests[0].messages[0].content if isinstance(block, Text)]
    assert texts == ["b.py is gone", "<task>", "read @a.py", "[a.py]", "</task>", "<environment>\nhere\n</environment>"]
    assert PICTURE in provider.requests[0].messages[0].content
    assert [one.enclosed for one in delivered] == [("a.py",)]


def says(text: str) -> list[StreamEvent]:
    usage = Usage(input_tokens=100, output_tokens=10)
    return [StreamText(text=text), StreamStop(reason=ReplyStop.END_TURN, usage=usage)]


LONG = ["one more word " * 200, "two more words " * 200, "three more words " * 200]
"""Answers that are worth leaving out."""


async def test_a_summary_that_the_user_wants_is_reviewed_rewritten_and_used() -> None:
    log = FakeLog()
    summaries = says("First words. " * 9), says("Better words. " * 9)
    provider = Replies(*map(says, LONG), *summaries, DONE)
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        for _ in range(3):
            await run.prompt("a question " * 40)
        await run.session.post(CompactNow(focus="the names"))
        first = await run.asked()
        assert first.preview is not None
        assert "First words." in first.preview.text
        await run.session.post(Answer(question_id=first.id, option=OptionKind.ANSWER, text="and the places"))
        second = await run.asked()
        await run.session.post(Answer(question_id=second.id, option=OptionKind.ANSWER, text=second.options[0]))
        await run.until(ContextCompacted)
        await run.session.post(Pin(id="a", text="never forget this"))
        await run.prompt("go on")
    asked = [text_of(request.messages[-1].content) for request in provider.requests[3:5]]
    assert "the names" in asked[0]
    assert "the names\nand the places" in asked[1]
    last = text_of(provider.requests[5].messages[0].content)
    assert "Better words." in last
    assert "First words." not in last
    assert "keep this in mind: never forget this" in text_of(provider.requests[5].messages[-1].content)
    assert [one.usage.input_tokens for one in run.of(SummaryWritten)] == [100, 100]
    assert [one.usage.output_tokens for one in run.of(SummaryWritten)] == [10, 10]


async def test_room_that_the_user_wants_in_a_turn_is_made_before_its_next_request() -> None:
    log = FakeLog()
    begun, going_on = asyncio.Event(), asyncio.Event()

    async def waits(_: Output) -> CallResult:
        begun.set()
        await going_on.wait()
        return result_text(Outcome.OK, "worked")

    provider = Replies(
        *map(says, LONG[:2]),
        calls("look"),
        says("What was said so far, and what was done, is summed up well here."),
        DONE,
    )
    made = replace(ports(provider, FakeTool("look", waits), log=log))
    async with working(made, log, STARTED, SetPresence(user_present=False)) as run:
        await run.prompt("a question " * 40)
        await run.prompt("a question " * 40)
        await run.session.post(Prompt(id="last", content=(Text(text="look"),)))
        await begun.wait()
        await run.session.post(CompactNow())
        going_on.set()
        assert (await run.end()).stop is TurnStop.END_TURN
    assert len(run.of(Compacted)) == 1
    assert results(provider.requests[3]) == [("worked", False)]
    assert "is summed up well" in text_of(provider.requests[4].messages[0].content)
    assert results(provider.requests[4]) == [("worked", False)]


async def test_an_interrupt_ends_a_summary_that_nobody_waits_for() -> None:
    log, asked = FakeLog(), asyncio.Event()

    class Hangs(Replies):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            if "about to lose" in text_of(request.messages[-1].content):
                asked.set()
                await asyncio.Event().wait()
            async for item in super().stream(request):
                yield item

    provider = Hangs(*map(says, LONG[:2]), DONE)
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        await run.prompt("a question " * 40)
        await run.prompt("a question " * 40)
        await run.session.post(CompactNow())
        await asked.wait()
        assert phase(run.session.state) is Phase.COMPACTING
        await run.session.post(Interrupt())
        assert phase(run.session.state) is Phase.WAITING_FOR_EVENT
        assert (await run.prompt("go on")).stop is TurnStop.END_TURN
    assert not run.of(Compacted, SummaryWritten)


async def test_a_model_that_sums_up_by_itself_goes_on_from_its_own_words() -> None:
    log = FakeLog()
    traits = ToolTraits(effect=ToolEffect.PURE, flow=Flow.CONDENSE)
    condense = calls("condense", context="What matters: the tests pass.")
    provider = Replies(*map(says, LONG[:2]), condense, DONE)
    tool = FakeTool("condense", ok, traits)
    async with working(ports(provider, tool, log=log), log, STARTED, SetPresence(user_present=False)) as run:
        await run.prompt("a question " * 40)
        await run.prompt("a question " * 40)
        assert (await run.prompt("sum up")).stop is TurnStop.END_TURN
    last = provider.requests[-1]
    assert "What matters: the tests pass." in text_of(last.messages[0].content)
    assert len(last.messages) == 3
    assert results(last) == [("worked", False)]


async def test_a_summary_stays_until_there_is_another_and_its_failure_is_said() -> None:
    log, failure = FakeLog(), StreamFailure(error=ModelError(kind=ErrorKind.SERVER, message="overloaded."))
    answers = [says(text) for text in LONG]
    provider = Replies(
        answers[0], answers[1], says("What I did at first. " * 9), answers[2], answers[0], [failure], DONE
    )
    async with working(
        ports(provider, FakeTool("look", ok), log=log), log, STARTED, SetPresence(user_present=False)
    ) as run:
        for texts in (("a", "b"), ("c", "d")):
            for text in texts:
                await run.prompt(text)
            await run.session.post(CompactNow())
            await run.until(ContextCompacted)
        await run.prompt("go on")
        said = [one.text for one in run.told if isinstance(one, Notice) and not one.usage.context_tokens]
    assert "What I did at first." in text_of(provider.requests[-1].messages[0].content)
    assert said == ["The model wrote no summary (overloaded). What the log knows takes its place."]


async def test_room_that_would_win_nothing_is_not_made_and_the_user_is_told() -> None:
    log, provider = FakeLog(), Replies(says("yes"))
    async with working(ports(provider, FakeTool("look", ok), log=log), log) as run:
        await run.prompt("a")
        await run.prompt("b")
        await run.session.post(CompactNow())
        await run.until(Notice)
    assert len(provider.requests) == 2
    assert [one.text for one in run.told if isinstance(one, Notice)] == [
        "The conversation is too short to remove anything from it."
    ]
