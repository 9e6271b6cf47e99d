"""What connections wait for, and how what a server lists in pages is put together."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

_MOST_PAGES = 50
_MOST_LISTED = 1_000


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of them happens."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def all_pages(page: Callable[[str | None], Awaitable[Any]], kind: str) -> list[Any]:
    """Give what is listed on all pages, within bounds."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in itertools.repeat(None, _MOST_PAGES):
        listed = await page(cursor)
        found += getattr(listed, kind)
        cursor = listed.next_cursor
        if not cursor or len(found) >= _MOST_LISTED:
            break
    return found[:_MOST_LISTED]
