"""What every request goes through: whose host, whose page and whose cookie it is, how big it is, and how many."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.web.keys import Keys, Visitor

MOST_BODY_BYTES = 16_000_000
"""Bytes of one request: a prompt with its images."""

_OPEN_PATHS = frozenset({"/login", "/healthz"})
_STATIC = "/static/"
_METHODS = frozenset({"GET", "HEAD", "POST"})
_RATE, _BURST = 50.0, 200.0
"""Requests a second of one address, and how many at once."""

_MOST_ADDRESSES = 1_000

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Lets requests through to the application. `hosts` are the names, with port, that the page is called by.

    Requests find who sends them in `scope["state"]["visitor"]`. `empty` is the page for whoever has no cookie yet.
    """

    def __init__(
        self,
        application: ASGIApp,
        keys: Keys,
        hosts: Collection[str],
        *,
        cookie: str,
        empty: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        self._keys = keys
        self._hosts = frozenset(hosts)
        self._cookie = cookie
        self._empty = empty
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._serve(scope, receive, _with_headers(scope, send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        path = scope["path"]
        visitor = self._visitor(headers)
        if visitor is None and path not in _OPEN_PATHS and not path.startswith(_STATIC):
            await self._unknown(path, headers)(scope, receive, send)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        await self._application(scope, _bounded(receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Say no to what the page itself never sends."""
        host = headers.get("host", "").lower()
        if host not in self._hosts or len(headers.getlist("host")) != 1:
            return PlainTextResponse("This address is not served here.\n", status_code=421)
        if not self._has_room(scope):
            return PlainTextResponse("Too many requests. Wait a moment.\n", 429, {"retry-after": "2"})
        method = scope["method"]
        if method not in _METHODS:
            return PlainTextResponse("Only GET and POST are served.\n", 405, {"allow": "GET, HEAD, POST"})
        if not _from_own_page(headers, method, host):
            return PlainTextResponse("Only the page itself may ask for this.\n", status_code=403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            return PlainTextResponse(f"A request has at most {MOST_BODY_BYTES:,} bytes.\n", status_code=413)
        return None

    def _visitor(self, headers: Headers) -> Visitor | None:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return None
        return None if found is None else self._keys.visitor(found.value)

    def _unknown(self, path: str, headers: Headers) -> Response:
        """Answer who has no cookie: the page that asks for the token, or that one is needed."""
        if path == "/" or "text/html" in headers.get("accept", ""):
            return HTMLResponse(self._empty(), status_code=200 if path == "/" else 401)
        what = {"what": "This browser is not signed in.", "fix": "Open the link that `treadle web` printed."}
        return JSONResponse(what, status_code=401)

    def _has_room(self, scope: Scope) -> bool:
        address = (scope.get("client") or ("", 0))[0]
        now = self._clock()
        left, at = self._buckets.pop(address, (_BURST, now))
        left = min(_BURST, left + (now - at) * _RATE) - 1
        self._buckets[address] = (max(left, 0.0), now)
        while len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return left >= 0


def _from_own_page(headers: Headers, method: str, host: str) -> bool:
    """Whether a request may come from where it says it comes: no other site's page can make it so."""
    site = headers.get("sec-fetch-site", "same-origin")
    if method == "POST":
        own = f"http://{host}"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return headers.get("origin", "").lower() == own and site == "same-origin" and kind == "application/json"
    # A link on another site may lead here: without the cookie, which is only sent along on the page's own links.
    return site in ("same-origin", "none") or headers.get("sec-fetch-mode") == "navigate"


def _bounded(receive: Receive) -> Receive:
    """Give no more of a body than is allowed, whatever length it said it has."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > MOST_BODY_BYTES else message

    return bounded


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-cache" if scope["path"].startswith(_STATIC) else "no-store")
        await send(message)

    return sending
