"""What a browser is sent until it ends: a long answer, which ends immediately where its browser is shut out."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from treadle.web.page_keys import Keys, Visitor


class PageStream(StreamingResponse):
    """The one kind of answer that goes on: the guard looks at who sends a request only once, as it comes."""

    def __init__(self, pieces: AsyncIterator[bytes], *, media_type: str) -> None:
        super().__init__(pieces, media_type=media_type)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, as long as its browser is let in."""
        keys, visitor = scope["app"].state.keys, scope["state"]["visitor"]
        assert isinstance(keys, Keys)  # noqa: S101 - the application has put it there
        assert isinstance(visitor, Visitor)  # noqa: S101 - the guard has put it there
        self.body_iterator = self._while_in(keys, visitor)
        await super().__call__(scope, receive, send)

    async def _while_in(self, keys: Keys, visitor: Visitor) -> AsyncIterator[bytes]:
        out = asyncio.create_task(_shut_out(keys, visitor), name="whether a browser is shut out")
        coming: asyncio.Task[bytes | None] | None = None
        try:
            while True:
                coming = asyncio.create_task(_next(self._pieces), name="what a browser is sent")
                await asyncio.wait((coming, out), return_when=asyncio.FIRST_COMPLETED)
                if out.done() or (piece := coming.result()) is None:
                    return
                yield piece
        finally:
            tasks = [task for task in (coming, out) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


async def _shut_out(keys: Keys, visitor: Visitor) -> None:
    event = asyncio.Event()
    with keys.changed.notifying(event):
        while keys.is_in(visitor):
            event.clear()
            await event.wait()
