"""A timeout for many waits: `asyncio.timeout` makes a timer for each, which costs as much as reading a token."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")

_OVERSLEPT = 1.0
"""Seconds; a timer that is so late tells that the process was stopped, as by Ctrl-Z."""

_LOOKS = 8
"""Passes of the event loop in which what is in the socket reaches whoever waits for it, through TLS, too."""


class RunningClock:
    """The time of the event loop (seconds) without waits in which the process was stopped: these begin anew."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.stopped = 0.0

    def __call__(self) -> float:
        """Give the time."""
        return self._loop.time() - self.stopped


class Deadline:
    """Waits for one thing after the other, each until its own moment; one timer of the event loop serves them all.

    Once the moment has passed it looks whether what is waited for has come: a process that is late finds it in its
    socket. It is for one task, which has to `close` it.
    """

    def __init__(self, clock: RunningClock | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or RunningClock()
        self._began = self._until = 0.0
        self._looks = 0
        self._waiting: asyncio.Task[object] | None = None
        self._late = False
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, doing: Awaitable[_T], until: float) -> _T:
        """Wait for something until a moment of its clock (seconds); raises `TimeoutError` after it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it waits
        self._began, self._until, self._looks, self._waiting = self._clock(), until, _LOOKS, task
        if self._timer is None or self._due < self._timer.when():
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

    @property
    def _due(self) -> float:
        return self._until + self._clock.stopped

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        """End the wait, unless its moment has moved on since the timer was set, or what it waits for is coming in."""
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() - self._due > _OVERSLEPT:
            self._clock.stopped += self._clock() - self._began
        if self._loop.time() < self._due:
            self._set_timer()
        elif self._looks:
            self._looks -= 1
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._late = True
            self._waiting.cancel()
