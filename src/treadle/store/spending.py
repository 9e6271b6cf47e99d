"""What was spent each day, and what running sessions have reserved for the calls they are about to make."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from treadle.protocol.events import CallFinished, Event, ReplyFailed, ReplyFinished, SummaryWritten
from treadle.protocol.models import Spent
from treadle.protocol.tools import CallResult

if TYPE_CHECKING:
    from treadle.store.sqlite import Store

Alive = Callable[[str, float], bool]
"""Whether the owner of a lease, with its last beat, still lives."""


def day_of(at: int) -> str:
    """Name the day (UTC) of a time in milliseconds since 1970."""
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def count_spending(connection: sqlite3.Connection, session_id: str, events: Iterable[Event]) -> None:
    """Add the model calls among these events to their days; what was reserved for them is free again."""
    calls = list(_calls(events))
    if not calls:
        return
    reserved = connection.execute(
        "SELECT cost, tokens FROM reservations WHERE session_id = ?", (session_id,)
    ).fetchone()
    untold = Spent() if reserved is None else Spent(cost=reserved[0], tokens=reserved[1])
    rows = [
        (session_id, day_of(event.at), spent.cost, spent.tokens)
        for event, spent in ((event, untold if spent is None else spent) for event, spent in calls)
    ]
    connection.executemany(
        "INSERT INTO spending (session_id, day, cost, tokens) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET cost = cost + excluded.cost, tokens = tokens + excluded.tokens",
        rows,
    )
    connection.execute("DELETE FROM reservations WHERE session_id = ?", (session_id,))


def _calls(events: Iterable[Event]) -> Iterator[tuple[Event, Spent | None]]:
    """Give the model calls with what they used; None where the provider did not tell."""
    for event in events:
        match event.data:
            case ReplyFinished(usage=usage) if not usage.context_tokens:
                yield event, None
            case ReplyFinished(usage=usage, cost=cost) | ReplyFailed(usage=usage, cost=cost):
                yield event, Spent(cost=cost or 0.0, tokens=usage.context_tokens)
            case CallFinished(result=CallResult(usage=usage, cost=cost)) | SummaryWritten(usage=usage, cost=cost):
                if usage.context_tokens or cost:
                    yield event, Spent(cost=cost or 0.0, tokens=usage.context_tokens)
            case _:
                pass


def spent_on(store: "Store", day: str) -> Spent:
    """Give what all sessions spent on a day (UTC)."""
    return _sum(store.query("SELECT cost, tokens FROM spending WHERE day = ?", (day,)))


def reserve(connection: sqlite3.Connection, session_id: str, *, day: str, worst: Spent, alive: Alive) -> Spent:
    """Reserve for a session's next call; gives what was spent that day and what other living sessions reserved."""
    connection.execute(
        "INSERT INTO reservations (session_id, day, cost, tokens) VALUES (?, ?, ?, ?) ON CONFLICT (session_id) "
        "DO UPDATE SET day = excluded.day, cost = excluded.cost, tokens = excluded.tokens",
        (session_id, day, worst.cost, worst.tokens),
    )
    total = _sum(connection.execute("SELECT cost, tokens FROM spending WHERE day = ?", (day,)))
    others = connection.execute(
        "SELECT owner, beat, cost, tokens FROM reservations JOIN leases USING (session_id) "
        "WHERE day = ? AND session_id <> ?",
        (day, session_id),
    ).fetchall()
    reserved = _sum((cost, tokens) for owner, beat, cost, tokens in others if alive(owner, beat))
    return Spent(cost=total.cost + reserved.cost, tokens=total.tokens + reserved.tokens)


def _sum(rows: Iterable[tuple[float, int]]) -> Spent:
    found = list(rows)
    return Spent(cost=sum(cost for cost, _ in found), tokens=sum(tokens for _, tokens in found))
