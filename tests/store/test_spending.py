"""What was spent each day, and what is reserved: each call counts once, and no reservation outlives its call."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.sessions import add, fill
from treadle.protocol.events import (
    ENGINE,
    CallFinished,
    CallStarted,
    Event,
    EventData,
    ReplyFailed,
    ReplyFinished,
    SummaryWritten,
)
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ErrorKind, ModelError, ReplyStop, Spent
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.sealed import OF_SUMMARY, SideAnswered, TurnSettled
from treadle.protocol.tools import CallResult, Outcome
from treadle.protocol.usage import Usage
from treadle.store import keeping
from treadle.store.spent import (
    Purpose,
    day_of,
    ends_reservation,
    left_reservations,
    settle_left,
    spent_in,
    spent_in_run,
    spent_on,
)
from treadle.store.sqlite import Store

DAY = 86_400_000
TODAY, TOMORROW = day_of(0), day_of(DAY)
USED = Usage(input_tokens=70, output_tokens=30)
ABOUT = Usage(input_tokens=70, output_tokens=30, estimated=True)
WORST = Spent(cost=0.5, tokens=900)
NOTHING = Spent()

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from treadle.protocol.models import Spent
from treadle.store.spent import Purpose
from treadle.store.sqlite import Store

async def work():
    store = Store(Path(sys.argv[1]))
    await store.acquire("s1")
    await store.reserve("s1", Purpose.STEP, 0, Spent(cost=0.5, tokens=900))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(work())
"""


def finished(usage: Usage = USED, cost: float | None = 0.25) -> ReplyFinished:
    message = Message(role=Role.ASSISTANT, content=())
    return ReplyFinished(step=1, attempt=1, message=message, stop=ReplyStop.END_TURN, usage=usage, cost=cost)


def failed(usage: Usage = ABOUT, cost: float | None = 0.25, *, left: bool = False) -> ReplyFailed:
    error = ModelError(kind=ErrorKind.CANCELLED, message="cut")
    return ReplyFailed(step=1, attempt=1, error=error, usage=usage, cost=cost, left=left)


def tool(usage: Usage = USED, cost: float | None = 0.25) -> CallFinished:
    return CallFinished(call_id="c", result=CallResult(outcome=Outcome.OK, content=(), usage=usage, cost=cost))


def settled() -> TurnSettled:
    return TurnSettled(turn=1, outcome=TurnOutcome(stop=TurnStop.CANCELLED), state={})


async def open_store(tmp_path: Path) -> Store:
    await fill(tmp_path / "db", events=1)
    return Store(tmp_path / "db")


async def log(store: Store, session: str, *events: EventData, at: int = 0) -> None:
    last = store.query("SELECT last_seq FROM sessions WHERE id = ?", (session,))[0][0]
    rows = [Event(seq=last + n, at=at, source=ENGINE, data=data) for n, data in enumerate(events, 1)]
    await store.append(session, rows, durable=False)


async def elsewhere(store: Store, session: str = "s2", at: int = 0) -> Spent:
    """What another session is told of the day."""
    return (await store.reserve(session, Purpose.STEP, at, NOTHING)).day


SPENDS: list[tuple[EventData, Spent]] = [
    (finished(), Spent(cost=0.25, tokens=100)),
    (finished(cost=None), Spent(tokens=100)),
    (failed(), Spent(cost=0.25, tokens=100, estimated=True)),
    (failed(left=True), Spent(cost=0.25, tokens=100, estimated=True)),
    (failed(USED), Spent(cost=0.25, tokens=100)),
    (failed(Usage(), 0.0), NOTHING),
    (failed(ABOUT, None), Spent(tokens=100, estimated=True)),
    (SummaryWritten(step=1, usage=USED, cost=0.25), Spent(cost=0.25, tokens=100)),
    (SideAnswered(question="q", usage=USED, cost=0.25), Spent(cost=0.25, tokens=100)),
    (SideAnswered(question=OF_SUMMARY, usage=ABOUT, cost=0.25), Spent(cost=0.25, tokens=100, estimated=True)),
    (tool(), Spent(cost=0.25, tokens=100)),
    (tool(Usage(), 0.25), Spent(cost=0.25)),
    (tool(Usage(), 0.0), NOTHING),
    (CallStarted(call_id="c"), NOTHING),
    (settled(), NOTHING),
]


@pytest.mark.parametrize(("data", "spent"), SPENDS, ids=lambda one: type(one).__name__)
async def test_each_event_counts_what_it_tells_of_on_its_day_and_once(
    tmp_path: Path, data: EventData, spent: Spent
) -> None:
    store = await open_store(tmp_path)
    await log(store, "s1", data)
    assert (spent_on(store, TODAY), spent_on(store, TOMORROW)) == (spent, NOTHING)
    await log(store, "s1", data, at=DAY)
    assert (spent_on(store, TODAY), spent_on(store, TOMORROW)) == (spent, spent)
    await log(store, "s1", data, data)
    await log(store, "s2", data)
    assert spent_on(store, TODAY) == spent + spent + spent + spent
    store.close()


