"""What sessions used: each event is counted once, whatever it is summed up by and however often it is read."""

import asyncio
import math
import random
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.engine.exploring import BOUNDED, walk
from tests.fakes.folding import spending_of
from treadle.app.reports.known_sessions import listed_sessions, sessions_usage
from treadle.app.reports.usage_report import (
    UsageKey,
    UsageReport,
    since_day,
    summed_usage,
    usage_lines,
    usage_report,
)
from treadle.app.reports.usage_sums import LoggedUsage, SessionUsage, UsageReader, sum_amounts
from treadle.app.subagents.writer_copies import make_writer_copy
from treadle.protocol.checkpoints import Parent
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import (
    ENGINE,
    CallFinished,
    CallProposed,
    ContextReady,
    Event,
    EventData,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    SessionStarted,
    SetMode,
    SetModel,
    SummaryWritten,
)
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, ReplyStop, ToolProtocol
from treadle.protocol.notifications import MessageDone
from treadle.protocol.permissions import Mode
from treadle.protocol.sealed import (
    ModelReplaced,
    ResultMade,
    RetryPlanned,
    SideAnswered,
    SideAsked,
)
from treadle.protocol.tools import CallResult, Outcome, ToolCall, ToolTraits, result_text
from treadle.protocol.usage import Usage
from treadle.store.sqlite import SessionRow, Store

NOON = 1_763_380_800_000
"""Milliseconds since 1970: 17 November 2025, 12:00 UTC."""

MESSAGE = Message(role=Role.ASSISTANT, content=())


def choice(model: str) -> ModelChoice:
    return ModelChoice(model=model, tool_protocol=ToolProtocol.NATIVE)


def started(parent: Parent | None = None) -> SessionStarted:
    return SessionStarted(session_id="s", workspace="/w", choice=choice("p/a"), mode=Mode.ASK, parent=parent)


def log(*data: EventData, at: Sequence[int] = ()) -> list[Event]:
    times = at or [NOON] * len(data)
    return [
        Event(seq=seq, at=when, source=ENGINE, data=one)
        for seq, (one, when) in enumerate(zip(data, times, strict=True), start=1)
    ]


def reply(cost: float | None = 0.5, usage: Usage | None = None) -> ReplyFinished:
    used = Usage(input_tokens=10, output_tokens=2) if usage is None else usage
    return ReplyFinished(step=1, attempt=1, message=MESSAGE, stop=ReplyStop.END_TURN, usage=used, cost=cost)


def call(name: str, call_id: str) -> CallProposed:
    return CallProposed(step=1, attempt=1, call=ToolCall(id=call_id, name=name, arguments={}), traits=ToolTraits())


def used(events: Sequence[Event], known: LoggedUsage | None = None) -> LoggedUsage:
    reader = UsageReader() if known is None else UsageReader(known)
    for event in events:
        reader.take(event)
    return reader.logged()


def session(events: Sequence[Event], name: str = "s", workspace: str = "/w", *, whole: bool = True) -> SessionUsage:
    return SessionUsage(id=name, project=workspace, usage=used(events), whole=whole)


def billed(events: Sequence[Event]) -> list[tuple[Usage, float | None]]:
    """What events say was used, read in another way than the program's."""
    found = []
    for event in events:
        data: Any = event.data
        if isinstance(data, ReplyFinished | ReplyFailed | SummaryWritten | SideAnswered):
            found.append((data.usage, data.cost))
        elif isinstance(data, CallFinished):
            found.append((data.result.usage, data.result.cost))
    return found


