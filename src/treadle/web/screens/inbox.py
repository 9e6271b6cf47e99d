"""The screen of everything that waits for a person, over all sessions."""

import asyncio

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.web.book import SessionBook
from treadle.web.page_keys import Visitor
from treadle.web.page_requests import book_of, visitor_of
from treadle.web.rights import PageRoute
from treadle.web.templating import page, render


async def _show(request: Request) -> Response:
    return page(request, "inbox.html", cards=await _cards(book_of(request), visitor_of(request)))


async def _list(request: Request) -> Response:
    """Give the cards alone, for a page that is open already."""
    return HTMLResponse(render("cards.html", cards=await _cards(book_of(request), visitor_of(request))))


def _titles(book: SessionBook) -> dict[str, str]:
    return {id_: one.session.title or id_ for id_, one in tuple(book.opened.items())}


async def _cards(book: SessionBook, who: Visitor) -> list[dict[str, str]]:
    titles = await asyncio.to_thread(_titles, book)
    return [
        {"session": id_, "title": titles.get(id_, id_), "workspace": str(one.session.workspace), "html": html}
        for id_, one in book.opened.items()
        for _, html in one.cards(who)
    ]


ROUTES = (
    PageRoute("/inbox", _show, Reach.SEE),
    PageRoute("/inbox/cards", _list, Reach.SEE),
)
