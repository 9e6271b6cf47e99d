"""Adding rows to a log, each chained to the one before and with the type of its event, by the one that writes."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from msgspec import StructMeta

from treadle.protocol.events import SCHEMA_VERSION, Event, EventData
from treadle.store.anchors import Anchor
from treadle.store.chain import LogRow, beginning, link
from treadle.store.damage import gone, unwritten
from treadle.store.opening_store import WAITS

if TYPE_CHECKING:
    from treadle.store.sqlite import Store

_T = TypeVar("_T")
_Work = Callable[[sqlite3.Connection], _T]

_JOURNAL_PAGES = 1_000
"""Pages of the journal from which on a commit of the thread moves them into the database, as SQLite does by itself."""
_AT_ONCE_AT_MOST = 64
"""Commits at once after which one is the thread's, so that the journal does not grow."""

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


class Writer:
    """The connection that writes to a database: on a thread of its own, or at once what nothing can hold up."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._file = _identity(path)
        self._connection = connection
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treadle-log")
        self._writing = Lock()
        self._at_once = 0
        self._durable: bool | None = None
        self._patient = True

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run `work` on the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def submit(self, work: Callable[[], _T]) -> "Future[_T]":
        """Have the thread run `work`, and do not wait for it."""
        return self._thread.submit(work)

    def close(self) -> None:
        """Wait for what is being written."""
        self._thread.shutdown(wait=True)

    def transact(self, work: _Work[_T], *, durable: bool | None = None) -> _T:
        """Run `work` in one transaction, on the thread; as durable as the one before unless that is given.

        Raises `StoreError`.
        """
        try:
            with self._writing:
                self._set_patient(patient=True)
                if durable is not None:
                    self._set_durable(durable=durable)
                self._connection.execute("BEGIN IMMEDIATE")
                return self._commit(work)
        except sqlite3.Error as error:
            raise unwritten(self._path, error) from error

    def transact_at_once(self, work: _Work[_T]) -> _T | None:
        """Run `work` in a transaction on the event loop: a commit that does not wait for the disk is over sooner so.

        Gives None, with nothing done, where something would have to be waited for, and now and then: that is the
        thread's to do. Raises `StoreError`.
        """
        if self._at_once >= _AT_ONCE_AT_MOST or not self._writing.acquire(blocking=False):
            self._at_once = 0
            return None
        try:
            self._set_patient(patient=False)
            self._set_durable(durable=False)
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return None  # another process writes, or the thread finds out what is wrong
            self._at_once += 1
            return self._commit(work)
        except sqlite3.Error as error:
            raise unwritten(self._path, error) from error
        finally:
            self._writing.release()

    def _commit(self, work: _Work[_T]) -> _T:
        """Run `work` in the transaction that has begun, and commit it."""
        try:
            if _identity(self._path) != self._file:
                raise gone(self._path)
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk has ended it already
                self._connection.execute("ROLLBACK")
            raise
        return result

    def _set_durable(self, *, durable: bool) -> None:
        if durable is not self._durable:
            self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _set_patient(self, *, patient: bool) -> None:
        """Wait for other processes, and move the journal into the database where that is due; or do neither."""
        if patient is not self._patient:
            self._connection.execute(f"PRAGMA busy_timeout={int(WAITS * 1_000) if patient else 0}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint={_JOURNAL_PAGES if patient else 0}")
            self._patient = patient


def _identity(path: Path) -> tuple[int, int] | None:
    """Say which file a path names; None for none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - with each commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


class SessionLog:
    """The log of one session, as the engine's port wants it."""

    def __init__(self, store: "Store", session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Commit the events in one transaction; `durable` also survives a power cut."""
        await self._store.append(self._session_id, events, durable=durable)