ENDS: list[tuple[EventData, frozenset[Purpose]]] = [
    (finished(), frozenset({Purpose.STEP})),
    (failed(), frozenset({Purpose.STEP})),
    (failed(Usage(), 0.0), frozenset({Purpose.STEP})),
    (failed(left=True), frozenset({Purpose.STEP})),
    (SummaryWritten(step=1), frozenset({Purpose.STEP})),
    (settled(), frozenset({Purpose.STEP})),
    (SideAnswered(question=OF_SUMMARY), frozenset({Purpose.STEP})),
    (SideAnswered(question="q"), frozenset({Purpose.ASIDE})),
    (tool(), frozenset()),
    (CallStarted(call_id="c"), frozenset()),
]


@pytest.mark.parametrize(("data", "freed"), ENDS, ids=lambda one: type(one).__name__)
async def test_an_event_frees_what_was_reserved_for_its_call_and_no_more(
    tmp_path: Path, data: EventData, freed: frozenset[Purpose]
) -> None:
    store = await open_store(tmp_path)
    for session in ("s0", "s1"):
        for purpose in Purpose:
            await store.reserve(session, purpose, 0, WORST)
    await log(store, "s1", data)
    rows = store.query("SELECT session_id, purpose FROM reservations ORDER BY 1, 2")
    left = {(session, purpose.value) for session in ("s0", "s1") for purpose in Purpose}
    assert {*rows} == left - {("s1", purpose.value) for purpose in freed}
    store.close()


