"""The web application: its routes, and what stands before them."""

import time
from collections.abc import Awaitable, Callable, Collection

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount

from treadle.door.open_session import Reach
from treadle.protocol.errors import TreadleError
from treadle.web.book import SessionBook
from treadle.web.event_stream_out import EventStreams
from treadle.web.page_files import PageFiles
from treadle.web.page_keys import DEVICE_SECONDS, Keys
from treadle.web.page_requests import answer, body_of, file_error_answer, not_served, refusal_answer
from treadle.web.request_guard import PageGuard, is_near
from treadle.web.rights import PageRoute
from treadle.web.screens import (
    beside,
    commit_screen,
    context_screen,
    copy_screen,
    devices,
    files_screen,
    fleet_screen,
    health_screen,
    inbox,
    keeping_screen,
    lanes_screen,
    live_screen,
    palette_screen,
    policy_screen,
    replay_screen,
    review_screen,
    saying,
    session_list_screen,
    settings_folder,
    settings_rows,
    settings_screen,
    share,
    shell_screen,
    timeline_screen,
    usage_screen,
)
from treadle.web.screens.devices import browser_in_words
from treadle.web.templating import render

_USED_UP = "The link is not valid any more. Open a new one."


class _Entering(Struct):
    token: str = ""
    knock: str = ""


_ROUTES = (
    *session_list_screen.ROUTES,
    *inbox.ROUTES,
    *keeping_screen.ROUTES,
    *live_screen.ROUTES,
    *review_screen.ROUTES,
    *commit_screen.ROUTES,
    *files_screen.ROUTES,
    *lanes_screen.ROUTES,
    *timeline_screen.ROUTES,
    *replay_screen.ROUTES,
    *copy_screen.ROUTES,
    *devices.ROUTES,
    *context_screen.ROUTES,
    *share.ROUTES,
    *usage_screen.ROUTES,
    *palette_screen.ROUTES,
    *fleet_screen.ROUTES,
    *policy_screen.ROUTES,
    *settings_rows.ROUTES,
    *settings_screen.ROUTES,
    *settings_folder.ROUTES,
    *health_screen.ROUTES,
    *saying.ROUTES,
    *beside.ROUTES,
    *shell_screen.ROUTES,
)


def web_application(
    book: SessionBook,
    keys: Keys,
    hosts: Collection[str],
    *,
    cookie: str,
    network: str = "",
    fingerprint: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> tuple[PageGuard, EventStreams]:
    """Put the application together, with the guard before it; the streams are to be ended with the server.

    `network` is the address that other devices of the network reach it by, `fingerprint` the one of its certificate;
    both are empty where it serves this computer alone.
    """
    streams = EventStreams(keys)
    application = Starlette(
        routes=[
            PageRoute("/healthz", _alive, Reach.ENTER),
            PageRoute("/login", _login(keys, cookie), Reach.ENTER, methods=["POST"]),
            PageRoute("/events", streams.events, Reach.SEE),
            *_ROUTES,
            Mount("/static", GZipMiddleware(PageFiles(), compresslevel=1)),
        ],
        exception_handlers={
            TreadleError: refusal_answer,
            HTTPException: not_served,
            OSError: file_error_answer,
        },
    )
    application.state.book, application.state.keys = book, keys
    application.state.network, application.state.fingerprint = network, fingerprint

    def empty(became: str) -> str:
        return render("empty.html", became=became)

    return PageGuard(application, keys, hosts, cookie=cookie, empty=empty, network=bool(network), clock=clock), streams


def _login(keys: Keys, cookie: str) -> Callable[[Request], Awaitable[Response]]:
    async def login(request: Request) -> Response:
        """Let a browser in that has the token, or a link; what it gets is a cookie, and a key for what it does.

        A device on the network waits until somebody at this computer has said yes.
        """
        said = await body_of(request, _Entering)
        about = browser_in_words(request.headers.get("user-agent", ""))
        if said.knock:
            if any(one.id == said.knock for one in keys.knocks()):
                return answer({}, status=202)
            given = keys.enter(said.knock)
            refused = "The computer did not let this device in. Ask there for another link."
        elif is_near(request.scope):
            given = keys.let_in(said.token, about=about)
            refused = _USED_UP
        else:
            knock = keys.knock(said.token, about=about or "A browser", address=(request.client or ("",))[0])
            if knock is not None:
                return answer({"knock": knock.id, "code": knock.code}, status=202)
            given, refused = None, _USED_UP
        if given is None:
            raise HTTPException(403, refused)
        response = answer({"key": given.key, "base": keys.base})
        response.set_cookie(
            cookie,
            given.cookie,
            max_age=int(DEVICE_SECONDS),
            httponly=True,
            samesite="strict",
            path=keys.base,
            secure=request.url.scheme == "https",
        )
        return response

    return login


async def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")