USAGE = st.builds(
    Usage,
    input_tokens=st.integers(0, 10**7),
    output_tokens=st.integers(0, 10**5),
    cache_read_tokens=st.integers(0, 10**7),
    cache_write_tokens=st.integers(0, 10**5),
    searches=st.integers(0, 5),
)
COST = st.none() | st.floats(0, 100)
CALL_IDS = st.sampled_from(["c1", "c2", "c3"])
RESULT = st.builds(
    CallResult,
    outcome=st.sampled_from(Outcome),
    content=st.sampled_from([(), (Text(text="four"),), (Text(text="x" * 999),)]),
    usage=st.sampled_from([Usage(), Usage(output_tokens=3)]),
    cost=st.sampled_from([0.0, 0.25, None]),
)
DATA = st.one_of(
    st.builds(reply, COST, USAGE),
    st.builds(
        lambda usage, cost: ReplyFailed(
            step=1, attempt=1, error=ModelError(kind=ErrorKind.SERVER, message=""), usage=usage, cost=cost
        ),
        USAGE,
        COST,
    ),
    st.builds(lambda usage, cost: SummaryWritten(step=1, usage=usage, cost=cost), USAGE, COST),
    st.builds(lambda usage, cost: SideAnswered(question="", usage=usage, cost=cost), USAGE, COST),
    st.builds(call, st.sampled_from(["read_file", "execute_command"]), CALL_IDS),
    st.builds(lambda call_id, result: CallFinished(call_id=call_id, result=result), CALL_IDS, RESULT),
    st.builds(lambda call_id, result: ResultMade(call_id=call_id, result=result), CALL_IDS, RESULT),
    st.builds(lambda model: SetModel(choice=choice(model)), st.sampled_from(["p/a", "p/b"])),
    st.builds(lambda mode: SetMode(mode=mode), st.sampled_from(Mode)),
    st.just(ModelReplaced(model="q/spare", why="failing")),
    st.just(ContextReady(step=1)),
)
LOG = st.lists(st.tuples(DATA, st.integers(NOON - 10**10, NOON) | st.just(10**18)), max_size=30).map(
    lambda rows: log(started(), *(data for data, _ in rows), at=[NOON, *(at for _, at in rows)])
)


@given(st.lists(LOG, min_size=1, max_size=3))
def test_every_key_gives_the_same_total_which_is_the_sum_of_the_events(logs: list[list[Event]]) -> None:
    sessions = [session(events, f"s{number}", f"/w{number % 2}") for number, events in enumerate(logs)]
    bills = [bill for events in logs for bill in billed(events)]
    reports = [summed_usage(sessions, by, None) for by in UsageKey]
    assert len({repr(report.total) for report in reports}) == 1
    total = reports[0].total
    assert math.isclose(total.cost, math.fsum(cost or 0.0 for _, cost in bills), abs_tol=1e-9)
    assert total.unpriced == sum(cost is None for _, cost in bills)
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "searches"):
        assert getattr(total, name) == sum(getattr(usage, name) for usage, _ in bills)
        assert {sum(getattr(row, name) for row in report.rows) for report in reports} == {getattr(total, name)}
    for name in ("requests", "unpriced", "uncounted", "calls", "failed", "denied", "result_tokens"):
        assert {sum(getattr(row, name) for row in report.rows) for report in reports} == {getattr(total, name)}
    for report in reports:
        assert math.isclose(sum(row.cost for row in report.rows), total.cost, abs_tol=1e-6)


@given(LOG, st.integers(0, 30))
def test_a_log_that_is_read_in_two_pieces_gives_the_same(events: list[Event], cut: int) -> None:
    whole, pieces = used(events), used(events[cut:], used(events[:cut]))
    assert summed(whole) == summed(pieces)
    assert replace(whole, slots=()) == replace(pieces, slots=())


def summed(usage: LoggedUsage) -> list[tuple[Any, ...]]:
    rows = [
        (one.key, replace(one.amounts, cost=0.0), round(one.amounts.cost, 6))
        for one in sorted(usage.slots, key=lambda one: one.key)
    ]
    return [row for row in rows if row[1] != type(row[1])() or row[2]]


@given(LOG, st.integers(0, 30))
def test_a_fork_and_its_parent_count_each_event_once(events: list[Event], shared: int) -> None:
    shared = min(shared, len(events))
    copied = [replace(events[0], data=started(Parent(session_id="s", seq=shared))), *events[1:]]
    fork = used(copied)
    alone = billed(events[shared:])
    total = sum_amounts(one.amounts for one in fork.slots)
    assert math.isclose(total.cost, math.fsum(cost or 0.0 for _, cost in alone), abs_tol=1e-9)
    assert total.usage.output_tokens == sum(usage.output_tokens for usage, _ in alone)


@given(st.integers(0, 10**6))
def test_any_session_of_the_machine_counts_each_call_once_by_its_last_result(seed: int) -> None:
    jitter = random.Random(seed)
    world = walk(jitter, BOUNDED if seed % 2 else Limits(max_steps=8, max_retries=2))
    total = summed_usage([session(world.log)], UsageKey.TOOL, None).total
    results = world.results()
    assert total.calls == len(results)
    assert total.failed == sum(one.outcome in (Outcome.FAILED, Outcome.INVALID) for one in results)
    assert total.denied == sum(one.outcome in (Outcome.DENIED, Outcome.REJECTED) for one in results)
    assert math.isclose(total.cost, sum(cost or 0.0 for _, cost in billed(world.log)), abs_tol=1e-9)


