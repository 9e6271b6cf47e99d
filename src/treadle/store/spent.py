"""What was spent each day, and what sessions have reserved for the calls that they are about to make.

A reservation ends with its call, with the turn, or when its session is closed. One of a process that was killed is
lowered to an estimate by whoever looks at the budgets next, and settled when its session is taken up again. What a run
counts more than that, so that its limit holds whatever is killed, is kept under no day.
"""

import sqlite3
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from treadle.protocol.events import CallFinished, Event, EventData, ReplyFailed, ReplyFinished, SummaryWritten
from treadle.protocol.models import Spent
from treadle.protocol.sealed import OF_SUMMARY, SideAnswered, TurnSettled
from treadle.protocol.tools import CallResult
from treadle.protocol.usage import Usage
from treadle.store import leases

if TYPE_CHECKING:
    from treadle.store.sqlite import Store


_OF_RUN = ""
"""In the place of the day: what only the run of a session counts."""

_SETTLED = 0
"""In the place of the last beat of a process that was killed: its reservations are estimates by now."""

_LEASED = "session_id, owner, beat FROM reservations JOIN leases USING (session_id) WHERE true"


class Purpose(StrEnum):
    """What a session reserves for: a step of its turn, with the summary before it, or a question beside the work."""

    STEP = "step"
    ASIDE = "aside"


def day_of(at: int) -> str:
    """Name the day (UTC) of a time in milliseconds since 1970."""
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def run_of_session(session_id: str) -> str:
    """Give the run that a session is of, as a task of a batch; empty where it is of none."""
    return session_id[: max(0, session_id.find("."))]


def count_spending(connection: sqlite3.Connection, session_id: str, events: Iterable[Event]) -> None:
    """Add the model calls among these events to their days; what was reserved for them is free again.

    Where the provider did not tell what a call used, what was reserved for it counts; where its price is unknown, the
    money of that. Of a call that was left by a program that ended, the estimate counts; its run counts all that was
    reserved.
    """
    for event in events:
        ended = ends_reservation(event.data)
        spent = spent_in(event.data)
        if isinstance(event.data, ReplyFinished) and not event.data.usage.context_tokens:
            spent = reserved_for(connection, session_id, Purpose.STEP)
        elif ended is not None and _is_unpriced(event.data):
            spent += replace(reserved_for(connection, session_id, ended), tokens=0)
        if spent != Spent():
            add_spent(connection, session_id, day_of(event.at), spent)
        if isinstance(event.data, ReplyFailed) and event.data.left:
            _charge_run(connection, session_id, reserved_for(connection, session_id, Purpose.STEP), spent)
        if ended is not None:
            connection.execute(
                "DELETE FROM reservations WHERE session_id = ? AND purpose = ?", (session_id, ended.value)
            )


def _charge_run(connection: sqlite3.Connection, session_id: str, worst: Spent, about: Spent) -> None:
    """Let a session's run, if it is of one, count what was reserved for a call beyond what the call was about."""
    more = Spent(cost=max(0.0, worst.cost - about.cost), tokens=max(0, worst.tokens - about.tokens), estimated=True)
    if run_of_session(session_id) and (more.cost or more.tokens):
        add_spent(connection, session_id, _OF_RUN, more)


def ends_reservation(data: EventData) -> Purpose | None:
    """Say what an event ends the reservation for."""
    match data:
        case ReplyFinished() | ReplyFailed() | SummaryWritten() | TurnSettled():
            return Purpose.STEP
        case SideAnswered(question=question):
            return Purpose.STEP if question == OF_SUMMARY else Purpose.ASIDE
        case _:
            return None


def _is_unpriced(data: EventData) -> bool:
    match data:
        case ReplyFinished(cost=None) | ReplyFailed(cost=None) | SummaryWritten(cost=None) | SideAnswered(cost=None):
            return True
        case _:
            return False


def spent_in(data: EventData) -> Spent:
    """Give what the models used that an event tells of."""
    match data:
        case (
            ReplyFinished(usage=usage, cost=cost)
            | ReplyFailed(usage=usage, cost=cost)
            | SummaryWritten(usage=usage, cost=cost)
            | SideAnswered(usage=usage, cost=cost)
            | CallFinished(result=CallResult(usage=usage, cost=cost))
        ):
            return _spent(usage, cost)
        case _:
            return Spent()


def _spent(usage: Usage, cost: float | None) -> Spent:
    return Spent(cost=cost or 0.0, tokens=usage.context_tokens, estimated=usage.estimated)


