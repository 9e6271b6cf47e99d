"""Whether a program and all that it started have done nothing between two looks: each of its threads slept."""

import os
from typing import TypeAlias

from treadle.workspace.commands.meter import descendants

SleepMark: TypeAlias = frozenset[tuple[int, bytes]]
"""The threads of a program that all sleep, each with how often it has given up the processor so far."""

_SLEEPS = b"\tS (sleeping)"
_COUNTS = (b"voluntary_ctxt_switches:", b"nonvoluntary_ctxt_switches:")


class ProgramSleep:
    """Looks at the program below one process, which is named when it has started."""

    def __init__(self) -> None:
        self._above = 0

    def begin(self, above: int) -> None:
        """Look from now on at all that runs below a process."""
        self._above = above

    def mark(self) -> SleepMark | None:
        """Give what stays the same for as long as the program sleeps; None where it runs, or nothing is known of it."""
        if not self._above:
            return None
        found: set[tuple[int, bytes]] = set()
        for pid in descendants(self._above):
            for thread in _threads(pid):
                count = _slept(pid, thread)
                if count is None:
                    return None
                found.add((int(thread), count))
        return frozenset(found) or None


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return ["0"]  # it has just ended, so something ran


def _slept(pid: int, thread: str) -> bytes | None:
    """Count how often a thread gave up the processor; None where it does not sleep, or cannot be looked at."""
    try:
        with open(f"/proc/{pid}/task/{thread}/status", "rb") as file:  # noqa: PTH123 - for each thread, every time
            lines = file.read().splitlines()
    except OSError:
        return None
    if not any(line.endswith(_SLEEPS) for line in lines if line.startswith(b"State:")):
        return None
    return b" ".join(line.split()[-1] for line in lines if line.startswith(_COUNTS))
