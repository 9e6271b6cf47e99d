"""What happens, as server-sent events: a browser says how far it knows a page, and gets what changed since."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from treadle.door.open_session import Reach
from treadle.present.items import Placed
from treadle.web.book import SessionBook
from treadle.web.page_keys import Keys, Visitor
from treadle.web.page_requests import book_of, visitor_of, whole_number
from treadle.web.page_session import PageSession
from treadle.web.page_stream import PageStream
from treadle.web.page_view import PageContent
from treadle.web.rights import may
from treadle.web.signals import Signal
from treadle.web.status import listed_state, page_status

_SAID_OF = 5
"""Answers of each session that a browser is told with its questions."""

_PAUSE, _LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two updates: what happens meanwhile comes as one."""

_SHARE = 0.02
"""Of a core that the updates of one page take at most: what takes long to make comes less often."""

_ALIVE = 5.0
"""Seconds after which a browser hears that there is nothing new: it counts how long it has heard nothing at all."""

_MOST_STREAMS, _MOST_OF_ONE = 100, 24
"""Pages that listen: in all, and of one browser."""

_MOST_ENTRIES = 300
"""Changed items; a browser that missed more loads the page anew."""


class EventStreams:
    """The pages that listen, until they go, or all `end`."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._open: Counter[str] = Counter()
        self._ended = False
        self._changed = Signal()

    def end(self) -> None:
        """End all: the server goes."""
        self._ended = True
        self._changed.set()

    async def events(self, request: Request) -> PageStream:
        """Serve a page: `session` is which session it shows, if any, as an `opened` one or not, `cursor` how far."""
        visitor = visitor_of(request)
        if request.method != "GET":
            raise HTTPException(405, "Events are read with GET.")
        if self._open.total() >= _MOST_STREAMS or self._open[visitor.name] >= _MOST_OF_ONE:
            raise HTTPException(503, "Too many pages are open. Close some.")
        cursor = request.headers.get("last-event-id") or request.query_params.get("cursor", "")
        session, opened = request.query_params.get("session", ""), request.query_params.get("opened", "") == "yes"
        knocking = self._knocking if may(visitor, Reach.DEVICES) else tuple
        news = _News(book_of(request), session, cursor, visitor, opened=opened, knocking=knocking)
        return PageStream(self._counted(news, visitor), media_type="text/event-stream")

    def _knocking(self) -> Sequence[dict[str, str]]:
        known = self._keys.knocks()
        return [{"id": one.id, "about": one.about, "address": one.address, "code": one.code} for one in known]

    async def _counted(self, news: "_News", visitor: Visitor) -> AsyncIterator[bytes]:
        self._open[visitor.name] += 1
        event = asyncio.Event()
        try:
            with self._changed.notifying(event), self._keys.changed.notifying(event):
                async for piece in news.stream(event):
                    if self._ended:
                        return
                    yield piece
        finally:
            self._open[visitor.name] -= 1


class _News:
    """What one browser has not heard yet."""

    def __init__(
        self,
        book: SessionBook,
        session_id: str,
        cursor: str,
        who: Visitor,
        *,
        opened: bool,
        knocking: Callable[[], Sequence[dict[str, str]]],
    ) -> None:
        self._book = book
        self._knocking = knocking
        self._knocked: Sequence[dict[str, str]] = ()
        self._who = who
        self._session_id = session_id
        self._opened = opened
        run, _, version = cursor.partition(".")
        self._run = run
        known = whole_number(version)
        self._version = -1 if known is None else known
        self._asked: Any = None
        self._states: Any = None
        self._bar: Any = None
        self._status: Any = None
        self._listed = -1
        self._batches: Any = None
        self._foot: Any = None

    async def stream(self, event: asyncio.Event) -> AsyncIterator[bytes]:
        """Give what is new, each time that the event is set; nothing new is a piece, too."""
        with self._book.changed.notifying(event):
            page = self._book.find(self._session_id)
            if page is None:
                async for piece in self._listen(None, event):
                    yield piece
            else:
                with page.changed.notifying(event), page.looked_at():
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
                yield b"data: {}\n\n"

    def _news(self, page: PageSession | None) -> dict[str, Any]:
        news: dict[str, Any] = {}
        self._add_questions(news)
        if (knocked := list(self._knocking())) != list(self._knocked):
            self._knocked = news["knocks"] = knocked
        states = {id_: listed_state(one) for id_, one in self._book.opened.items()}
        if states != self._states:
            self._states = states
            news["states"] = states
        if self._book.listed != self._listed:
            self._listed = news["listed"] = self._book.listed
        if self._book.batches.ended != self._batches:
            self._batches = news["batches"] = dict(self._book.batches.ended)
        if (foot := {"reached": self._book.batches.reached, "today": self._book.today}) != self._foot:
            self._foot = foot
            news["foot"] = {name: said for name, said in foot.items() if said is not None}
        if not self._session_id:
            return news
        if self._book.find(self._session_id) is not page or (self._opened and page is None):
            return {"reload": True}  # it was opened or closed
        if page is not None:
            self._add_page(page, page.content, news)
            if page.agent and (bar := listed_state(page)) != self._bar:
                self._bar = news["bar"] = bar
        return news

    def _add_questions(self, news: dict[str, Any]) -> None:
        asked = {id_: [one.id for one in page.questions] for id_, page in self._book.opened.items() if page.questions}
        if asked == self._asked:
            return
        self._asked = asked
        news["asked"] = asked
        news["waiting"] = {id_: len(ids) for id_, ids in asked.items()}
        news["answered"] = {
            f"{id_}/{question}": said
            for id_, page in self._book.opened.items()
            for question, said in list(page.content.answered.items())[-_SAID_OF:]
        }

    def _add_page(self, page: PageSession, view: PageContent, news: dict[str, Any]) -> None:
        changed = missed(view, self._run, self._version)
        if changed is None:
            news["reload"] = True
            return
        if changed:
            news["items"] = [[entry.position, view.html(entry)] for entry in changed]
        self._version = view.version
        gate = self._book.gate
        status = page_status(page, self._who, 0 if gate is None else gate.place(page.session.id))
        if status != self._status:
            self._status = status
            news["status"] = status

    def _message(self, news: dict[str, Any]) -> bytes:
        number = f"id: {self._run}.{self._version}\n".encode() if self._version >= 0 else b""
        news["now"] = int(time.time() * 1000)
        return number + b"data: " + msgspec.json.encode(news) + b"\n\n"


def missed(view: PageContent, run: str, version: int) -> Sequence[Placed] | None:
    """Give what changed on a page since a browser saw it; None where it has to load the page anew."""
    if view.run != run or not 0 <= version <= view.version:
        return None
    changed = view.changed_after(version)
    return None if len(changed) > _MOST_ENTRIES else changed
