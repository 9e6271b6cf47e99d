"""Work that takes longer than a key may: in a thread of its own, its result comes back to the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from treadle.protocol.errors import TreadleError

_T = TypeVar("_T")


class Aside:
    """Starts such work. It only reads, or writes a file whole: when the program ends, nothing waits for it."""

    def __init__(self, failed: Callable[[TreadleError], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._failed = failed

    def start(self, work: Callable[[], _T], done: Callable[[_T], None], instead: _T) -> None:
        """Do `work`, then `done` with its result; after a `TreadleError`, which is shown, with something `instead`."""
        Thread(target=self._run, args=(work, done, instead), name="treadle-aside", daemon=True).start()

    def _run(self, work: Callable[[], _T], done: Callable[[_T], None], instead: _T) -> None:
        try:
            result = work()
        except TreadleError as error:
            self._back(self._failed, error)
            result = instead
        self._back(done, result)

    def _back(self, call: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(call, value)
