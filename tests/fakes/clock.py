"""An event loop whose time is a number: a sleep is over at once, so what happens follows from the order alone."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Lets the loop's time go on where it would wait."""

    def __init__(self, *, outside: bool) -> None:
        super().__init__()
        self.now = 0.0
        self._outside = outside

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Give what is ready now."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            if not self._outside:
                raise RuntimeError("everything waits, and nothing will ever happen")
            return super().select(0.01)
        self.now += max(0.0, timeout)
        return []


class FakeClockLoop(asyncio.SelectorEventLoop):
    """For work without threads, sockets and processes, unless what is `outside` may wake it. Its time begins at 0."""

    def __init__(self, *, outside: bool = False) -> None:
        self._skipping = _Selector(outside=outside)
        super().__init__(self._skipping)

    def time(self) -> float:
        """Give the time in seconds."""
        return self._skipping.now

    def skip(self, seconds: float) -> None:
        """Let time go by in which nothing happens."""
        self._skipping.now += seconds


def run_at_once(work: Coroutine[Any, Any, T], *, outside: bool = False) -> T:
    """Run to the end without waiting for anything but, where it is said, for what is `outside`."""
    with asyncio.Runner(loop_factory=lambda: FakeClockLoop(outside=outside)) as runner:
        return runner.run(work)
