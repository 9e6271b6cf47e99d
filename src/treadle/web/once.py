"""What a browser may ask for a second time, because it heard no answer, and what is done once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

_MOST = 200
"""Answers that are kept; of an older request nobody waits any more."""

_T = TypeVar("_T")


class Once:
    """Keeps the answers to the latest requests, by the keys that the browser gave them."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, asyncio.Future[Any]] = OrderedDict()

    async def __call__(self, key: str, do: Callable[[], Awaitable[_T]]) -> _T:
        """Do it, or wait for the answer of the first time; what failed can be asked for again."""
        known = self._done.get(key)
        if known is None:
            known = self._done[key] = asyncio.ensure_future(do())
            known.add_done_callback(lambda done: self._forget(key, done))
            while len(self._done) > _MOST:
                self._done.popitem(last=False)
        return cast("_T", await asyncio.shield(known))

    def _forget(self, key: str, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._done.pop(key, None)
