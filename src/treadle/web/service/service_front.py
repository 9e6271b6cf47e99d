"""What all requests of a service go through: it knows who sends them, and hands them to the process of that user alone.

Whose process a request goes to is decided by who signed in, never by its path: the page of somebody else cannot be
named at all.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any

import httpx2
import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from treadle.protocol.errors import TreadleError
from treadle.web.page_files import PageFiles
from treadle.web.page_frame import LOOK_COOKIE
from treadle.web.page_keys import Visitor
from treadle.web.request_guard import (
    MOST_BODY_BYTES,
    bounded_receive,
    cookie_values,
    from_own_page,
    network_of,
    with_headers,
)
from treadle.web.service.front_sessions import FrontSession, FrontSessions
from treadle.web.service.service_metrics import ServiceMetrics
from treadle.web.service.service_users import ServiceUser, UserBook
from treadle.web.service.user_pages import UserPages
from treadle.web.service.user_process import UserProcess
from treadle.web.templating import render

USER_REQUESTS = 60
"""Requests of one user at the same time, those of pages that listen among them."""

_RATE, _BURST = 100.0, 400.0
"""Requests a second of one user, or of one address that nobody was let in from, and how many at once."""

_LOOK = 1.0
"""Seconds between two looks whether a browser that listens is let in still."""

_MOST_BUCKETS = 10_000
_MOST_UNKNOWN_BYTES = 4_000
_METHODS = frozenset({"GET", "HEAD", "POST"})
_STATIC = "/static"
_WEEK = 7 * 24 * 3600

_NOT_FORWARDED = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "cookie", "authorization"}
    | {"proxy-authorization", "proxy-connection", "forwarded", "x-forwarded-for", "x-forwarded-host"}
    | {"x-forwarded-proto", "x-real-ip", "expect"}
)
_NOT_RETURNED = frozenset({"connection", "keep-alive", "transfer-encoding", "set-cookie", "date", "server"})
_STARTS_WORK = ("/sessions", "/say", "/open", "/fork", "/message")
"""How paths end that begin work, which takes space on the disk."""

PROXY_HEADER = "x-treadle-proxy"
"""The header with which a proxy that names users shows that it is the one."""


class FrontAddress(Struct, frozen=True, kw_only=True):
    """How browsers reach the service: `scheme` and `host` (with its port), and the other names that are its own.

    `user_header` is the header in which a proxy names the user; empty where people sign in with tokens.
    """

    scheme: str
    host: str
    names: tuple[str, ...]
    user_header: str = ""

    @property
    def cookie(self) -> str:
        """The name of the cookie: with `__Host-` no other name of the domain can set one."""
        return "__Host-treadle" if self.scheme == "https" else f"treadle-serve-{self.host.rpartition(':')[2]}"


class ServiceFront:
    """The application. `draining` lets nobody in any more."""

    def __init__(self, users: UserBook, pages: UserPages, address: FrontAddress, metrics: ServiceMetrics) -> None:
        self.draining = False
        self._users = users
        self._pages = pages
        self._address = address
        self._metrics = metrics
        self._sessions = FrontSessions()
        self._static: ASGIApp = PageFiles()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        scope["scheme"] = self._address.scheme
        headers = Headers(scope=scope)
        scope.setdefault("state", {})["visitor"] = None
        counted = self._metrics.counting(send)
        try:
            await self._serve(scope, headers, receive, with_headers(scope, counted))
        except HTTPException as error:
            await JSONResponse(_said(error.detail), error.status_code)(scope, receive, with_headers(scope, counted))
        except TreadleError as error:
            said = {"code": error.code, "what": error.what, "why": error.why, "fix": error.fix}
            await JSONResponse(said, 503)(scope, receive, with_headers(scope, counted))

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        user, session = self._who(headers)
        if user is not None:
            scope["state"]["visitor"] = Visitor(name=user.name)
        path = scope["path"]
        if not self._has_room(f"user {user.name}" if user else network_of(scope)):
            refusal = PlainTextResponse("Too many requests. Wait a moment.\n", 429, {"retry-after": "2"})
        elif path == "/healthz":
            words, status = ("draining\n", 503) if self.draining else ("ok\n", 200)
            refusal = PlainTextResponse(words, status)
        elif path == "/metrics":
            refusal = self._measured(headers)
        elif path == "/login":
            refusal = await self._login(scope, headers, receive, user)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif path.startswith(f"{_STATIC}/"):
            inner = {**scope, "root_path": _STATIC}
            await self._static(inner, receive, send)
        elif user is None or session is None:
            await self._entrance(scope, headers, known=user is not None)(scope, receive, send)
        else:
            await self._to_page(scope, receive, send, session=session, user=user)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Say no to what is meant for another host, what another site sends, and what is too large."""
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) != 1 or host not in self._address.names:
            return PlainTextResponse("This address is not served here.\n", status_code=421)
        if scope["method"] not in _METHODS:
            return PlainTextResponse("Only GET and POST are served.\n", 405, {"allow": "GET, HEAD, POST"})
        if scope["path"] not in ("/metrics", "/healthz") and not from_own_page(headers, scope, host):
            return PlainTextResponse("Only the page itself may ask for this.\n", status_code=403)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < 20 and int(length) <= MOST_BODY_BYTES):
            return PlainTextResponse(f"A request has at most {MOST_BODY_BYTES:,} bytes.\n", status_code=413)
        return None

    def _who(self, headers: Headers) -> tuple[ServiceUser | None, FrontSession | None]:
        """Say who sends a request, and in which browser they signed in; with a proxy both have to agree."""
        users = self._users.all()
        found = (self._sessions.find(value) for value in cookie_values(headers, self._address.cookie))
        session = next((one for one in found if one is not None), None)
        if session is not None and not self._is_users(session, users):
            self._sessions.forget(session)
            session = None
        known = users.get(session.user) if session is not None else None
        if not self._address.user_header:
            return known, session
        named, secret = headers.getlist(self._address.user_header), headers.getlist(PROXY_HEADER)
        if len(named) != 1 or len(secret) != 1 or not self._users.is_proxy(secret[0]):
            return None, None
        user = users.get(named[0])
        return user, session if user is not None and session is not None and session.user == user.name else None

    def _measured(self, headers: Headers) -> Response:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self._users.is_metrics(token):
            return PlainTextResponse("This needs the token of `treadle serve metrics`.\n", 401)
        self._pages.measure(self._metrics)
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def _login(self, scope: Scope, headers: Headers, receive: Receive, user: ServiceUser | None) -> Response:
        """Let a browser in: by a token, or anew where it is known who it is."""
        if scope["method"] != "POST":
            return JSONResponse(_said("Browsers sign in with POST."), 405)
        if self.draining:
            return JSONResponse(_said("This service ends. Try again in a minute."), 503, {"retry-after": "60"})
        given = await _token_in(bounded_receive(receive, _MOST_UNKNOWN_BYTES))
        if given and not self._address.user_header:
            user = await asyncio.to_thread(self._users.by_token, given)
        if user is None:
            self._metrics.add("treadle_sign_ins_refused_total")
            return JSONResponse(_said("This token is not valid. Ask whoever runs this service for another one."), 403)
        page = await self._pages.page_of(user)
        async with page.used():
            came = await page.client.post(
                "/login",
                json={"token": page.page.token},
                headers={
                    "host": self._address.host,
                    "origin": f"{self._address.scheme}://{self._address.host}",
                    "user-agent": headers.get("user-agent", "")[:400],
                },
            )
        if came.status_code != 200:
            return JSONResponse(_said("Your page lets nobody in at the moment. Try again."), 503)
        (name, value), *_ = came.cookies.items()
        cookie, session = self._sessions.begin(user, page.page.base, f"{name}={value}")
        self._metrics.add("treadle_sign_ins_total")
        scope["state"]["visitor"] = Visitor(name=session.user)
        response = JSONResponse(came.json())
        response.set_cookie(
            self._address.cookie,
            cookie,
            max_age=_WEEK,
            httponly=True,
            samesite="strict",
            path="/",
            secure=self._address.scheme == "https",
        )
        return response

    def _entrance(self, scope: Scope, headers: Headers, *, known: bool) -> Response:
        """Answer who has to sign in: with the page that does it, or in a word."""
        if scope["method"] == "GET" and (scope["path"] == "/" or "text/html" in headers.get("accept", "")):
            by_proxy = bool(self._address.user_header)
            return HTMLResponse(render("serve.html", known=known, by_proxy=by_proxy), 200 if known else 401)
        return JSONResponse(_said("This browser is not signed in."), 401)

    async def _to_page(
        self, scope: Scope, receive: Receive, send: Send, *, session: FrontSession, user: ServiceUser
    ) -> None:
        page = await self._pages.page_of(user)
        headers = Headers(scope=scope)
        if scope["path"] == "/":
            await RedirectResponse(f"{page.page.base}/", 303)(scope, receive, send)
            return
        if session.base != page.page.base or not f"{scope['path']}/".startswith(f"{page.page.base}/"):
            # Its process was started again, or the address is not one of this page.
            await self._entrance(scope, headers, known=True)(scope, receive, send)
            return
        if scope["method"] == "POST" and scope["path"].endswith(_STARTS_WORK):
            await self._pages.require_space(user, page)
        if self._open[user.name] >= USER_REQUESTS:
            raise HTTPException(429, "Too many requests of yours are on their way. Close some pages.")
        self._open[user.name] += 1
        try:
            async with page.used():
                await self._forward(scope, receive, send, page=page, session=session)
        finally:
            self._open[user.name] -= 1

    async def _forward(
        self, scope: Scope, receive: Receive, send: Send, *, page: UserProcess, session: FrontSession
    ) -> None:
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        query = scope.get("query_string", b"").decode("latin-1")
        request = page.client.build_request(
            scope["method"],
            httpx2.URL("http://page").copy_with(raw_path=(f"{path}?{query}" if query else path).encode("latin-1")),
            headers=self._forwarded(Headers(scope=scope), session),
            content=_body(bounded_receive(receive, MOST_BODY_BYTES)) if scope["method"] == "POST" else None,
        )
        try:
            answer = await page.client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise HTTPException(503, "Your page does not answer. Load it again.") from error
        if answer.status_code == 401:
            await answer.aclose()
            self._sessions.forget(session)  # it was signed out
            await self._entrance(scope, Headers(scope=scope), known=False)(scope, receive, send)
            return
        ends = [_gone(receive), *([] if "content-length" in answer.headers else [self._shut_out(session)])]
        await _returned(answer, send, ends)

    async def _shut_out(self, session: FrontSession) -> None:
        """Wait until a browser is not let in any more: what it listens to ends with that."""
        with suppress(TreadleError):  # nobody can say who is
            while True:
                await asyncio.sleep(_LOOK)
                if not (self._sessions.has(session) and self._is_users(session, self._users.all())):
                    return

    @staticmethod
    def _is_users(session: FrontSession, users: Mapping[str, ServiceUser]) -> bool:
        """Whether a browser signed in with the token that its user has now."""
        known = users.get(session.user)
        return known is not None and known.token == session.token

    def _forwarded(self, headers: Headers, session: FrontSession) -> list[tuple[str, str]]:
        """Give the headers for the page: its own cookie, and nothing with which anybody was let in here."""
        without = _NOT_FORWARDED | {PROXY_HEADER, self._address.user_header.lower()}
        given = [(name, value) for name, value in headers.items() if name not in without]
        look = next(cookie_values(headers, LOOK_COOKIE), "")
        cookie = f"{session.cookie}; {LOOK_COOKIE}={look}" if look.replace(".", "").isalnum() else session.cookie
        return [*given, ("cookie", cookie)]

    def _has_room(self, who: str) -> bool:
        now = time.monotonic()
        left, at = self._buckets.pop(who, (_BURST, now))
        left = min(_BURST, left + (now - at) * _RATE) - 1
        self._buckets[who] = (max(left, 0.0), now)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return left >= 0


class _Given(Struct):
    token: str = ""


def _said(what: str) -> Mapping[str, str]:
    return {"code": "http", "what": what, "why": "", "fix": ""}


async def _token_in(receive: Receive) -> str:
    body = b"".join([piece async for piece in _body(receive)])
    try:
        return msgspec.json.decode(body, type=_Given).token
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HTTPException(400, "The request cannot be read.") from error


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "The request ended in its middle.")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _returned(answer: httpx2.Response, send: Send, ends: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Give an answer on as it comes, until its end or the first of the other `ends`."""
    tasks = [asyncio.ensure_future(one) for one in (_sent(answer, send), *ends)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await answer.aclose()
    for task in done:
        task.result()


async def _sent(answer: httpx2.Response, send: Send) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.multi_items()
        if name not in _NOT_RETURNED
    ]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    try:
        async for piece in answer.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except httpx2.HTTPError:
        return  # the page ended in the middle: so does this answer
    await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
