"""What happens, as server-sent events: a browser says how far it knows a page, and gets what changed since."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from treadle.app.presentation.words import written_text
from treadle.app.session.checklist_file import todo_of
from treadle.web.book import PageSession, SessionBook
from treadle.web.item_html import entry_html, question_html
from treadle.web.keys import Keys, Visitor
from treadle.web.page_view import PageView
from treadle.web.requests import book_of, visitor_of, whole_number
from treadle.web.signals import Signal

_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two updates: what happens meanwhile comes as one."""

_SHARE = 0.05
"""Of a core that the updates of one page take at most: what takes long to make comes less often."""

_ALIVE = 15.0
"""Seconds after which a browser hears that there is nothing new."""

_MOST_STREAMS, _MOST_OF_ONE = 100, 24
"""Pages that listen: in all, and of one browser."""

_MOST_ENTRIES = 300
"""Changed items; a browser that missed more loads the page anew."""


class EventStreams:
    """The pages that listen, until they go, their browser is shut out, or all `end`."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._open: Counter[str] = Counter()
        self._ended = False
        self._changed = Signal()

    def end(self) -> None:
        """End all: the server goes."""
        self._ended = True
        self._changed.set()

    async def events(self, request: Request) -> StreamingResponse:
        """Serve a page: `session` is which session it shows, if any, `cursor` how far it knows that."""
        visitor = visitor_of(request)
        if request.method != "GET":
            raise HTTPException(405, "Events are read with GET.")
        if self._open.total() >= _MOST_STREAMS or self._open[visitor.name] >= _MOST_OF_ONE:
            raise HTTPException(503, "Too many pages are open. Close some.")
        cursor = request.headers.get("last-event-id") or request.query_params.get("cursor", "")
        news = _News(book_of(request), request.query_params.get("session", ""), cursor)
        return StreamingResponse(self._counted(news, visitor), media_type="text/event-stream")

    async def _counted(self, news: "_News", visitor: Visitor) -> AsyncIterator[bytes]:
        self._open[visitor.name] += 1
        event = asyncio.Event()
        try:
            with self._changed.told(event), self._keys.changed.told(event):
                async for piece in news.stream(event):
                    if self._ended or not self._keys.is_in(visitor):
                        return
                    yield piece
        finally:
            self._open[visitor.name] -= 1


class _News:
    """What one browser has not heard yet."""

    def __init__(self, book: SessionBook, session_id: str, cursor: str) -> None:
        self._book = book
        self._session_id = session_id
        run, _, version = cursor.partition(".")
        self._run = run
        known = whole_number(version)
        self._version = -1 if known is None else known
        self._waiting: Any = None
        self._status: Any = None

    async def stream(self, event: asyncio.Event) -> AsyncIterator[bytes]:
        """Give what is new, each time that the event is set; nothing new is a piece, too."""
        with self._book.changed.told(event):
            page = self._book.opened.get(self._session_id)
            yield b"retry: 1000\n\n"
            if page is None:
                async for piece in self._listen(None, event):
                    yield piece
            else:
                with page.changed.told(event):
                    async for piece in self._listen(page, event):
                        yield piece

    async def _listen(self, page: PageSession | None, event: asyncio.Event) -> AsyncIterator[bytes]:
        while True:
            event.clear()
            begun = time.thread_time()
            news = self._news(page)
            spent = time.thread_time() - begun
            yield self._message(news) if news else b""
            if news.get("reload"):
                return
            await asyncio.sleep(min(max(_PAUSE, spent / _SHARE), _LONGEST_PAUSE))
            try:
                async with asyncio.timeout(_ALIVE):
                    await event.wait()
            except TimeoutError:
                yield b": nothing new\n\n"

    def _news(self, page: PageSession | None) -> dict[str, Any]:
        news: dict[str, Any] = {}
        waiting = {id_: len(one.questions) for id_, one in self._book.opened.items() if one.questions}
        if waiting != self._waiting:
            self._waiting = waiting
            news["waiting"] = waiting
        if not self._session_id:
            return news
        if self._book.opened.get(self._session_id) is not page:
            return {"reload": True}  # it was opened or closed
        if page is not None:
            self._add_page(page, page.view, news)
        return news

    def _add_page(self, page: PageSession, view: PageView, news: dict[str, Any]) -> None:
        if view.run != self._run or self._version < 0:
            news["reload"] = True
            return
        changed = view.changed_after(self._version)
        if len(changed) > _MOST_ENTRIES:
            news["reload"] = True
            return
        if changed:
            news["items"] = [[entry.position, entry_html(entry)] for entry in changed]
        self._version = view.version
        status = page_status(page)
        if status != self._status:
            self._status = status
            news["status"] = status

    def _message(self, news: dict[str, Any]) -> bytes:
        number = f"id: {self._run}.{self._version}\n".encode() if self._version >= 0 else b""
        return number + b"data: " + msgspec.json.encode(news) + b"\n\n"


def page_status(page: PageSession) -> dict[str, Any]:
    """Say what is true of an open session beside what stands on its page."""
    status, facts = page.session.status, page.view.facts
    roots = (str(page.session.workspace), *page.session.roots)
    return {
        "phase": status.phase.value,
        "active": status.turn_active,
        "mode": status.mode.value,
        "model": status.model,
        "tokens": status.tokens,
        "window": status.window,
        "cost": facts.cost,
        "unpriced": facts.unpriced,
        "step": facts.step,
        "added": facts.added,
        "removed": facts.removed,
        "retry": facts.retry,
        "queue": [{"id": one.id, "text": written_text(one.content)[:2_000]} for one in status.queue],
        "todo": [{"text": todo.text, "done": todo.done, "depth": todo.depth} for todo in todo_of(status.checklist)],
        "questions": [[one.id, question_html(page.session.id, one, roots)] for one in status.questions],
    }
