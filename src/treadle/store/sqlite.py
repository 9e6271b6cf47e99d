"""The event log on SQLite: append-only, one writer for each session, safe at any byte."""

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from treadle.protocol.codec import encodable, encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import SCHEMA_VERSION, Event
from treadle.protocol.models import Spent
from treadle.protocol.stored import read_events, stored
from treadle.store import spending
from treadle.store.chain import Row, beginning, first_break, link
from treadle.store.damage import unread, unwritten
from treadle.store.opening import Mended, open_database
from treadle.store.titles import give_title

T = TypeVar("T")

Head = tuple[int, bytes]
"""The number and the hash of a session's last row."""

Summary = tuple[int, bytes]
"""The number of the last event that a summary covers, and the summary."""

LEASE_SECONDS = 30.0
"""How long a lease counts after its last heartbeat when its owner cannot be looked at."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session as it is listed. Times are milliseconds since 1970, UTC. `title` is empty before the first prompt."""

    id: str
    workspace: str
    model: str
    title: str
    created_at: int
    updated_at: int
    events: int


class EditCount(Struct, frozen=True, kw_only=True):
    """How often edits of one kind came out one way on one day. `repair`: right after a refusal for the same file.

    `day` is a date of UTC, such as 2026-01-31. `tokens` are those that the model wrote for the replies with these
    edits.
    """

    model: str
    format: str
    code: str
    repair: bool
    day: str = ""
    count: int = 1
    tokens: int = 0


