"""What a person does with whole sessions: give them a name, archive, delete and add them."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from treadle.protocol.codec import encodable
from treadle.store import leases
from treadle.store.anchors import Anchor, Anchors
from treadle.store.appending import Head, insert_versioned
from treadle.store.archived_sessions import pack, unpack
from treadle.store.chain import LogRow
from treadle.store.log_search import index_of
from treadle.store.spent import keep_spent
from treadle.store.sqlite import SessionRow, Store

LONGEST_NAME = 200
"""Characters of a name."""


def rename(store: Store, session_id: str, name: str) -> None:
    """Call a session by this name; an empty one gives it back its title. Raises `StoreError`."""
    name = encodable(" ".join(name.split())[:LONGEST_NAME])
    store.write_now(
        lambda connection: connection.execute("UPDATE sessions SET name = ? WHERE id = ?", (name, session_id))
    )


def archive(store: Store, session_ids: Sequence[str], at: int) -> None:
    """Pack sessions that no process has open, all or none; raises `SessionError`, `StoreError`."""

    def packed(connection: sqlite3.Connection) -> None:
        for session_id in session_ids:
            leases.require_unheld(connection, session_id)
            pack(connection, session_id, at)

    store.write_now(packed)


def unarchive(store: Store, session_id: str) -> None:
    """Unpack a session that is archived; any other stays as it is. Raises `StoreError`."""
    store.write_now(lambda connection: unpack(connection, session_id))


def delete(store: Store, session_id: str) -> None:
    """Delete a session that no process has open, with its subagents and all that database and side files hold of it.

    Its cost stays in the budgets of its days. Raises `SessionError`, `StoreError`.
    """
    ids = [session_id, *(found for (found,) in store.query("SELECT id FROM sessions WHERE root = ?", (session_id,)))]

    def gone(connection: sqlite3.Connection) -> None:
        for one in ids:
            leases.require_unheld(connection, one)
        for one in ids:
            keep_spent(connection, one)
            for table in ("set_aside", "archived", "summaries", "leases", "events"):
                connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (one,))  # noqa: S608
            connection.execute("DELETE FROM sessions WHERE id = ?", (one,))
        # Its words are in the index too, and only a new index has none of them. Before the commit: once the session
        # is gone nobody would come back for them.
        for file in index_of(store.path):
            file.unlink(missing_ok=True)

    store.write_now(_overwritten(gone))
    with suppress(sqlite3.Error), closing(sqlite3.connect(store.path, timeout=1.0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else the journal still has the rows
    for one in ids:
        Anchors(store.path).discard(one)


def _overwritten(work: Callable[[sqlite3.Connection], None]) -> Callable[[sqlite3.Connection], None]:
    """Have SQLite write zeros over what the work deletes."""

    def working(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete=ON")
        try:
            work(connection)
        finally:
            connection.execute("PRAGMA secure_delete=OFF")

    return working


def require_free(store: Store, session_id: str) -> None:
    """Raise `SessionError` while a process has the session open."""
    store.write_now(lambda connection: leases.require_unheld(connection, session_id))


def count_events(store: Store, session_id: str, kind: str) -> int:
    """Count the events of one type that a session has, which is not archived; raises `StoreError`."""
    found = store.query("SELECT count(*) FROM events WHERE session_id = ? AND type = ?", (session_id, kind))
    return int(found[0][0])


def count_subagents(store: Store, session_id: str) -> int:
    """Count the sessions that work for another one, at whatever depth."""
    return int(store.query("SELECT count(*) FROM sessions WHERE root = ?", (session_id,))[0][0])


def count_set_aside(store: Store, session_id: str) -> int:
    """Count the events of a session that were set aside."""
    return int(store.query("SELECT count(*) FROM set_aside WHERE session_id = ?", (session_id,))[0][0])


def add_session(store: Store, row: SessionRow, name: str, rows: Sequence[tuple[LogRow, str, int]]) -> Head:
    """Write a whole session, chained anew: each row with its type and the version of its data. Raises `StoreError`."""
    row = encodable(row)

    def added(connection: sqlite3.Connection) -> Head:
        connection.execute(
            "INSERT INTO sessions (id, workspace, model, title, name, created_at, updated_at, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            (row.id, row.workspace, row.model, row.title, encodable(name), row.created_at, row.updated_at),
        )
        head = insert_versioned(connection, row.id, rows, None)
        connection.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (row.updated_at, row.id))
        return head

    head = store.write_now(added)
    with suppress(OSError, ValueError):
        anchors = Anchors(store.path)
        anchors.write(row.id, (Anchor(*head),))
        anchors.close()
    return head
