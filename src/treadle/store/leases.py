"""Leases: which process writes a session. A process that is gone, or was silent for too long, holds none."""

import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from treadle.protocol.errors import SessionError

LEASE_SECONDS = 30.0
"""How long a lease lasts after its last heartbeat when its owner cannot be looked at."""


class Lease(NamedTuple):
    """That an opening of a log, its `owner`, writes a session."""

    path: Path
    session_id: str
    owner: str


LEFT_LEASES: set[Lease] = set()
"""What this process could not give back, as on a full disk: nobody works in these sessions any more."""


@contextmanager
def giving_back(lease: Lease) -> Iterator[None]:
    """Remember a lease that cannot be given back."""
    try:
        yield
    except BaseException:
        LEFT_LEASES.add(lease)
        raise
    LEFT_LEASES.discard(lease)


def new_owner() -> str:
    """Name this process, when it was started, and this opening of the log, as the owner of leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{_status(os.getpid())[1]}-{time.monotonic_ns()}"


def require_unheld(connection: sqlite3.Connection, session_id: str, owner: str = "") -> None:
    """Raise `SessionError` while another opening of the log than `owner` holds the lease of a session."""
    row = connection.execute("SELECT owner, beat FROM leases WHERE session_id = ?", (session_id,)).fetchone()
    if row is not None and row[0] != owner and is_held(session_id, *row):
        raise SessionError(
            "session-busy",
            f"Session {session_id} is busy.",
            why=f"It is open in another process ({process_of(row[0])}).",
            fix=f"Join it with `treadle --attach {session_id}`, or stop it with `treadle stop {session_id}`.",
        )


def acquire(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    """Take the lease of a session; raises `SessionError` while another opening of the log holds it."""
    require_unheld(connection, session_id, owner)
    connection.execute(
        "INSERT INTO leases (session_id, owner, beat) VALUES (?, ?, ?) "
        "ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, beat = excluded.beat",
        (session_id, owner, time.time()),
    )


def process_of(owner: str) -> str:
    """Give the computer and the number of the process that an owner is."""
    return owner.rsplit(":", 1)[0]


def number_here(owner: str) -> int | None:
    """Give the number of an owner's process; None where that is on another computer."""
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    return int(rest) if host == socket.gethostname() else None


def is_alive(owner: str, beat: float) -> bool:
    """Whether the owner of a lease still lives; one on another computer does as long as its last beat is recent.

    A process that was started at another time has only its number. Owners of older versions do not say when.
    """
    host, pid, opening = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return _is_recent(beat)
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    ended, started = _status(int(pid))
    began = opening.partition("-")[0] if "-" in opening else ""
    if ended or (began and started and began != started):
        return False
    return int(pid) != os.getpid() or _is_recent(beat)


def is_held(session_id: str, owner: str, beat: float) -> bool:
    """Whether the owner of a session's lease still works in it."""
    return is_alive(owner, beat) and all(one[1:] != (session_id, owner) for one in LEFT_LEASES)


def works_now(owner: str, beat: float) -> bool:
    """Whether the owner of a lease lives and was at work a moment ago: the number of a process may be another's now."""
    return _is_recent(beat) and is_alive(owner, beat)


def _is_recent(beat: float) -> bool:
    # A beat far in the future is one from before the clock was set back.
    return abs(time.time() - beat) < LEASE_SECONDS


def _status(pid: int) -> tuple[bool, str]:
    """Say whether a process has ended and only its number is still taken, and when it was started, in ticks since boot.

    Where there is no /proc nobody can tell.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0] == b"Z", fields[19].decode()
    except (OSError, IndexError):
        return False, ""
