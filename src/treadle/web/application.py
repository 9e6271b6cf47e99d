"""The web application: its routes, and what stands before them."""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from treadle.protocol.errors import TreadleError
from treadle.web.book import SessionBook
from treadle.web.guard import Guard
from treadle.web.keys import Keys
from treadle.web.requests import body_of, done, not_served, refused
from treadle.web.screens import beside, inbox, live, saying, session_keeping, session_list
from treadle.web.stream import Streams
from treadle.web.templating import render

_STATIC = Path(__file__).parent / "static"
_YEAR = 365 * 24 * 3600


class _Entering(Struct):
    token: str


def web_application(book: SessionBook, keys: Keys, hosts: Collection[str], *, cookie: str) -> Guard:
    """Put the application together, with the guard before it."""

    async def login(request: Request) -> Response:
        """Let a browser in that has the token, or a pairing link."""
        given = keys.let_in((await body_of(request, _Entering)).token)
        if given is None:
            raise HTTPException(403, "The link is not valid any more. Open the one that `treadle web` printed.")
        response = done()
        response.set_cookie(cookie, given, max_age=_YEAR, httponly=True, samesite="strict", path="/")
        return response

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    application = Starlette(
        routes=[
            Route("/healthz", health),
            Route("/login", login, methods=["POST"]),
            Route("/events", Streams().events),
            *session_list.ROUTES,
            *inbox.ROUTES,
            *session_keeping.ROUTES,
            *live.ROUTES,
            *saying.ROUTES,
            *beside.ROUTES,
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        exception_handlers={TreadleError: refused, HTTPException: not_served},
    )
    application.state.book, application.state.keys = book, keys
    return Guard(application, keys, hosts, cookie=cookie, empty=lambda: render("empty.html"))
