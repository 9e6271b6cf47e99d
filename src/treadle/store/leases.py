"""Leases: which process writes a session. A process that is gone, or was silent for too long, holds none."""

import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.protocol.errors import SessionError

LEASE_SECONDS = 30.0
"""How long a lease lasts after its last heartbeat when its owner cannot be looked at."""


LEFT_OWNERS: set[str] = set()
"""Owners of this process that could not give their lease back, as on a full disk: they are gone nevertheless."""


@contextmanager
def leaving(owner: str) -> Iterator[None]:
    """Remember an owner that cannot give back what it has: none of its sessions works any more."""
    try:
        yield
    except BaseException:
        LEFT_OWNERS.add(owner)
        raise


def new_owner() -> str:
    """Name this process, when it was started, and this opening of the log, as the owner of leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{_status(os.getpid())[1]}-{time.monotonic_ns()}"


def acquire(connection: sqlite3.Connection, session_id: str, owner: str) -> None:
    """Take the lease of a session; raises `SessionError` while another process holds it."""
    row = connection.execute("SELECT owner, beat FROM leases WHERE session_id = ?", (session_id,)).fetchone()
    if row is not None and row[0] != owner and is_alive(row[0], row[1]):
        raise SessionError(
            "session-busy",
            f"Session {session_id} is busy.",
            why=f"It is open in another process ({process_of(row[0])}).",
            fix=f"Join it with `treadle --attach {session_id}`, or stop it with `treadle stop {session_id}`.",
        )
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
    return int(pid) != os.getpid() or (owner not in LEFT_OWNERS and _is_recent(beat))


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
