"""What happens, as server-sent events: a browser says how far it knows a page, and gets what changed since."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from treadle.app.presentation.words import written_text
from treadle.app.session.checklist_file import todo_of
from treadle.web.book import PageSession, SessionBook
from treadle.web.item_html import entry_html, question_html
from treadle.web.items import Entry
from treadle.web.page_view import PageView
from treadle.web.requests import book_of

_PAUSE = 0.05
"""Seconds between two updates: what happens meanwhile comes as one."""

_ALIVE = 15.0
"""Seconds after which a browser hears that there is nothing new."""

_MOST_STREAMS = 100
_MOST_ENTRIES = 300
"""Changed items; a browser that missed more loads the page anew."""


class Streams:
    """The browsers that listen."""

    def __init__(self) -> None:
        self._count = 0

    async def events(self, request: Request) -> StreamingResponse:
        """Serve a browser: `session` is which session's page it shows, if any, `cursor` how far it knows that."""
        if self._count >= _MOST_STREAMS:
            raise HTTPException(503, "Too many pages are open. Close some.")
        cursor = request.headers.get("last-event-id") or request.query_params.get("cursor", "")
        news = _News(book_of(request), request.query_params.get("session", ""), cursor)
        return StreamingResponse(self._counted(news), media_type="text/event-stream")

    async def _counted(self, news: "_News") -> AsyncIterator[bytes]:
        self._count += 1
        try:
            async for piece in news.stream():
                yield piece
        finally:
            self._count -= 1


class _News:
    """What one browser has not heard yet."""

    def __init__(self, book: SessionBook, session_id: str, cursor: str) -> None:
        self._book = book
        self._session_id = session_id
        run, _, version = cursor.partition(".")
        self._run = run
        self._version = int(version) if version.isdecimal() else -1
        self._waiting: Any = None
        self._status: Any = None

    async def stream(self) -> AsyncIterator[bytes]:
        event = asyncio.Event()
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
            news = self._news(page)
            if news:
                yield self._message(news)
            if news.get("reload"):
                return
            await asyncio.sleep(_PAUSE)
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
        changed = missed(view, self._run, self._version)
        if changed is None:
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


def missed(view: PageView, run: str, version: int) -> Sequence[Entry] | None:
    """Give what changed on a page since a browser saw it; None where it has to load the page anew."""
    if view.run != run or not 0 <= version <= view.version:
        return None
    changed = view.changed_after(version)
    return None if len(changed) > _MOST_ENTRIES else changed


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
