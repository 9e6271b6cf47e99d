"""Processes named so that a number that was given out again is not taken for them."""

import os
from pathlib import Path

from msgspec import Struct


class Owner(Struct, frozen=True):
    """A process by its id and when it was started, in the kernel's ticks since boot; 0 where that cannot be told."""

    pid: int
    started: int


def owner_of(pid: int) -> Owner:
    """Name a process that lives."""
    return Owner(pid, _started(pid) or 0)


def lives(owner: Owner) -> bool:
    """Whether it still runs: not one that only waits to be reaped, nor another one with its number."""
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    started = _started(owner.pid)
    return started is None or started == owner.started


def _started(pid: int) -> int | None:
    """Read the start of a process; 0 for one that has ended, None where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0 if Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])