def add_spent(connection: sqlite3.Connection, session_id: str, day: str, spent: Spent) -> None:
    """Add to what a session spent on a day."""
    connection.execute(
        "INSERT INTO spending (session_id, day, cost, tokens, estimated) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET cost = cost + excluded.cost, tokens = tokens + excluded.tokens, "
        "estimated = MAX(estimated, excluded.estimated)",
        (session_id, day, spent.cost, spent.tokens, spent.estimated),
    )


def spent_on(store: "Store", day: str) -> Spent:
    """Give what all sessions spent on a day (UTC), and what those of killed processes had reserved."""
    spent = store.query("SELECT cost, tokens, estimated FROM spending WHERE day = ?", (day,))
    reserved = store.query(f"SELECT cost, tokens, 1, {_LEASED} AND day = ?", (day,))
    return _sum([*spent, *(row[:3] for row in reserved if not leases.is_held(*row[3:]))])


def left_reservations(store: "Store") -> set[str]:
    """Name the sessions for whose reservations nobody has put an estimate since their process was killed."""
    rows = store.query(f"SELECT {_LEASED} AND beat <> {_SETTLED}")
    return {row[0] for row in rows if not leases.is_held(*row)}


def settle_left(connection: sqlite3.Connection, session_id: str, lost: Iterable[EventData]) -> None:
    """Put what a log says of the calls that were `lost` in the place of what a killed process had reserved for them.

    What has no price keeps the money of its reservation. The run of the session counts all that was reserved.
    """
    rows = connection.execute("SELECT owner, beat FROM leases WHERE session_id = ?", (session_id,)).fetchall()
    if any(leases.is_held(session_id, *row) for row in rows):
        return
    calls = [*lost]
    for purpose in Purpose:
        own = [one for one in calls if ends_reservation(one) is purpose]
        worst = reserved_for(connection, session_id, purpose)
        about = sum(map(spent_in, own), start=Spent())
        if any(map(_is_unpriced, own)):
            about += replace(worst, tokens=0)
        if own:
            _charge_run(connection, session_id, worst, about)
        connection.execute(
            "UPDATE reservations SET cost = ?, tokens = ? WHERE session_id = ? AND purpose = ?",
            (about.cost, about.tokens, session_id, purpose.value),
        )
    connection.execute("DELETE FROM reservations WHERE session_id = ? AND cost = 0 AND tokens = 0", (session_id,))
    connection.execute("UPDATE leases SET beat = ? WHERE session_id = ?", (_SETTLED, session_id))


class SharedSums(NamedTuple):
    """What was spent and is reserved besides: in a `day` by all, in a `tree` by its others, in a `run` by all.

    `run_calls`: another session of the run has reserved for a call that goes on, and that may cost less.
    """

    day: Spent
    tree: Spent
    run: Spent
    run_calls: bool = False


_BETWEEN = "session_id >= ? AND session_id < ?"
_OTHERS = """(SELECT id FROM sessions WHERE (id = :root OR (root = :root AND root <> '')) AND id <> :own)"""


def reserve(
    connection: sqlite3.Connection, session_id: str, purpose: Purpose, *, day: str, worst: Spent, run: str = ""
) -> SharedSums:
    """Reserve for a session's next call; gives what others have spent and reserved that counts together with it.

    The sessions of a run are those whose ids begin with its name and a full stop.
    """
    connection.execute(
        "INSERT INTO reservations (session_id, purpose, day, cost, tokens) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET day = excluded.day, cost = excluded.cost, tokens = excluded.tokens",
        (session_id, purpose.value, day, worst.cost, worst.tokens),
    )
    own = (session_id, purpose.value)
    today = _counted(connection, "day = ?", (day,), own)
    others = SharedSums(today, of_tree(connection, session_id), Spent())
    if not run:
        return others
    of_run = _counted(connection, _BETWEEN, _ids_of(run), own)
    return others._replace(run=of_run, run_calls=_is_run_calling(connection, run, session_id))


def _counted(connection: sqlite3.Connection, where: str, values: tuple[str, ...], own: tuple[str, str]) -> Spent:
    """Sum up what was spent, and what is reserved but for a reservation of one's own."""
    spent = connection.execute(f"SELECT cost, tokens, estimated FROM spending WHERE {where}", values)  # noqa: S608
    reserved = connection.execute(
        f"SELECT cost, tokens, 1 FROM reservations WHERE {where} AND (session_id, purpose) <> (?, ?)",  # noqa: S608
        (*values, *own),
    )
    return _sum([*spent, *reserved])


