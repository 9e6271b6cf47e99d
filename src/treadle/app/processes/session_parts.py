"""A session's log in parts, so that another computer can go on with it; and the process that had it open."""

import asyncio
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from treadle.app.compose import open_store
from treadle.app.config.places import data_directory
from treadle.protocol.base import Record
from treadle.store.appending import insert_versioned
from treadle.store.chain import LogRow
from treadle.store.leases import is_alive, new_owner, number_here
from treadle.store.spent import spent_by_session
from treadle.store.sqlite import Store
from treadle.workspace.files.private_file import make_private_folder

_COLUMNS = "seq, at, source, data, version, type, chain"
_GONE_WITHIN = 10.0
"""Seconds in which a process that was killed is gone."""


class LogLine(Struct, frozen=True, array_like=True):
    """A row of a log as it is moved: as it is stored, with its type."""

    seq: int
    at: int
    source: bytes
    data: bytes
    version: int
    type: str
    chain: bytes


class LogPart(Record, frozen=True, kw_only=True):
    """The rows of a session after those of the parts before, and how the session is listed (times: ms since 1970)."""

    session: str
    model: str
    title: str
    created_at: int
    lines: tuple[LogLine, ...]


def log_part(session_id: str, after: int) -> LogPart | None:
    """Give what a log has after an event; None where there is nothing. Raises `StoreError`."""
    store = open_store()
    try:
        return _part(store, session_id, after)
    finally:
        store.close()


def _part(store: Store, session_id: str, after: int) -> LogPart | None:
    found = store.query("SELECT model, title, created_at FROM sessions WHERE id = ?", (session_id,))
    rows = store.query(
        f"SELECT {_COLUMNS} FROM events WHERE session_id = ? AND seq > ? ORDER BY seq",  # noqa: S608 - constants
        (session_id, after),
    )
    if not found or not rows:
        return None
    model, title, created_at = found[0]
    lines = tuple(LogLine(*row) for row in rows)
    return LogPart(session=session_id, model=model, title=title, created_at=created_at, lines=lines)


def whole_log(parts: Sequence[LogPart]) -> list[LogLine]:
    """Put parts together in their order: where one begins, what those before it had from there on is not the log's.

    Gives nothing where a part is missing.
    """
    lines: list[LogLine] = []
    for part in parts:
        first = part.lines[0].seq
        lines = [line for line in lines if line.seq < first]
        if first != len(lines) + 1:
            return []
        lines.extend(part.lines)
    return lines


def last_in_common(parts: Sequence[LogPart], session_id: str) -> int:
    """Give the last event up to which a log is here as it was kept in parts. Raises `StoreError`."""
    store = open_store()
    try:
        return _same(store, session_id, whole_log(parts))[0]
    finally:
        store.close()


def _same(store: Store, session_id: str, lines: Sequence[LogLine]) -> tuple[int, int]:
    """Give the last event that is the same here, and how many events there are here."""
    here = {row[0]: row[1] for row in store.rows(session_id, "seq, chain")}
    same = 0
    for line in lines:
        if here.get(line.seq) != line.chain:
            break
        same = line.seq
    return same, len(here)


def put_log_back(parts: Sequence[LogPart], workspace: str) -> int:
    """Write a log that was kept in parts; gives its last event. What differs from it here is set aside.

    Raises `StoreError`, and `SessionError` while another process has the session open.
    """
    lines = whole_log(parts)
    if not lines:
        return 0
    about = parts[-1]
    store = open_store()
    try:
        same, here = _same(store, about.session, lines)
        if here > same:
            asyncio.run(store.set_aside(about.session, same))
        store.write_now(partial(_add, about=about, workspace=workspace, known=bool(here)))
        new = [(LogRow(line.seq, line.at, line.source, line.data), line.type, line.version) for line in lines[same:]]
        if new:
            store.write_now(partial(insert_versioned, session_id=about.session, rows=new, head=None))
        if here > same:
            asyncio.run(store.release(about.session))
    finally:
        store.close()
    return lines[-1].seq


def _add(connection: sqlite3.Connection, *, about: LogPart, workspace: str, known: bool) -> None:
    execute = connection.execute
    if known:
        execute("UPDATE sessions SET workspace = ? WHERE id = ?", (workspace, about.session))
    else:
        execute(
            "INSERT OR REPLACE INTO sessions (id, workspace, model, title, created_at, updated_at, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, 0)",
            (about.session, workspace, about.model, about.title, about.created_at, about.created_at),
        )


def this_process() -> str:
    """Name this process so that nobody takes another one with the same number for it."""
    return new_owner()


def end_process(owner: str) -> bool:
    """Kill a process of this computer that `this_process` has named, and wait until it is gone; says whether it is.

    One that is stopped or hangs would go on with its work later. One on another computer cannot be looked at.
    """
    number = number_here(owner)
    if number is None or number == os.getpid():
        return False
    end = time.monotonic() + _GONE_WITHIN
    while is_alive(owner, time.time()):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_process_gone(owner: str) -> bool:
    """Whether a process of this computer that `this_process` has named has ended; one elsewhere cannot be looked at."""
    return number_here(owner) is not None and not is_alive(owner, time.time())


def session_sums(session_id: str) -> dict[str, float]:
    """Give what each session of a task has spent here by now (US dollars): its own, and its subagents'.

    Raises `StoreError`.
    """
    store = open_store()
    try:
        rows = store.query("SELECT id FROM sessions WHERE id = ? OR root = ?", (session_id, session_id))
        return {name: spent_by_session(store, name) for (name,) in rows}
    finally:
        store.close()


def home_name() -> tuple[str, Path]:
    """Name the data folder of this user on this computer, so that others can tell it from theirs.

    Gives, too, the folder beside it for copies of fleets: in it, nothing could be changed.
    """
    data = data_directory()
    file = data / "fleet-name"
    if not file.exists():
        make_private_folder(data)
        new = data / f".fleet-name-{os.getpid()}"
        new.write_text(f"{socket.gethostname()}-{os.urandom(6).hex()}")
        with suppress(FileExistsError):  # another process was faster
            os.link(new, file)
        new.unlink()
    return file.read_text(), data.with_name(f"{data.name}-fleet")
