"""Limits that processes of one family share: a 429 that one of them got slows all down that use the same key.

It is a piece of memory that forked processes have in common, with a place for each account; two accounts may have the
same place, which only slows them down together. Without a lock: of two that write at the same time one is kept, and
each is true.
"""

import mmap
import struct
import zlib
from collections.abc import Callable
from random import random
from time import monotonic

from treadle.providers.breaker import process_circuits

_PLACES = 256
_ENTRY = struct.Struct("=ddd")

UNSAID = 2.0
"""Seconds for which nobody calls after a 429 that does not say how long."""

FIRST_SPREAD, LONGEST_SPREAD = 1.0, 60.0
"""Seconds over which those that waited call again; doubled with each further 429 within `REMEMBERED`."""

REMEMBERED = 120.0
"""Seconds after which a 429 is forgotten."""


class SharedLimits:
    """Until when each account is not called (seconds of `clock`, which is the same in all processes)."""

    def __init__(self, clock: Callable[[], float], chance: Callable[[], float]) -> None:
        self._clock = clock
        self._chance = chance
        self._memory = mmap.mmap(-1, _PLACES * _ENTRY.size)

    def hold(self, account: tuple[str, ...], seconds: float | None) -> None:
        """Take note of a 429: nobody calls for so many seconds; None where it did not say."""
        now = self._clock()
        place = self._place(account)
        until, spread, last = _ENTRY.unpack_from(self._memory, place)
        recent = last and now - last < REMEMBERED
        spread = min(LONGEST_SPREAD, spread * 2) if recent else FIRST_SPREAD
        _ENTRY.pack_into(self._memory, place, max(until, now + (UNSAID if seconds is None else seconds)), spread, now)

    def wait(self, account: tuple[str, ...]) -> float | None:
        """Give for how many seconds not to call; None where a call may go out."""
        until, spread, _ = _ENTRY.unpack_from(self._memory, self._place(account))
        left: float = until - self._clock()
        return left + self._chance() * spread if left > 0 else None

    def _place(self, account: tuple[str, ...]) -> int:
        return zlib.crc32("\0".join(account).encode()) % _PLACES * _ENTRY.size


def share_limits() -> None:
    """Let the processes that are forked from here on slow down together where one of them got a 429."""
    process_circuits().share(SharedLimits(monotonic, random))