def of_tree(connection: sqlite3.Connection, session_id: str) -> Spent:
    """Give what the other sessions of a session's tree have spent, on whatever day, and reserved."""
    found = connection.execute("SELECT root FROM sessions WHERE id = ?", (session_id,)).fetchone()
    names = {"root": (found and found[0]) or session_id, "own": session_id}
    spent = connection.execute(
        f"SELECT cost, tokens, estimated FROM spending WHERE day <> '{_OF_RUN}' AND session_id IN {_OTHERS} "  # noqa: S608
        f"UNION ALL SELECT cost, tokens, 1 FROM reservations WHERE session_id IN {_OTHERS}",
        names,
    )
    return _sum(spent)


def _is_run_calling(connection: sqlite3.Connection, run: str, but: str) -> bool:
    """Whether a session of a run other than `but` has reserved for a call, and its process was at work a moment ago.

    Nobody waits for one that was halted, or of whose process only the number is left.
    """
    asked = f"SELECT {_LEASED} AND cost > 0 AND {_BETWEEN} AND session_id <> ?"
    rows = connection.execute(asked, (*_ids_of(run), but)).fetchall()
    return any(leases.is_held(*row) and leases.works_now(*row[1:]) for row in rows)


def _ids_of(run: str) -> tuple[str, str]:
    """Give what the ids of a run's sessions are between; what deleted ones have spent is kept under the first."""
    return f"{run}.", f"{run}/"


def spent_in_run(store: "Store", run: str) -> Spent:
    """Give what all sessions of a run have spent, and have reserved for calls that go on, or were lost."""
    ids = _ids_of(run)
    spent = store.query(f"SELECT cost, tokens, estimated FROM spending WHERE {_BETWEEN}", ids)  # noqa: S608
    reserved = store.query(f"SELECT cost, tokens, 1 FROM reservations WHERE {_BETWEEN}", ids)  # noqa: S608
    return _sum([*spent, *reserved])


def spent_by_session(store: "Store", session_id: str) -> float:
    """Give what a session has spent by now as its run counts it (US dollars). Raises `StoreError`."""
    return float(store.query("SELECT COALESCE(SUM(cost), 0) FROM spending WHERE session_id = ?", (session_id,))[0][0])


def reserved_for(connection: sqlite3.Connection, session_id: str, purpose: Purpose) -> Spent:
    """Give what a session has reserved for a call."""
    rows = connection.execute(
        "SELECT cost, tokens, 1 FROM reservations WHERE session_id = ? AND purpose = ?", (session_id, purpose.value)
    )
    return _sum(rows)


def give_back(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    """Give a lease back, and free what was reserved under it: none of the session's calls is going on any more."""
    given = connection.execute("DELETE FROM leases WHERE session_id = ? AND owner = ?", (session_id, owner))
    if given.rowcount:
        connection.execute("DELETE FROM reservations WHERE session_id = ?", (session_id,))


def give_back_left(path: Path, write: Callable[[Callable[[sqlite3.Connection], None]], None]) -> None:
    """Give back what this process could not: other processes see that it lives, and would wait for it."""
    for lease in [one for one in leases.LEFT_LEASES if one.path == path]:
        with leases.giving_back(lease):
            write(partial(give_back, session_id=lease.session_id, owner=lease.owner))


def keep_spent(connection: sqlite3.Connection, session_id: str) -> None:
    """Let what a session spent, and had reserved for calls of which nobody will tell, stay in the budgets of its days.

    The session is about to be deleted; one of a run stays in the budget of that, too.
    """
    run = session_id[: session_id.find(".") + 1]
    spent = connection.execute("SELECT day, cost, tokens, estimated FROM spending WHERE session_id = ?", (session_id,))
    lost = connection.execute("SELECT day, cost, tokens, 1 FROM reservations WHERE session_id = ?", (session_id,))
    for day, cost, tokens, estimated in [*spent, *lost]:
        add_spent(connection, run, day, Spent(cost=cost, tokens=tokens, estimated=bool(estimated)))
    for table in ("spending", "reservations"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608


def _sum(rows: Iterable[tuple[float, int, int]]) -> Spent:
    found = (Spent(cost=cost, tokens=tokens, estimated=bool(estimated)) for cost, tokens, estimated in rows)
    return sum(found, start=Spent())
