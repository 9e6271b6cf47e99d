"""Waiting for work, and cancelling what may not want to end."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress

_LONGEST_KEEPING = 5.0
"""Seconds that the end of a turn, or a question, waits for checkpoints; then what is known by then is said."""


class OwnedWork:
    """Work that has begun, and its guard, which reports its end; begun by its guard, it would begin later.

    Where it is `held` a cancel waits until its release.
    """

    def __init__(self, work: Coroutine[None, None, None], *, held: bool = False) -> None:
        self._work = asyncio.ensure_future(work)
        self._work.add_done_callback(_retrieve)
        self._guarded = False
        self._held = held
        self._wanted = False
        self.guard: asyncio.Task[None]

    async def end(self, seconds: float) -> None:
        """Await the work; when cancelled, cancel it and wait at most `seconds` for its end, also when cancelled again.

        Work that swallows the cancel, or whose clean-up hangs, goes on without anybody waiting for it: the session must
        not hang with it.
        """
        self._guarded = True
        try:
            await asyncio.shield(self._work)
        except asyncio.CancelledError:
            self._work.cancel()
            loop = asyncio.get_running_loop()
            deadline = loop.time() + seconds
            while not self._work.done() and (left := deadline - loop.time()) > 0:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({self._work}, timeout=left)
            raise

    def release(self) -> None:
        """Cancel it now if that was wanted meanwhile."""
        self._held = False
        if self._wanted:
            self.cancel()

    def cancel(self, *, at_once: bool = False) -> None:
        """Have it end; where neither the work nor its guard has taken a step, neither does."""
        if self._held and not at_once:
            self._wanted = True
            return
        self.leave()
        self.guard.cancel()

    def leave(self) -> None:
        """Have it end without a guard where none has begun."""
        if not self._guarded:
            self._work.cancel()


def _retrieve(task: asyncio.Task[None]) -> None:
    """Look at the exception: where nobody waits any more, asyncio would print it over the screen."""
    if not task.cancelled():
        task.exception()


async def after_keeping(checkpoints: Collection[asyncio.Task[None]], then: Callable[[], None] | None = None) -> None:
    """Wait for the checkpoints that are being taken, but not long."""
    if checkpoints:
        await asyncio.wait(checkpoints, timeout=_LONGEST_KEEPING)
    if then is not None:
        then()


async def slept(seconds: float, wall: Callable[[], int]) -> None:
    """Sleep so many seconds by the clock on the `wall` (milliseconds), too, which goes on while the machine sleeps."""
    clock = asyncio.get_running_loop().time
    ends, moment = clock() + seconds, wall() + seconds * 1000
    while (left := min(ends - clock(), (moment - wall()) / 1000)) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(left, 30.0))
