"""The event log on SQLite: append-only, one writer for each session, safe at any byte."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from treadle.protocol.codec import encodable, encode
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import Event
from treadle.protocol.models import Spent
from treadle.store import damage, edit_counts, leases, opening_store, spent
from treadle.store.anchors import Anchor, Anchors
from treadle.store.appending import Head, Writer, holds, insert, tag_of
from treadle.store.chain import LogRow, first_break
from treadle.store.damage import unread
from treadle.store.edit_counts import EditCount, ReadingCount
from treadle.store.titles import keep_row, session_named

if TYPE_CHECKING:
    from treadle.store.reading import StoredEvents

_T = TypeVar("_T")

_NO_END = 2**63 - 1

_TITLE = "CASE WHEN title = '' OR name = '' THEN title ELSE name END"
"""A session without a prompt has no title, whatever it is called: it is not kept."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session as it is listed. Times are milliseconds since 1970, UTC.

    `title` is the name that the user gave it, else what its first prompt made it; empty before the first prompt. A
    subagent has a `parent` and an `agent`, and the `root` of its tree; these are empty for a person's own session.
    """

    id: str
    workspace: str
    model: str
    title: str
    created_at: int
    updated_at: int
    events: int
    archived: bool = False
    parent: str = ""
    root: str = ""
    agent: str = ""


class Store:
    """The database of one data directory. Reading is direct; what writing may wait for goes through one thread.

    `repaired` tells of a broken file that was found and set aside.
    """

    repaired: opening_store.Repaired | None

    def __init__(self, path: Path, notice: opening_store.NoticeSink = opening_store.no_notice) -> None:
        self.path = path
        self._connection, self.repaired = opening_store.open_database(path, notice)
        self._writer = Writer(path, self._connection)
        self._owner = leases.new_owner()
        self._reader: sqlite3.Connection | None = None
        self._heads: dict[str, Head] = {}
        self._anchors = Anchors(path)
        self._anchored: dict[str, tuple[Anchor, ...]] = {}
        with suppress(TreadleError):
            spent.give_back_left(path, self.write_now)

    async def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` in one transaction on the writer's thread; raises `StoreError`."""
        return await self._writer.run(partial(self._writer.transact, work))

    def write_now(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` as `write` does, and wait for it."""
        return self._writer.submit(partial(self._writer.transact, work)).result()

    async def append(self, session_id: str, events: Sequence[Event], *, durable: bool) -> None:
        """Commit events of a session in one transaction; those that are `durable` also survive a power cut."""
        rows = [
            (LogRow(event.seq, event.at, encode(event.source), encode(event.data)), tag_of(event.data))
            for event in events
        ]

        def keep(connection: sqlite3.Connection) -> Head:
            spent.count_spending(connection, session_id, events)
            keep_row(connection, session_id, events)
            head = self._heads.get(session_id)
            if head is None:
                self._require_own_schema(connection)
            return insert(connection, session_id, rows, head)

        def commit() -> None:
            self._heads[session_id] = self._writer.transact(keep, durable=durable)
            if durable:
                self._anchor(session_id)

        head = None if durable else self._writer.transact_at_once(keep)
        if head is None:
            await self._writer.run(commit)
        else:
            self._heads[session_id] = head

    def _require_own_schema(self, connection: sqlite3.Connection) -> None:
        """Refuse to write what a newer Treadle has converted since this one opened it."""
        if (version := damage.version_of(connection)) != damage.SCHEMA:
            raise damage.newer_schema(self.path, version)

    def _anchor(self, session_id: str) -> None:
        """Note the newest hash of a log outside of the database; older notes that it does not bear out stay with it."""
        with suppress(OSError, ValueError, sqlite3.Error):
            head = Anchor(*self._heads[session_id])
            if session_id not in self._anchored:
                kept = self._anchors.read(session_id) or ()
                self._anchored[session_id] = tuple(one for one in kept if not holds(self._connection, session_id, one))
            self._anchors.write(session_id, (head, *self._anchored[session_id]))

    def read(
        self,
        session_id: str,
        *,
        after: int = 0,
        before: int = _NO_END,
        go_on: bool = False,
        whole: bool = True,
    ) -> "StoredEvents":
        """Read the events of a session between two numbers, as they are asked for; `go_on` leaves out damaged ones.

        Unless it is read `whole`, what left the conversation when the user went back is left out.
        """
        from treadle.store.reading import StoredEvents, rows_after

        rows = self.query("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        last = min(rows[0][0] if rows else 0, before - 1)
        fetch = partial(self._fetch, "seq, at, source, data, version", session_id, before)
        without = () if whole else self.left_behind(session_id, before)
        return StoredEvents(session_id, rows_after(fetch, after), after=after, last=last, go_on=go_on, without=without)

    def left_behind(self, session_id: str, before: int = _NO_END) -> tuple[range, ...]:
        """Give the numbers of the events that left the conversation when the user went back in it."""
        from treadle.store.reading import ranges_left

        return ranges_left(self.of_types(session_id, ("rewound",), before))

    def rows(self, session_id: str, columns: str = "seq, at, source, data, version") -> Iterator[Any]:
        """Read the rows of a session as they are stored: by default number, time, source, data, version."""
        from treadle.store.reading import rows_after

        return rows_after(partial(self._fetch, columns, session_id, _NO_END), 0)

    def of_types(self, session_id: str, types: Sequence[str], before: int = _NO_END) -> list[Any]:
        """Read the rows of events of these types before a number: number, time, data, version."""
        rows = self.query(
            "SELECT seq, at, data, version FROM events WHERE session_id = ? AND seq < ? AND type IN "  # noqa: S608
            f"({', '.join('?' * len(types))}) ORDER BY seq",
            (session_id, before, *types),
        )
        packed = [] if rows else self._packed(session_id, "seq, at, data, version, type")
        return rows or [row[:-1] for row in packed if row[0] < before and row[-1] in types]

    def has_source(self, session_id: str, source: bytes) -> bool:
        """Whether an event of a session came from there; a source as it is encoded."""
        found = self.query("SELECT 1 FROM events WHERE session_id = ? AND source = ? LIMIT 1", (session_id, source))
        return bool(found) or (source,) in self._packed(session_id, "source")

    def _fetch(self, columns: str, session_id: str, before: int, after: int) -> list[Any]:
        from treadle.store.reading import AT_ONCE

        rows = self.query(
            f"SELECT {columns} FROM events WHERE session_id = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ?",  # noqa: S608
            (session_id, after, before, AT_ONCE),
        )
        if rows:
            return rows
        return [row for row in self._packed(session_id, columns) if after < row[0] < before]

    def _packed(self, session_id: str, columns: str) -> list[Any]:
        """Read the rows of an archived session; none of any other."""
        if not (found := self.query("SELECT data FROM archived WHERE session_id = ?", (session_id,))):
            return []
        from treadle.store.archived_sessions import PACKED_COLUMNS, rows_in

        places = [PACKED_COLUMNS.index(name) for name in columns.split(", ")]
        return [tuple(row[place] for place in places) for row in rows_in(found[0][0])]

    async def set_aside(self, session_id: str, after: int) -> None:
        """Take what comes after an event out of a session's log, which goes on from there; the rows are kept apart.

        Takes the lease of the session; raises `SessionError` while another process holds it.
        """

        def cut(connection: sqlite3.Connection) -> None:
            self._take(connection, session_id)
            connection.execute(
                "INSERT INTO set_aside (session_id, seq, at, type, version, source, chain, data) SELECT session_id, "
                "seq, at, type, version, source, chain, data FROM events WHERE session_id = ? AND seq > ?",
                (session_id, after),
            )
            connection.execute("DELETE FROM events WHERE session_id = ? AND seq > ?", (session_id, after))
            connection.execute("UPDATE sessions SET last_seq = ? WHERE id = ?", (after, session_id))
            # A summary of the same length would be taken for one of what comes next.
            connection.execute("DELETE FROM summaries WHERE session_id = ?", (session_id,))
            self._heads.pop(session_id, None)

        await self.write(cut)

    def chains(self, session_id: str) -> list[bytes]:
        """Read the hashes of a session's rows, in the order of `read`."""
        return [chain for _, chain in self.rows(session_id, "seq, chain")]

    def verify(self, session_id: str) -> int | None:
        """Check the chain of a session; gives the number of the first event that is not as it was written, or None."""
        last = self.query("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        rows = (LogRow(*row) for row in self.rows(session_id, "seq, at, source, data, chain"))
        return first_break(session_id, rows, last[0][0] if last else 0)

    def missing(self, session_id: str) -> tuple[int | None, bool]:
        """Compare a log with what was noted outside of the database.

        Gives the number of the newest event that was noted and is not in the log, None when all are; and whether
        anything was noted that can be read.
        """
        anchors = self._anchors.read(session_id) or ()
        try:
            gone = [one.seq for one in anchors if not holds(self._to_read(), session_id, one)]
            packed = {*self._packed(session_id, "seq, chain")} if gone else set()
            gone = [one.seq for one in anchors if one.seq in gone and (one.seq, one.chain) not in packed]
        except sqlite3.Error as error:
            raise unread(self.path, error) from error
        return max(gone, default=None), bool(anchors)

    def anchored(self) -> list[str]:
        """List the sessions of which anything was noted outside of the database."""
        return self._anchors.names()

    def sessions(self, workspace: str | None = None, *, subagents: bool = False) -> list[SessionRow]:
        """List sessions, the last used first; of one workspace if given. With `subagents` these, too."""
        condition, values = ("", ()) if workspace is None else (" WHERE workspace = ?", (encodable(workspace),))
        if not subagents:
            condition = f"{condition} {'AND' if condition else 'WHERE'} root = ''"
        rows = self.query(
            f"SELECT id, workspace, model, {_TITLE}, created_at, updated_at, last_seq, "  # noqa: S608
            f"EXISTS (SELECT 1 FROM archived WHERE session_id = id), parent, root, agent FROM sessions{condition} "
            "ORDER BY updated_at DESC, id DESC",
            values,
        )
        names = SessionRow.__struct_fields__
        return [SessionRow(**dict(zip(names, (*row[:7], bool(row[7]), *row[8:]), strict=True))) for row in rows]

    def last_used(self, workspace: str, but: str) -> tuple[str, int] | None:
        """Give the title of the session of a workspace that was used last besides `but`, and when (ms since 1970)."""
        rows = self.query(
            f"SELECT {_TITLE}, updated_at FROM sessions WHERE workspace = ? AND id != ? AND title != '' "  # noqa: S608
            "AND root = '' AND id NOT IN (SELECT session_id FROM archived) ORDER BY updated_at DESC LIMIT 1",
            (encodable(workspace), but),
        )
        return rows[0] if rows else None

    def title(self, session_id: str) -> str:
        """Give what a session is called; empty before its first prompt."""
        rows = self.query(f"SELECT {_TITLE} FROM sessions WHERE id = ?", (session_id,))  # noqa: S608
        return str(rows[0][0]) if rows else ""

    def find(self, name: str) -> SessionRow:
        """Find a session by its id, the beginning of it, or the beginning of its title; raises `SessionError`."""
        return session_named(name, self.sessions(subagents=True))

    async def create(self, row: SessionRow) -> None:
        """Add a session."""
        row = encodable(row)
        own = (row.id, row.workspace, row.model, row.title, row.created_at, row.updated_at)
        values = (*own, row.parent, row.root, row.agent)
        await self.write(
            lambda connection: connection.execute(
                "INSERT INTO sessions (id, workspace, model, title, created_at, updated_at, parent, root, agent, "
                "last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                values,
            )
        )

    async def discard_empty(self, session_id: str) -> None:
        """Delete a session that never had a prompt; any other stays."""

        def discard(connection: sqlite3.Connection) -> None:
            if connection.execute("DELETE FROM sessions WHERE id = ? AND title = ''", (session_id,)).rowcount:
                self._heads.pop(session_id, None)
                self._anchors.discard(session_id)

        await self.write(discard)

    async def count_edits(self, counts: Sequence[EditCount], readings: Sequence[ReadingCount] = ()) -> None:
        """Add to the ledger of edits, and of what was read for a model."""

        def add(connection: sqlite3.Connection) -> None:
            edit_counts.add_edits(connection, counts)
            edit_counts.add_readings(connection, readings)

        await self.write(add)

    def reading_counts(self) -> list[ReadingCount]:
        """Read what was read for each model, by code and day."""
        rows = self.query("SELECT model, code, day, count FROM readings ORDER BY 1, 2, 3")
        return [ReadingCount(model=model, code=code, day=day, count=count) for model, code, day, count in rows]

    def edit_counts(self, model: str | None = None) -> list[EditCount]:
        """Read the ledger of edits, by day; of one model if given."""
        condition, values = ("", ()) if model is None else (" WHERE model = ?", (model,))
        return edit_counts.counts_in(
            self.query(f"SELECT {edit_counts.COLUMNS} FROM edits{condition} ORDER BY 1, 2, 3, 4, 5", values)  # noqa: S608
        )

    async def reserve(
        self, session_id: str, purpose: spent.Purpose, at: int, worst: Spent, *, run: str = ""
    ) -> spent.SharedSums:
        """Reserve what a session's next call can cost; gives what else the day (of `at`, ms), tree and run cost."""
        day = spent.day_of(at)
        return await self.write(
            lambda connection: spent.reserve(connection, session_id, purpose, day=day, worst=worst, run=run)
        )

    def spent_in_tree(self, session_id: str) -> Spent:
        """Give what the other sessions of a session's tree have spent and reserved. Raises `StoreError`."""
        try:
            return spent.of_tree(self._to_read(), session_id)
        except sqlite3.Error as error:
            raise unread(self.path, error) from error

    async def acquire(self, session_id: str) -> None:
        """Take the lease of a session, so that no other process writes it; raises `SessionError`."""

        def take(connection: sqlite3.Connection) -> None:
            self._require_own_schema(connection)
            self._take(connection, session_id)

        await self.write(take)

    def _take(self, connection: sqlite3.Connection, session_id: str) -> None:
        """Take the lease; a session that was archived is one to work in again."""
        leases.acquire(connection, session_id, self._owner)
        if connection.execute("SELECT 1 FROM archived WHERE session_id = ?", (session_id,)).fetchone():
            from treadle.store.archived_sessions import unpack

            unpack(connection, session_id)

    async def heartbeat(self, session_id: str) -> None:
        """Keep the lease."""
        now = time.time()
        await self.write(
            lambda connection: connection.execute(
                "UPDATE leases SET beat = ? WHERE session_id = ? AND owner = ?", (now, session_id, self._owner)
            )
        )

    async def release(self, session_id: str) -> None:
        """Give the lease back, and what was reserved under it."""
        with leases.giving_back(leases.Lease(self.path, session_id, self._owner)):
            await self.write(lambda connection: spent.give_back(connection, session_id, self._owner))

    async def leave(self, session_id: str, *, untouched: bool) -> None:
        """Let another process have a session, as far as that can be said; of an untouched one nothing stays."""
        if untouched:
            with suppress(TreadleError):
                await self.discard_empty(session_id)
        with suppress(TreadleError):
            await self.release(session_id)

    def leased(self) -> frozenset[str]:
        """Name the sessions that a process works in now."""
        rows = self.query("SELECT session_id, owner, beat FROM leases")
        return frozenset(session_id for session_id, owner, beat in rows if leases.is_held(session_id, owner, beat))

    def close(self) -> None:
        """Wait for what is being written and close the file."""
        self._writer.submit(self._anchors.close)  # a file that was deleted meanwhile is made again
        for session_id in tuple(self._heads):
            self._writer.submit(partial(self._anchor, session_id))
        self._writer.close()
        self._anchors.close()
        if self._reader is not None:
            self._reader.close()
        with suppress(sqlite3.Error):
            self._connection.close()

    def query(self, statement: str, values: Sequence[str | int | bytes] = ()) -> list[Any]:
        """Read by a connection of its own, so that a reader never sees half a transaction; raises `StoreError`."""
        try:
            return self._to_read().execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise unread(self.path, error) from error

    def _to_read(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = opening_store.connected_database(self.path)
        return self._reader
