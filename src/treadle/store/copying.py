"""Copying the rows of a session, each chained anew to the one before."""

import sqlite3
from collections.abc import Callable

from msgspec import Struct, json

from treadle.protocol.events import SCHEMA_VERSION
from treadle.protocol.sealed import StateSealed, TurnSettled
from treadle.store.appending import tag_of
from treadle.store.chain import LogRow, beginning, link
from treadle.store.sqlite import SessionRow, Store

_WITH_STATE = (tag_of(TurnSettled), tag_of(StateSealed))
"""What holds the machine's state, and with it the id of the session; in a text the quotes around it are escaped."""


class SessionCopy(Struct, frozen=True, kw_only=True):
    """A copy to make: its id, the rows up to `to` of which `first` changes the first one, and a row to add after them.

    `last` has the type of its event besides its time, source and data.
    """

    id: str
    to: int
    first: Callable[[bytes], bytes]
    last: tuple[LogRow, str]


async def copy_session(store: Store, row: SessionRow, copy: SessionCopy) -> None:
    """Write a copy of a session. Raises `StoreError`."""

    def write(connection: sqlite3.Connection) -> None:
        end, tag = copy.last
        connection.execute(
            "INSERT INTO sessions (id, workspace, model, title, created_at, updated_at, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (copy.id, row.workspace, row.model, row.title, end.at, end.at, end.seq),
        )
        rows = connection.execute(
            "SELECT seq, at, source, data, type, version FROM events WHERE session_id = ? AND seq <= ? ORDER BY seq",
            (row.id, copy.to),
        ).fetchall()
        added = (end.seq, end.at, end.source, end.data, tag, SCHEMA_VERSION)
        chain = beginning(copy.id)
        named = tuple(b'"session_id":' + json.encode(one) for one in (row.id, copy.id))
        for seq, at, source, data, kind, version in (*rows, added):
            if seq == 1:
                data = copy.first(data)  # noqa: PLW2901
            elif kind in _WITH_STATE:
                data = data.replace(*named)  # noqa: PLW2901
            kept = LogRow(seq, at, source, data)
            chain = link(chain, kept)
            connection.execute(
                "INSERT INTO events (session_id, seq, at, type, version, source, chain, data) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (copy.id, seq, at, kind, version, source, chain, kept.data),
            )

    await store.write(write)
