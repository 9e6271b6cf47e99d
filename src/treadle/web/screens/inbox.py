"""The screen of everything that waits for a person, over all sessions."""

import asyncio

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from treadle.web.book import SessionBook
from treadle.web.item_html import question_html
from treadle.web.requests import book_of
from treadle.web.templating import page, render


async def _show(request: Request) -> Response:
    return page(request, "inbox.html", cards=await asyncio.to_thread(_cards, book_of(request)))


async def _list(request: Request) -> Response:
    """Give the cards alone, for a page that is open already."""
    return HTMLResponse(render("cards.html", cards=await asyncio.to_thread(_cards, book_of(request))))


def _cards(book: SessionBook) -> list[dict[str, str]]:
    return [
        {
            "session": id_,
            "title": one.session.title or id_,
            "workspace": str(one.session.workspace),
            "html": question_html(id_, question, (str(one.session.workspace), *one.session.roots)),
        }
        for id_, one in tuple(book.opened.items())
        for question in one.questions
    ]


ROUTES = (
    Route("/inbox", _show),
    Route("/inbox/cards", _list),
)
