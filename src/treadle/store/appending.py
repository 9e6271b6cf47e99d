"""Adding rows to a log, each chained to the one before and with the type of its event."""

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import StructMeta

from treadle.protocol.events import SCHEMA_VERSION, Event, EventData
from treadle.store.anchors import Anchor
from treadle.store.chain import LogRow, beginning, link

if TYPE_CHECKING:
    from treadle.store.sqlite import Store


Head = tuple[int, bytes]
"""The number and the hash of a session's last row."""


def tag_of(data: EventData | StructMeta) -> str:
    """Give the type of an event as it is logged, of its data or their class."""
    return str(data.__struct_config__.tag)


def insert(
    connection: sqlite3.Connection, session_id: str, rows: Sequence[tuple[LogRow, str]], head: Head | None
) -> Head:
    """Append rows of the present version, as `insert_versioned` does."""
    return insert_versioned(connection, session_id, [(row, tag, SCHEMA_VERSION) for row, tag in rows], head)


def insert_versioned(
    connection: sqlite3.Connection, session_id: str, rows: Sequence[tuple[LogRow, str, int]], head: Head | None
) -> Head:
    """Append rows with types and versions, chained to the one before: `head`, unless somebody else wrote since."""
    first, last = rows[0][0], rows[-1][0]
    before = first.seq - 1
    seq, chain = head if head is not None and head[0] == before else _read_head(connection, session_id, before)
    values = []
    for row, tag, version in rows:
        seq, chain = row.seq, link(chain, row)
        values.append((session_id, seq, row.at, tag, version, row.source, chain, row.data))
    connection.executemany(
        "INSERT INTO events (session_id, seq, at, type, version, source, chain, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    connection.execute("UPDATE sessions SET last_seq = ?, updated_at = ? WHERE id = ?", (seq, last.at, session_id))
    return seq, chain


def _read_head(connection: sqlite3.Connection, session_id: str, seq: int) -> Head:
    row = connection.execute("SELECT chain FROM events WHERE session_id = ? AND seq = ?", (session_id, seq)).fetchone()
    return seq, row[0] if row else beginning(session_id)


def holds(connection: sqlite3.Connection, session_id: str, anchor: Anchor) -> bool:
    """Whether the log of a session holds the event that an anchor names, or held it until it was set aside."""
    row = connection.execute(
        "SELECT 1 FROM (SELECT chain FROM events WHERE session_id = ?1 AND seq = ?2 "
        "UNION ALL SELECT chain FROM set_aside WHERE session_id = ?1 AND seq = ?2) WHERE chain = ?3",
        (session_id, anchor.seq, anchor.chain),
    ).fetchone()
    return row is not None


class SessionLog:
    """The log of one session, as the engine's port wants it."""

    def __init__(self, store: "Store", session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Commit the events in one transaction; `durable` also survives a power cut."""
        await self._store.append(self._session_id, events, durable=durable)
