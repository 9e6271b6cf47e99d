"""Copying sessions out of a broken database: all of a session, or its log up to the first break."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from treadle.protocol.codec import decode_source
from treadle.protocol.errors import StoreError
from treadle.protocol.events import SessionStarted
from treadle.store.archived_sessions import PACKED_COLUMNS, pack, rows_in
from treadle.store.chain import LogRow, beginning, link
from treadle.store.damage import event_data
from treadle.store.schema import type_of
from treadle.store.titles import first_title, last_model

_CHAINED = 3
"""The first schema whose rows have a chain."""

_ARCHIVING = 8
"""The first schema with names and archived sessions."""


class Recovered(Struct, frozen=True):
    """The ids of sessions that came over whole, and of those whose end is missing."""

    whole: tuple[str, ...]
    shortened: tuple[str, ...]


class _Known(Struct, frozen=True):
    """What the list of sessions says of one; `events` is how long its log was."""

    title: str
    updated_at: int
    events: int
    name: str = ""


_Kept = tuple[LogRow, int]
"""A row of the log, and the version of its data."""


def recover_database(broken: Path, fresh: sqlite3.Connection) -> Recovered:
    """Copy what can be read and is right. A file that tells nothing gives nothing."""
    whole: list[str] = []
    shortened: list[str] = []
    with closing(sqlite3.connect(broken)) as source, suppress(sqlite3.Error):
        source.execute("PRAGMA writable_schema=ON")  # else a file that was cut cannot be read at all
        version = int(source.execute("PRAGMA user_version").fetchone()[0])
        known = _sessions(source, named=version >= _ARCHIVING)
        for session_id in dict.fromkeys([*known, *_ids(source)]):
            packed = _packed(source, session_id) if version >= _ARCHIVING else []
            rows = list(_sound(session_id, packed or _stored(source, session_id, chained=version >= _CHAINED), version))
            if _write(fresh, session_id, rows, known.get(session_id)):
                length = known[session_id].events if session_id in known else -1
                (whole if len(rows) == length else shortened).append(session_id)
                if packed:
                    fresh.execute("BEGIN IMMEDIATE")
                    pack(fresh, session_id, rows[-1][0].at)
                    fresh.execute("COMMIT")
    return Recovered(tuple(whole), tuple(shortened))


def _readable(source: sqlite3.Connection, query: str, values: tuple[str, ...] = ()) -> Iterator[Any]:
    """Give rows up to the first that cannot be read."""
    with suppress(sqlite3.Error):
        yield from source.execute(query, values)


def _sessions(source: sqlite3.Connection, *, named: bool) -> dict[str, _Known]:
    columns = "id, title, updated_at, last_seq, " + ("name" if named else "''")
    rows = _readable(source, f"SELECT {columns} FROM sessions NOT INDEXED")  # noqa: S608 - two constants
    kinds = (str, str, int, int, str)
    return {row[0]: _Known(*row[1:]) for row in rows if all(map(isinstance, row, kinds))}


def _ids(source: sqlite3.Connection) -> list[str]:
    found = _readable(source, "SELECT session_id FROM events WHERE seq = 1")
    return [session_id for (session_id,) in found if isinstance(session_id, str)]


def _stored(source: sqlite3.Connection, session_id: str, *, chained: bool) -> Iterator[Any]:
    query = (
        f"SELECT seq, at, source, data, {'chain' if chained else 'zeroblob(0)'}, version "  # noqa: S608 - two constants
        "FROM events WHERE session_id = ? ORDER BY seq"
    )
    return _readable(source, query, (session_id,))


def _packed(source: sqlite3.Connection, session_id: str) -> list[Any]:
    """Give the rows of an archived session; none of one whose blob is damaged."""
    places = [PACKED_COLUMNS.index(name) for name in ("seq", "at", "source", "data", "chain", "version")]
    with suppress(StoreError):
        for (data,) in _readable(source, "SELECT data FROM archived WHERE session_id = ?", (session_id,)):
            return [tuple(row[place] for place in places) for row in rows_in(data)]
    return []


def _sound(session_id: str, rows: Iterable[Any], schema: int) -> Iterator[_Kept]:
    """Give the rows of a log as long as they follow each other, can be decoded and fit the chain."""
    previous = beginning(session_id)
    for count, (*columns, version) in enumerate(rows, start=1):
        row = LogRow(*columns)
        if not row.well_formed or row.seq != count or not _decodes(row, version):
            return
        previous = link(previous, row)
        if schema >= _CHAINED and row.chain != previous:
            return
        yield replace(row, chain=previous), version


def _decodes(row: LogRow, version: object) -> bool:
    if not isinstance(version, int):
        return False
    try:
        decode_source(row.source)
        event_data(row.data, version)
    except StoreError:
        return False
    return True


def _write(fresh: sqlite3.Connection, session_id: str, rows: list[_Kept], known: _Known | None) -> bool:
    """Write one session; says whether there was a beginning to go on from."""
    if not rows:
        return False
    (first, version), last = rows[0], rows[-1][0]
    started = event_data(first.data, version)
    if not isinstance(started, SessionStarted):
        return False
    of = started.child_of
    updated_at = known.updated_at if known else last.at
    title = (known.title if known else "") or first_title(event_data(row.data, number) for row, number in rows)
    model = last_model(event_data(row.data, number) for row, number in rows)
    with fresh:
        fresh.execute("BEGIN IMMEDIATE")
        fresh.execute(
            "INSERT INTO sessions (id, workspace, model, title, created_at, updated_at, last_seq, name, "
            "parent, root, agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(session_id, started.workspace, model, title, first.at, updated_at, last.seq),
                known.name if known else "",
                *(("", "", "") if isinstance(of, UnsetType) else (of.parent, of.root, of.agent)),
            ),
        )
        fresh.executemany(
            "INSERT INTO events (session_id, seq, at, type, version, source, chain, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (session_id, row.seq, row.at, type_of(row.data), number, row.source, row.chain, row.data)
                for row, number in rows
            ],
        )
    return True
