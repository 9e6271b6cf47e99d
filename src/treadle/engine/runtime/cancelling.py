"""Cancelling work that may not want to end."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress


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
