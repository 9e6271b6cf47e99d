"""Cancelling work that may not want to end."""

import asyncio
from collections.abc import Coroutine


async def end_in_time(work: Coroutine[None, None, None], seconds: float) -> None:
    """Await `work`; when cancelled, cancel it and wait at most `seconds` for its end.

    Work that swallows the cancel, or whose clean-up hangs, goes on without anybody waiting for it: the session must
    not hang with it.
    """
    inner = asyncio.ensure_future(work)
    try:
        await asyncio.shield(inner)
    except asyncio.CancelledError:
        if not inner.done():
            inner.cancel()
            await asyncio.wait({inner}, timeout=seconds)
        raise
