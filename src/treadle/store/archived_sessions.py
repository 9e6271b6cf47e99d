"""Archived sessions: the rows of each in one compressed blob, read where it is, unpacked to go on."""

import sqlite3
import zlib
from typing import Any

import msgspec

from treadle.protocol.codec import damaged

PACKED_COLUMNS = ("seq", "at", "type", "version", "source", "chain", "data")
_LIST = ", ".join(PACKED_COLUMNS)
_rows = msgspec.msgpack.Decoder(list[tuple[int, int, str, int, bytes, bytes, bytes]])


def pack(connection: sqlite3.Connection, session_id: str, at: int) -> None:
    """Put the rows of a session into one blob; one that is archived stays as it is."""
    rows = connection.execute(f"SELECT {_LIST} FROM events WHERE session_id = ? ORDER BY seq", (session_id,)).fetchall()  # noqa: S608
    if not rows:
        return
    data = zlib.compress(msgspec.msgpack.encode(rows), 6)
    connection.execute("INSERT INTO archived (session_id, at, data) VALUES (?, ?, ?)", (session_id, at, data))
    connection.execute("DELETE FROM events WHERE session_id = ?", (session_id,))


def unpack(connection: sqlite3.Connection, session_id: str) -> None:
    """Give an archived session its rows back; any other stays as it is."""
    found = connection.execute("SELECT data FROM archived WHERE session_id = ?", (session_id,)).fetchone()
    if found is None:
        return
    connection.executemany(
        f"INSERT INTO events (session_id, {_LIST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [(session_id, *row) for row in rows_in(found[0])],
    )
    connection.execute("DELETE FROM archived WHERE session_id = ?", (session_id,))


def rows_in(data: bytes) -> list[tuple[Any, ...]]:
    """Read a blob, its columns in the order of `PACKED_COLUMNS`; raises `StoreError`."""
    try:
        return [*_rows.decode(zlib.decompress(data))]
    except (zlib.error, msgspec.MsgspecError, TypeError, ValueError) as error:
        raise damaged("An archived session cannot be unpacked.", str(error)) from error