def named(report: UsageReport) -> dict[str, tuple[float, int]]:
    return {row.name: (row.cost, row.requests) for row in report.rows}


def test_a_reply_is_the_models_that_was_asked_and_a_fallback_ends_with_the_turn() -> None:
    events = log(
        started(),
        ContextReady(step=1),
        SetModel(choice=choice("p/b")),
        reply(1.0),
        ContextReady(step=2),
        reply(2.0),
        ModelReplaced(model="q/spare", why=""),
        reply(4.0),
    )
    assert named(summed_usage([session(events)], UsageKey.MODEL, None)) == {
        "q/spare": (4.0, 1),
        "p/b": (2.0, 1),
        "p/a": (1.0, 1),
    }


def test_a_day_is_the_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    late = log(started(), reply(), at=[NOON, NOON + 11 * 3_600_000 + 50 * 60_000])  # 23:50 UTC
    days = {}
    try:
        for zone in ("UTC", "Asia/Kathmandu", "America/New_York"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            days[zone] = [row.name for row in summed_usage([session(late)], UsageKey.DAY, None).rows]
        assert summed_usage([session(late)], UsageKey.DAY, date(2025, 11, 18)).rows == ()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert days == {"UTC": ["2025-11-17"], "Asia/Kathmandu": ["2025-11-18"], "America/New_York": ["2025-11-17"]}


@pytest.mark.parametrize(
    ("text", "day"), [("1d", date(2025, 3, 1)), ("2d", date(2025, 2, 28)), ("2024-02-29", date(2024, 2, 29))]
)
def test_since_takes_a_date_or_a_number_of_days(text: str, day: date) -> None:
    assert since_day(text, date(2025, 3, 1)) == day


@pytest.mark.parametrize("text", ["0d", "-1d", "d", "yesterday", "2025-13-01", "99999999999d", "٣d"])
def test_since_refuses_what_is_no_day(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        since_day(text, date(2025, 3, 1))
    assert caught.value.code == "usage-option"


def test_what_is_unknown_is_said_and_not_counted_as_nothing() -> None:
    events = log(started(), reply(None), reply(1.5), reply(None, Usage()))
    report = summed_usage([session(events, whole=False)], UsageKey.MODE, None)
    lines = list(usage_lines(report, None))
    assert lines[0] == (
        "Usage by mode: over $1.50, 3 model calls, 20 tokens in, 4 out, 1 session, "
        "the cost of 2 is unknown and not in the sum, the provider did not say what 1 used."
    )
    assert lines[1] == "ask  over $1.50"
    assert "Of 1 session a part of the log cannot be read" in lines[-1]


def test_bars_fill_the_screen_and_a_pipe_gets_none() -> None:
    events = log(started(), reply(3.0), SetMode(mode=Mode.PLAN), reply(1.0))
    report = summed_usage([session(events)], UsageKey.MODE, None)
    drawn = [line for line in usage_lines(report, 60) if "#" in line]
    assert [line.count("#") for line in drawn] == [47, 16]
    assert all(len(line) <= 60 for text in usage_lines(report, 60) for line in text.split("\n"))
    assert not any("#" in line for line in usage_lines(report, None))
    assert sum("\x1b[36m" in line for line in usage_lines(report, 60, colour=True)) == 2


def test_names_from_a_log_steer_no_terminal_and_many_rows_are_cut() -> None:
    sessions = [session(log(started(), reply()), f"s{n}", f"/w/\x1b]0;{n}\x07") for n in range(30)]
    report = summed_usage(sessions, UsageKey.PROJECT, None)
    lines = list(usage_lines(report, 80))
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "10 more rows: --all shows all."
    assert len(list(usage_lines(report, 80, every=True))) == 61


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    return tmp_path


def write(home: Path, name: str, events: Sequence[Event], *, new: bool = True) -> None:
    async def add() -> None:
        store = Store(home / "sessions.db")
        if new:
            row = SessionRow(id=name, workspace="/w", model="p/a", title="t", created_at=1, updated_at=1, events=0)
            await store.create(row)
        await store.append(name, events, durable=False)
        store.close()

    asyncio.run(add())


def asked(text: str) -> Prompt:
    return Prompt(id=text, content=(Text(text=text),))


def test_only_what_is_new_in_a_log_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    reading = Store.read

    def noted(self: Store, session_id: str, **options: Any) -> Any:
        reads.append(options.get("after", 0))
        return reading(self, session_id, **options)

    monkeypatch.setattr(Store, "read", noted)
    events = log(started(), *(SideAnswered(question="q", cost=0.125) for _ in range(1000)))
    write(home, "s", events[:900])
    assert [sum_amounts(o.amounts for o in one.usage.slots).cost for one in sessions_usage(None)] == [899 * 0.125]
    sessions_usage(None)
    listed_sessions(None)
    assert reads == [0]
    write(home, "s", events[900:], new=False)
    assert [one.usage.spending.total for one in sessions_usage(None)] == [125.0]
    sessions_usage(None)
    assert reads == [0, 900]
    assert [one.cost for one in listed_sessions(None)] == [125.0]
    assert [one.cost for one in listed_sessions(None)] == [125.0]
    assert reads == [0, 900, 0]


UNDER_WAY: Sequence[tuple[str, Sequence[EventData]]] = (
    ("a reply", (asked("go"), ContextReady(step=1, tokens=10))),
    ("a question", (SideAsked(question="why?"),)),
    ("two questions", (SideAsked(question="why?"), SideAsked(question="why?"))),
    ("a reply and a question", (SideAsked(question="why?"), asked("go"), ContextReady(step=1, tokens=10))),
)


@pytest.mark.parametrize("going_on", [False, True])
@pytest.mark.parametrize("begun", [one[1] for one in UNDER_WAY], ids=[one[0] for one in UNDER_WAY])
def test_calls_of_a_killed_program_are_named_as_unknown_and_the_sum_is_that_of_the_list(
    home: Path, begun: Sequence[EventData], going_on: bool
) -> None:
    before = (started(), SideAsked(question="q"), SideAnswered(question="q", cost=0.5))
    events = log(
        *before, *begun, *((SideAsked(question="z"), SideAnswered(question="z", cost=0.5)) if going_on else ())
    )
    lost = len([one for one in begun if isinstance(one, SideAsked | ContextReady)])
    write(home, "s", events[:3])
    assert summed_usage(sessions_usage(None), UsageKey.MODEL, None).total.unpriced == 0
    write(home, "s", events[3:], new=False)
    for _ in range(2):
        total = summed_usage(sessions_usage(None), UsageKey.MODEL, None).total
        assert (total.unpriced, total.uncounted, total.requests) == (lost, lost, lost + 1 + going_on)
        assert [one.cost for one in listed_sessions(None)] == [None]


def test_what_works_for_a_folder_is_in_its_sum_wherever_it_works(home: Path) -> None:
    shop, other = home / "shop", home / "other"
    for folder in (shop, other):
        folder.mkdir()
    copies = [str(make_writer_copy(shop, (), name).folder) for name in ("20260101-000000-aaaaaa", "20260101-000000-bb")]
    sessions = {
        "own": (str(shop), ""),
        "in-copy": (copies[0], ""),
        "reader": (str(shop), "own"),
        "worker": (copies[1], "own"),
        "worker-of-copy": (str(home / "gone"), "in-copy"),
        "elsewhere": (str(other), ""),
        "orphan": (str(other), "deleted"),
    }
    store = Store(home / "sessions.db")
    for name, (place, root) in sessions.items():
        row = SessionRow(
            id=name, workspace=place, model="p/a", title="t", created_at=1, updated_at=1, events=0, root=root
        )
        asyncio.run(store.create(row))
        asyncio.run(store.append(name, log(started(), reply()), durable=False))
    store.close()
    of_shop = {"own", "in-copy", "reader", "worker", "worker-of-copy"}
    assert {one.id for one in sessions_usage(shop)} == of_shop
    assert {one.id for one in sessions_usage(other)} == sessions.keys() - of_shop
    rows = {row.name: row.sessions for row in usage_report(UsageKey.PROJECT, None, None).rows}
    assert rows == {str(shop): 5, str(other): 2}
    for by in UsageKey:
        total = usage_report(by, None, shop).total
        assert (total.cost, total.sessions) == (2.5, 5), by
    listed = [one for one in listed_sessions(shop) if one.title]
    assert sum(one.tree_cost or 0.0 for one in listed) == 2.5, "the list says the same"


def test_folders_that_are_cut_still_differ() -> None:
    places = [f"/home/someone/.local/share/treadle/somewhere/deep/below/{n}" for n in range(3)]
    sessions = [session(log(started(), reply()), f"s{n}", place) for n, place in enumerate(places)]
    lines = list(usage_lines(summed_usage(sessions, UsageKey.PROJECT, None), 80))
    assert [sum(f"below/{n} " in line for line in lines) for n in range(3)] == [1, 1, 1]


def test_a_damaged_log_is_named_and_the_rest_is_counted(home: Path) -> None:
    write(home, "bad", log(started(), reply(), reply()))
    write(home, "good", log(started(), reply()))
    store = Store(home / "sessions.db")
    store.write_now(lambda connection: connection.execute("DELETE FROM events WHERE session_id = 'bad' AND seq = 2"))
    store.close()
    assert {one.id: (one.whole, one.usage.spending.total) for one in sessions_usage(None)} == {
        "bad": (False, 0.0),
        "good": (True, 0.5),
    }


@pytest.mark.parametrize(
    ("costs", "cost", "words"),
    [
        ((), 0.0, "$0.00"),
        ((0.5, 0.25), 0.75, "$0.75"),
        ((0.5, None), None, "over $0.50"),
        ((None,), None, "cost unknown"),
    ],
)
def test_the_list_says_of_a_cost_what_is_known_as_every_surface_that_is_live_does(
    home: Path, costs: Sequence[float | None], cost: float | None, words: str
) -> None:
    write(home, "s", log(started(), *(reply(one) for one in costs)))
    (listed,) = listed_sessions(None)
    assert (listed.cost, listed.spending.words) == (cost, words)
    assert spending_of(MessageDone(step=1, message=MESSAGE, usage=Usage(), cost=one) for one in costs).words == words


def test_an_estimate_and_a_log_that_was_not_read_are_said_in_the_list(home: Path) -> None:
    write(home, "s", log(started(), reply(0.5, Usage(output_tokens=2, estimated=True)), reply(None)))
    assert [one.spending.words for one in listed_sessions(None, read=False)] == ["cost unknown"]
    assert [one.spending.words for one in listed_sessions(None)] == ["over about $0.50"]


def test_a_failed_result_replaces_what_the_call_brought() -> None:
    events = log(
        started(),
        call("read_file", "c1"),
        CallFinished(call_id="c1", result=result_text(Outcome.OK, "x" * 400)),
        ResultMade(call_id="c1", result=result_text(Outcome.DENIED, "no")),
    )
    (row,) = summed_usage([session(events)], UsageKey.TOOL, None).rows
    assert (row.name, row.calls, row.failed, row.denied, row.result_tokens < 5) == ("read_file", 1, 0, 1, True)


def test_a_call_that_waited_for_its_limit_was_not_made_and_profiles_are_summed_apart() -> None:
    paced = ModelError(kind=ErrorKind.RATE_LIMIT, message="none left", retry_after=9.0, paced=True)
    events = log(
        started(),
        SetModel(choice=choice("p@work/a")),
        ContextReady(step=1, results=(), content=()),
        ReplyFailed(step=1, attempt=1, error=paced, usage=Usage(), cost=0.0),
        reply(0.5),
        SetModel(choice=choice("p/a")),
        ContextReady(step=2, results=(), content=()),
        reply(0.25),
    )
    report = summed_usage([session(events)], UsageKey.PROFILE, None)
    assert [(row.name, row.cost, row.requests) for row in report.rows] == [("p@work", 0.5, 1), ("p", 0.25, 1)]


@pytest.mark.parametrize("until", [NOON + 7_200_000, 0])
def test_who_is_chosen_while_a_limit_is_waited_for_gets_the_request(until: int) -> None:
    limited = ModelError(kind=ErrorKind.RATE_LIMIT, message="no", retry_after=7_200.0)
    events = log(
        started(),
        ReplyFailed(step=1, attempt=1, error=limited),
        RetryPlanned(attempt=1, seconds=7_200.0, most=0, until=until),
        SetModel(choice=choice("p@home/a")),
        reply(0.5),
    )
    whole, halves = used(events), used(events[3:], used(events[:3]))
    assert whole == halves
    report = summed_usage([session(events)], UsageKey.PROFILE, None)
    assert max(report.rows, key=lambda row: row.cost).name == ("p@home" if until else "p")