async def test_a_call_that_nobody_counted_costs_what_was_reserved_for_it(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await store.reserve("s1", Purpose.ASIDE, 0, Spent(cost=9.0, tokens=9))
    await store.reserve("s1", Purpose.STEP, 0, WORST)
    await log(store, "s1", finished(Usage(), None), finished(Usage(), None))
    assert spent_on(store, TODAY) == Spent(cost=0.5, tokens=900, estimated=True)
    await log(store, "s1", finished(Usage(), None))
    assert spent_on(store, TODAY) == Spent(cost=0.5, tokens=900, estimated=True)
    store.close()


@pytest.mark.parametrize(
    ("data", "purpose"),
    [
        (finished(cost=None), Purpose.STEP),
        (failed(USED, None, left=True), Purpose.STEP),
        (SummaryWritten(step=1, usage=USED, cost=None), Purpose.STEP),
        (SideAnswered(question=OF_SUMMARY, usage=USED, cost=None), Purpose.STEP),
        (SideAnswered(question="q", usage=USED, cost=None), Purpose.ASIDE),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_a_call_whose_price_nobody_knew_costs_the_money_that_was_reserved_for_it(
    tmp_path: Path, data: EventData, purpose: Purpose
) -> None:
    store = await open_store(tmp_path)
    for one in Purpose:
        await store.reserve("s1", one, 0, WORST if one is purpose else Spent(cost=9.0, tokens=9))
    await log(store, "s1", data)
    assert spent_on(store, TODAY) == Spent(cost=0.5, tokens=100, estimated=True)
    store.close()


async def test_a_reservation_gives_what_else_the_day_has_cost_and_will(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await log(store, "s0", finished())
    await store.reserve("s0", Purpose.STEP, 0, WORST)
    await store.reserve("s0", Purpose.STEP, DAY, Spent(cost=7.0, tokens=7))
    assert await elsewhere(store) == Spent(cost=0.25, tokens=100)
    assert await elsewhere(store, at=DAY) == Spent(cost=7.0, tokens=7, estimated=True)
    await store.reserve("s0", Purpose.STEP, 0, WORST)
    await store.reserve("s1", Purpose.ASIDE, 0, Spent(cost=0.125, tokens=10))
    assert (await store.reserve("s1", Purpose.STEP, 0, WORST)).day == Spent(cost=0.875, tokens=1010, estimated=True)
    assert (await store.reserve("s1", Purpose.STEP, 0, WORST)).day == Spent(cost=0.875, tokens=1010, estimated=True)
    assert await elsewhere(store, at=DAY) == NOTHING
    store.close()


async def test_a_run_has_what_its_sessions_spent_on_every_day_also_deleted_ones(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for session in ("run.a", "run.b", "run-2.a", "runs"):
        await add(store, session, 1)
    await log(store, "run.a", finished())
    await log(store, "run.a", finished(), at=DAY)
    await log(store, "run-2.a", finished())
    await store.reserve("run.b", Purpose.STEP, 0, WORST, run="run")
    await store.reserve("run.b", Purpose.ASIDE, DAY, WORST, run="run")
    await store.reserve("runs", Purpose.STEP, 0, WORST)
    asked = await store.reserve("run.a", Purpose.STEP, 0, WORST, run="run")
    assert asked.run == Spent(cost=1.5, tokens=2_000, estimated=True)
    await log(store, "run.b", failed(left=True))
    assert spent_in_run(store, "run") == Spent(cost=2.0, tokens=2_900, estimated=True)
    assert spent_on(store, TODAY) == Spent(cost=0.75, tokens=300, estimated=True)
    keeping.delete(store, "run.b")
    assert spent_in_run(store, "run") == Spent(cost=2.0, tokens=2_900, estimated=True)
    assert spent_in_run(store, "none") == NOTHING
    store.close()


async def test_a_session_that_is_closed_leaves_no_reservation(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    for session in ("s0", "s1"):
        await store.acquire(session)
        for purpose in Purpose:
            await store.reserve(session, purpose, 0, WORST)
    await store.release("s1")
    assert await elsewhere(store) == Spent(cost=1.0, tokens=1800, estimated=True)
    other = Store(tmp_path / "db")
    await other.release("s0")
    assert await elsewhere(store) == Spent(cost=1.0, tokens=1800, estimated=True)
    other.close()
    store.close()


async def test_what_a_killed_process_reserved_counts_until_it_is_settled_and_then_once(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    died = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "db")], check=False)
    assert died.returncode == -9
    assert await elsewhere(store) == Spent(cost=0.5, tokens=900, estimated=True)
    await store.acquire("s1")
    assert await elsewhere(store) == Spent(cost=0.5, tokens=900, estimated=True)
    await log(store, "s1", failed(left=True))
    assert await elsewhere(store) == Spent(cost=0.25, tokens=100, estimated=True)
    await store.release("s1")
    assert await elsewhere(store) == Spent(cost=0.25, tokens=100, estimated=True)
    store.close()


async def test_a_deleted_session_leaves_what_it_spent_and_what_nobody_will_tell_of(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await log(store, "s0", finished())
    await log(store, "s1", finished())
    await log(store, "s1", failed(), at=DAY)
    assert spent_on(store, TODAY) == Spent(cost=0.5, tokens=200)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "db")], check=False)
    keeping.delete(store, "s0")
    assert (spent_on(store, TODAY), spent_on(store, TOMORROW)) == (
        Spent(cost=1.0, tokens=1100, estimated=True),
        Spent(cost=0.25, tokens=100, estimated=True),
    )
    keeping.delete(store, "s1")
    assert (spent_on(store, TODAY), spent_on(store, TOMORROW)) == (
        Spent(cost=1.0, tokens=1100, estimated=True),
        Spent(cost=0.25, tokens=100, estimated=True),
    )
    assert await elsewhere(store) == Spent(cost=1.0, tokens=1100, estimated=True)
    assert store.query("SELECT DISTINCT session_id FROM spending") == [("",)]
    assert store.query("SELECT session_id FROM reservations") == [("s2",)]
    store.close()


def test_a_day_is_one_of_utc() -> None:
    assert [day_of(at) for at in (0, DAY - 1, DAY)] == ["1970-01-01", "1970-01-01", "1970-01-02"]


@pytest.mark.parametrize("session", ["s1", "run.s1"])
@pytest.mark.parametrize(
    ("lost", "about"),
    [
        ((), NOTHING),
        ((failed(left=True),), Spent(cost=0.25, tokens=100, estimated=True)),
        ((failed(ABOUT, None, left=True),), Spent(cost=0.5, tokens=100, estimated=True)),
        ((SideAnswered(question=OF_SUMMARY, usage=ABOUT, cost=0.125),), Spent(cost=0.125, tokens=100, estimated=True)),
        ((SideAnswered(question="q", usage=ABOUT, cost=0.125),), NOTHING),
    ],
)
async def test_an_estimate_takes_the_place_of_a_reservation_for_everybody_but_the_run(
    tmp_path: Path, session: str, lost: tuple[EventData, ...], about: Spent
) -> None:
    store = await open_store(tmp_path)
    if session != "s1":
        await add(store, session, 1)
    died = subprocess.run(
        [sys.executable, "-c", KILLED.replace('"s1"', f'"{session}"'), str(tmp_path / "db")], check=False
    )
    assert died.returncode == -9
    assert left_reservations(store) == {session}
    store.write_now(partial(settle_left, session_id=session, lost=lost))
    assert left_reservations(store) == set(), "nobody reads its log again"
    assert (await elsewhere(store), spent_on(store, TODAY), store.spent_in_tree("s0")) == (about, about, NOTHING)
    sent = any(ends_reservation(one) is Purpose.STEP for one in lost)
    in_run = max(WORST.cost, about.cost) if sent else 0.0
    assert spent_in_run(store, "run").cost == (in_run if session != "s1" else 0.0)
    await store.acquire(session)
    await log(store, session, *lost, settled())
    await store.release(session)
    assert spent_in_run(store, "run").cost == (in_run if session != "s1" else 0.0) + sum(
        spent_in(one).cost for one in lost if ends_reservation(one) is Purpose.ASIDE and session != "s1"
    )
    store.close()


async def test_what_a_living_process_has_reserved_is_not_lowered(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    await store.acquire("s1")
    await store.reserve("s1", Purpose.STEP, 0, WORST)
    store.write_now(partial(settle_left, session_id="s1", lost=()))
    assert (left_reservations(store), spent_on(store, TODAY)) == (set(), NOTHING)
    assert await elsewhere(store) == replace(WORST, estimated=True)
    store.close()
