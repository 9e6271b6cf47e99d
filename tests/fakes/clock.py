"""An event loop whose time is a number: a sleep is over at once, so what happens follows from the order alone."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Lets the loop's time go on where it would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Give what is ready now."""
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        if not ready and timeout is not None:
            self.now += max(0.0, timeout)
        return ready


class FakeClockLoop(asyncio.SelectorEventLoop):
    """For work without threads, sockets and processes. Its time begins at 0."""

    def __init__(self) -> None:
        self._skipping = _Selector()
        super().__init__(self._skipping)

    def time(self) -> float:
        """Give the time in seconds."""
        return self._skipping.now


def run_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end without waiting for anything."""
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(work)
