"""A timeout for many waits: `asyncio.timeout` makes a timer for each, which costs as much as reading a token."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")


class Deadline:
    """Waits for one thing after the other, each until its own moment; one timer of the event loop serves them all.

    It is for one task, which has to `close` it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = 0.0
        self._waiting: asyncio.Task[object] | None = None
        self._late = False
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, doing: Awaitable[_T], until: float) -> _T:
        """Wait for something until a moment of the loop's clock (seconds); raises `TimeoutError` after it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it waits
        self._until, self._waiting = until, task
        if self._timer is None or until < self._timer.when():
            self._set_timer()
        cancelling = task.cancelling()
        try:
            return await doing
        except asyncio.CancelledError as cancelled:
            if self._late and task.cancelling() - 1 <= cancelling:
                raise TimeoutError from cancelled
            raise
        finally:
            self._waiting = None
            if self._late:
                self._late = False
                task.uncancel()

    def close(self) -> None:
        """Give the timer back."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._until, self._look)

    def _look(self) -> None:
        """End the wait, unless its moment has moved on since the timer was set."""
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._until:
            self._set_timer()
        else:
            self._late = True
            self._waiting.cancel()
