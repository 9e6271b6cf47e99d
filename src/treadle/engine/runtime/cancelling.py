"""Waiting for work, and cancelling what may not want to end."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress

_LONGEST_KEEPING = 5.0
"""Seconds that the end of a turn, or a question, waits for checkpoints; then what is known by then is said."""


async def end_in_time(work: Coroutine[None, None, None], seconds: float) -> None:
    """Await `work`; when cancelled, cancel it and wait at most `seconds` for its end, also when cancelled again.

    Work that swallows the cancel, or whose clean-up hangs, goes on without anybody waiting for it: the session must
    not hang with it.
    """
    inner = asyncio.ensure_future(work)
    inner.add_done_callback(_retrieve)
    try:
        await asyncio.shield(inner)
    except asyncio.CancelledError:
        inner.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not inner.done() and (left := deadline - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({inner}, timeout=left)
        raise


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