class Store:
    """The database of one data directory. Reading is direct; writing goes through one thread.

    `mended` tells of a broken file that was found and set aside.
    """

    mended: Mended | None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection, self.mended = open_database(path)
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treadle-log")
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{time.monotonic_ns()}"
        self._durable: bool | None = None
        self._reader: sqlite3.Connection | None = None
        self._heads: dict[str, Head] = {}

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction on the writer's thread; raises `StoreError`."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._transact, work)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._connection)
            except BaseException:
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise unwritten(self._path, error) from error
        return result

    def _set_durable(self, *, durable: bool) -> None:
        if durable is not self._durable:
            self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    async def append(self, session_id: str, events: Sequence[Event], *, durable: bool) -> None:
        """Commit events of a session in one transaction."""
        rows = [Row(event.seq, event.at, encode(event.source), encode(event.data)) for event in events]

        def keep(connection: sqlite3.Connection) -> Head:
            spending.count(connection, session_id, events)
            give_title(connection, session_id, events)
            return _insert(connection, session_id, rows, self._heads.get(session_id))

        def insert() -> None:
            self._set_durable(durable=durable)
            self._heads[session_id] = self._transact(keep)

        try:
            await asyncio.get_running_loop().run_in_executor(self._writer, insert)
        except sqlite3.Error as error:
            raise unwritten(self._path, error) from error

    def read(self, session_id: str) -> list[Event]:
        """Read the whole log of a session."""
        rows = self._query(
            "SELECT seq, at, source, version, data FROM events WHERE session_id = ? ORDER BY seq", (session_id,)
        )
        try:
            return list(read_events(stored(rows)))
        except TypeError as error:
            raise unread(self._path, error) from error

    def chains(self, session_id: str) -> list[bytes]:
        """Read the hashes of a session's rows, in the order of `read`."""
        rows = self._query("SELECT chain FROM events WHERE session_id = ? ORDER BY seq", (session_id,))
        return [chain for (chain,) in rows]

    def verify(self, session_id: str) -> int | None:
        """Check the chain of a session; gives the number of the first event that is not as it was written, or None."""
        rows = self._query(
            "SELECT seq, at, source, data, chain FROM events WHERE session_id = ? ORDER BY seq", (session_id,)
        )
        last = self._query("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        return first_break(session_id, (Row(*row) for row in rows), last[0][0] if last else 0)

    def sessions(self, workspace: str | None = None) -> list[SessionRow]:
        """List sessions, the last used first; of one workspace if given."""
        condition, values = ("", ()) if workspace is None else (" WHERE workspace = ?", (encodable(workspace),))
        rows = self._query(
            "SELECT id, workspace, model, title, created_at, updated_at, last_seq FROM sessions"  # noqa: S608
            f"{condition} ORDER BY updated_at DESC, id DESC",
            values,
        )
        return [
            SessionRow(
                id=row[0],
                workspace=row[1],
                model=row[2],
                title=row[3],
                created_at=row[4],
                updated_at=row[5],
                events=row[6],
            )
            for row in rows
        ]

    def last_used(self, workspace: str, but: str) -> tuple[str, int] | None:
        """Give the title of the session of a workspace that was used last besides `but`, and when (ms since 1970)."""
        rows = self._query(
            "SELECT title, updated_at FROM sessions WHERE workspace = ? AND id != ? AND title != '' "
            "ORDER BY updated_at DESC LIMIT 1",
            (encodable(workspace), but),
        )
        return rows[0] if rows else None

    def title(self, session_id: str) -> str:
        """Give what a session is called; empty before its first prompt."""
        rows = self._query("SELECT title FROM sessions WHERE id = ?", (session_id,))
        return str(rows[0][0]) if rows else ""

    def find(self, prefix: str) -> SessionRow:
        """Find a session by its id or the beginning of it; raises `SessionError`."""
        found = [row for row in self.sessions() if row.id.startswith(prefix)]
        exact = [row for row in found if row.id == prefix]
        if exact or len(found) == 1:
            return (exact or found)[0]
        raise SessionError(
            "session-unknown",
            f"The id {prefix!r} is not unique." if found else f"There is no session with the id {prefix!r}.",
            why=f"{len(found)} ids begin with that." if found else "No session's id begins with that.",
            fix="`treadle sessions --all` lists the sessions with their ids.",
        )

    async def create(self, row: SessionRow) -> None:
        """Add a session."""
        row = encodable(row)
        values = (row.id, row.workspace, row.model, row.title, row.created_at, row.updated_at)
        await self.write(
            lambda connection: connection.execute(
                "INSERT INTO sessions (id, workspace, model, title, created_at, updated_at, last_seq) "
                "VALUES (?, ?, ?, ?, ?, ?, 0)",
                values,
            )
        )

    async def discard_empty(self, session_id: str) -> None:
        """Delete a session that never had a prompt; any other stays."""
        await self.write(
            lambda connection: connection.execute("DELETE FROM sessions WHERE id = ? AND title = ''", (session_id,))
        )

    def summaries(self) -> dict[str, Summary]:
        """Read what was kept of sessions by `keep_summaries`, by their ids."""
        rows = self._query("SELECT session_id, seq, data FROM summaries")
        return {session_id: (seq, data) for session_id, seq, data in rows}

    def keep_summaries(self, summaries: Mapping[str, Summary]) -> None:
        """Keep what the logs of sessions say in short, up to an event: reading a log anew takes longer."""
        rows = [(session_id, seq, data) for session_id, (seq, data) in summaries.items()]

        def keep(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO summaries (session_id, seq, data) SELECT ?1, ?2, ?3 WHERE EXISTS "
                "(SELECT 1 FROM sessions WHERE id = ?1) ON CONFLICT DO UPDATE SET seq = excluded.seq, "
                "data = excluded.data",
                rows,
            )

        self._writer.submit(self._transact, keep).result()

    async def count_edits(self, counts: Sequence[EditCount]) -> None:
        """Add to the ledger of edits."""
        rows = [(one.model, one.format, one.code, one.repair, one.day, one.count, one.tokens) for one in counts]
        await self.write(
            lambda connection: connection.executemany(
                "INSERT INTO edits (model, format, code, repair, day, count, tokens) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET count = count + excluded.count, tokens = tokens + excluded.tokens",
                rows,
            )
        )

    def edit_counts(self, model: str | None = None) -> list[EditCount]:
        """Read the ledger of edits, by day; of one model if given."""
        condition, values = ("", ()) if model is None else (" WHERE model = ?", (model,))
        rows = self._query(
            f"SELECT model, format, code, repair, day, count, tokens FROM edits{condition} ORDER BY 1, 2, 3, 4, 5",  # noqa: S608
            values,
        )
        return [
            EditCount(model=model, format=form, code=code, repair=bool(repair), day=day, count=count, tokens=tokens)
            for model, form, code, repair, day, count, tokens in rows
        ]

    async def reserve(self, session_id: str, at: int, worst: Spent) -> Spent:
        """Reserve what a session's next call can cost; gives what the day (of `at`, ms) has cost otherwise."""
        day = spending.day_of(at)
        return await self.write(
            lambda connection: spending.reserve(connection, session_id, day=day, worst=worst, alive=_alive)
        )

    async def acquire(self, session_id: str) -> None:
        """Take the lease of a session, so that no other process writes it; raises `SessionError`."""
        await self.write(lambda connection: _acquire(connection, session_id, self._owner))

    async def heartbeat(self, session_id: str) -> None:
        """Keep the lease."""
        now = time.time()
        await self.write(
            lambda connection: connection.execute(
                "UPDATE leases SET beat = ? WHERE session_id = ? AND owner = ?", (now, session_id, self._owner)
            )
        )

    async def release(self, session_id: str) -> None:
        """Give the lease back."""
        await self.write(
            lambda connection: connection.execute(
                "DELETE FROM leases WHERE session_id = ? AND owner = ?", (session_id, self._owner)
            )
        )

    def leased(self) -> frozenset[str]:
        """Name the sessions that a process works in now."""
        rows = self._query("SELECT session_id, owner, beat FROM leases")
        return frozenset(session_id for session_id, owner, beat in rows if _alive(owner, beat))

    def close(self) -> None:
        """Wait for what is being written and close the file."""
        self._writer.shutdown(wait=True)
        if self._reader is not None:
            self._reader.close()
        with suppress(sqlite3.Error):
            self._connection.close()

    def _query(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        """Read by a connection of its own, so that a reader never sees half a transaction; raises `StoreError`."""
        try:
            if self._reader is None:
                self._reader = sqlite3.connect(self._path, isolation_level=None, timeout=10.0)
            return self._reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise unread(self._path, error) from error


class SessionLog:
    """The log of one session, as the engine's port wants it."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def append(self, events: Sequence[Event], *, durable: bool) -> None:
        """Commit the events in one transaction; `durable` also survives a power cut."""
        await self._store.append(self._session_id, events, durable=durable)


def _insert(connection: sqlite3.Connection, session_id: str, rows: Sequence[Row], head: Head | None) -> Head:
    """Append rows and chain them to the one before, which is `head` unless somebody else wrote since."""
    before = rows[0].seq - 1
    seq, chain = head if head is not None and head[0] == before else _read_head(connection, session_id, before)
    values = []
    for row in rows:
        seq, chain = row.seq, link(chain, row)
        values.append((session_id, seq, row.at, row.source, SCHEMA_VERSION, row.data, chain))
    connection.executemany(
        "INSERT INTO events (session_id, seq, at, source, version, data, chain) VALUES (?, ?, ?, ?, ?, ?, ?)", values
    )
    connection.execute("UPDATE sessions SET last_seq = ?, updated_at = ? WHERE id = ?", (seq, rows[-1].at, session_id))
    return seq, chain


def _read_head(connection: sqlite3.Connection, session_id: str, seq: int) -> Head:
    row = connection.execute("SELECT chain FROM events WHERE session_id = ? AND seq = ?", (session_id, seq)).fetchone()
    return seq, row[0] if row else beginning(session_id)


def _acquire(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    row = connection.execute("SELECT owner, beat FROM leases WHERE session_id = ?", (session_id,)).fetchone()
    if row is not None and row[0] != owner and _alive(row[0], row[1]):
        raise SessionError(
            "session-busy",
            f"Session {session_id} is busy.",
            why=f"It is open in another process ({row[0].rsplit(':', 1)[0]}).",
            fix="Close it there, or start a new session.",
        )
    connection.execute(
        "INSERT INTO leases (session_id, owner, beat) VALUES (?, ?, ?) "
        "ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, beat = excluded.beat",
        (session_id, owner, time.time()),
    )


def _alive(owner: str, beat: float) -> bool:
    host, pid, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return time.time() - beat < LEASE_SECONDS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if _waits_to_be_reaped(pid):
        return False
    return int(pid) != os.getpid() or time.time() - beat < LEASE_SECONDS


def _waits_to_be_reaped(pid: str) -> bool:
    """Whether a process has ended and only its number is still taken; where there is no /proc nobody can tell."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state == b"Z"
