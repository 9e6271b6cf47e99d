"""What every request goes through: whose host, whose page and whose cookie it is, how big it is, and how many."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from ipaddress import ip_network
from urllib.parse import quote

from msgspec.structs import replace
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treadle.door.program import is_loopback, url_host
from treadle.web.page_files import how_long_kept
from treadle.web.page_keys import Keys, Visitor
from treadle.web.templating import PAGE_BASE, PAGE_VISITOR

MOST_BODY_BYTES = 16_000_000
"""Bytes of a prompt with its images."""

_MOST_USUAL_BYTES, _MOST_UNKNOWN_BYTES = 4_000_000, 4_000
"""Bytes of any other request, and of one of a browser that was not let in yet."""

OPEN_PATHS = frozenset({"/login", "/healthz"})
_STATIC = "/static/"
_METHODS = frozenset({"GET", "HEAD", "POST"})
_RATE, _BURST = 50.0, 200.0
"""Requests a second of one browser, or of one address that no browser was let in from, and how many at once."""

_MOST_BUCKETS = 1_000

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; trusted-types treadle; require-trusted-types-for 'script'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

ANSWER_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-dns-prefetch-control": "off",  # else the names in a model's links are looked up when they are shown
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""What every answer has."""


class PageGuard:
    """Lets requests through to the application. `hosts` are the names, with port, that the page is called by.

    On a `network` it may be called by the address, too, that a connection came to. Requests find who sends them in
    `scope["state"]["visitor"]`, None on the paths that need nobody. `empty` gives the page for whoever is
    not in, with what became of them where that is known.
    """

    def __init__(
        self,
        application: ASGIApp,
        keys: Keys,
        hosts: Collection[str],
        *,
        cookie: str,
        empty: Callable[[str], str],
        network: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.application = application
        self._keys = keys
        self._hosts = frozenset(hosts)
        self._cookie = cookie
        self._empty = empty
        self._network = network
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._serve(scope, receive, with_headers(scope, send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        inside = f"{scope['path']}/".startswith(f"{self._keys.base}/")
        visitor = self._visitor(headers, scope) if inside else None
        PAGE_BASE.set("" if visitor is None else self._keys.base)
        PAGE_VISITOR.set(visitor)
        scope.setdefault("state", {})["visitor"] = visitor
        if inside:
            raw = (scope.get("raw_path") or b"").removeprefix(self._keys.base.encode())
            scope = {**scope, "path": scope["path"].removeprefix(self._keys.base) or "/", "raw_path": raw or b"/"}
        most = _most_bytes(scope["path"], visitor)
        refusal = self._refusal(scope, headers, most, inside=inside)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.application(scope, bounded_receive(receive, most), send)

    def _refusal(self, scope: Scope, headers: Headers, most: int, *, inside: bool) -> Response | None:
        """Say no to what the page itself never sends, and to whoever was not let in."""
        visitor = scope["state"]["visitor"]
        host, method, path = headers.get("host", "").lower(), scope["method"], scope["path"]
        if len(headers.getlist("host")) != 1 or not self._is_own(host, scope):
            return PlainTextResponse("This address is not served here.\n", status_code=421)
        if scope["scheme"] != "https" and not is_near(scope):
            return _only_encrypted(method, host, path)
        if method not in _METHODS:
            return PlainTextResponse("Only GET and POST are served.\n", 405, {"allow": "GET, HEAD, POST"})
        if not from_own_page(headers, scope, host):
            return PlainTextResponse("Only the page itself may ask for this.\n", status_code=403)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < 20 and int(length) <= most):
            return PlainTextResponse(f"A request has at most {most:,} bytes.\n", status_code=413)
        if visitor is None and path not in OPEN_PATHS and not path.startswith(_STATIC):
            return self._unknown(path, headers, inside=inside)
        if method == "POST" and visitor is not None and path != "/login" and not self._acts(visitor, headers):
            lost = {"what": "This browser has lost its key.", "fix": "Open a link of Treadle again."}
            return JSONResponse(lost, status_code=403)
        # Whoever has the token or a link gets in, however many there are who have not; a page has a dozen fixed files.
        unbounded = path == "/login" or (visitor is not None and path.startswith(_STATIC))
        if not unbounded and not self._has_room(visitor.name if visitor else network_of(scope)):
            return PlainTextResponse("Too many requests. Wait a moment.\n", 429, {"retry-after": "2"})
        return None

    def _is_own(self, host: str, scope: Scope) -> bool:
        """Whether the page is called by a name of its own: a name of somebody else may lead to this address, too."""
        if host in self._hosts:
            return True
        address, port = scope.get("server") or ("", None)
        return self._network and bool(address) and host in _as_hosts(address, port)

    def _visitor(self, headers: Headers, scope: Scope) -> Visitor | None:
        found = (self._keys.visitor(value) for value in cookie_values(headers, self._cookie))
        visitor = next((visitor for visitor in found if visitor is not None), None)
        return None if visitor is None else replace(visitor, here=is_near(scope) and not visitor.paired)

    def _acts(self, visitor: Visitor, headers: Headers) -> bool:
        return self._keys.acts(visitor, headers.get("x-treadle-key", ""))

    def _unknown(self, path: str, headers: Headers, *, inside: bool) -> Response:
        """Answer who has no cookie: the page that asks for the token, or that one is needed."""
        if path == "/" or "text/html" in headers.get("accept", ""):
            # Outside of its own path the page knows nobody: a browser that was let in goes on from there by itself.
            became = _what_became(path, inside=inside and not self._of_another_run(headers))
            return HTMLResponse(self._empty(became), 401 if inside and path != "/" else 200)
        what = {"what": "This browser is not signed in.", "fix": "Open the link that Treadle printed."}
        return JSONResponse(what, status_code=401)

    def _of_another_run(self, headers: Headers) -> bool:
        """Whether a browser was let in before Treadle was started again."""
        cookies = list(cookie_values(headers, self._cookie))
        return bool(cookies) and not any(one.startswith(f"{self._keys.run}.") for one in cookies)

    def _has_room(self, who: str) -> bool:
        now = self._clock()
        left, at = self._buckets.pop(who, (_BURST, now))
        left = min(_BURST, left + (now - at) * _RATE) - 1
        self._buckets[who] = (max(left, 0.0), now)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return left >= 0


def _what_became(path: str, *, inside: bool) -> str:
    """Say why a browser is not in that was: the path of the page is another one each time that Treadle starts."""
    if inside:
        return "This device was signed out"
    return "Treadle was started again" if path.startswith("/~") else ""


def _only_encrypted(method: str, host: str, path: str) -> Response:
    """Lead who came over the network without TLS to where the page is; nothing else is said or done for them."""
    if method in ("GET", "HEAD"):
        return RedirectResponse(f"https://{host}{quote(path)}", status_code=308)
    return PlainTextResponse(f"Over the network the page is served with TLS alone: https://{host}/\n", 403)


def is_near(scope: Scope) -> bool:
    """Whether a request comes from this computer itself."""
    return is_loopback((scope.get("client") or ("",))[0])


def network_of(scope: Scope) -> str:
    """Give the address that a request comes from; of IPv6 the half that all addresses of one computer share."""
    address = (scope.get("client") or ("",))[0]
    return str(ip_network(f"{address.partition('%')[0]}/64", strict=False)) if ":" in address else address


def from_own_page(headers: Headers, scope: Scope, host: str) -> bool:
    """Whether a request may come from where it says it comes: no other site's page can make it so."""
    method, scheme = scope["method"], scope["scheme"]
    site = headers.get("sec-fetch-site", "same-origin")
    if method == "POST":
        own = f"{scheme}://{host}"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return headers.get("origin", "").lower() == own and site == "same-origin" and kind == "application/json"
    # A link on another site may lead here: without the cookie, which is only sent along on the page's own links.
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
    return site in ("same-origin", "none") or opened


def cookie_values(headers: Headers, name: str) -> Iterator[str]:
    """Give the values of a cookie. Other servers on this computer have cookies in the header, too, of whatever form."""
    for line in headers.getlist("cookie"):
        for piece in line.split(";"):
            key, _, value = piece.partition("=")
            if key.strip() == name:
                yield value.strip().strip('"')


def _as_hosts(address: str, port: int | None) -> tuple[str, ...]:
    shown = url_host(address)
    return (f"{shown}:{port}", shown) if port == 80 else (f"{shown}:{port}",)


def _most_bytes(path: str, visitor: Visitor | None) -> int:
    if visitor is None or path == "/login":
        return _MOST_UNKNOWN_BYTES
    return MOST_BODY_BYTES if path.endswith(("/say", "/sessions", "/attached")) else _MOST_USUAL_BYTES


def bounded_receive(receive: Receive, most: int) -> Receive:
    """Give no more of a body than is allowed, whatever length it said it has."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise HTTPException(413, f"A request has at most {most:,} bytes.")
        return message

    return counted


def with_headers(scope: Scope, send: Send) -> Send:
    """Give every answer the headers of `ANSWER_HEADERS`, and say how long it may be kept."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in ANSWER_HEADERS.items():
                headers[name] = value
            kept = how_long_kept(scope["path"]) if message["status"] in (200, 206, 304) else "no-store"
            headers.setdefault("cache-control", kept)
        await send(message)

    return sending
