"""HTTP/1.1 straight to a server, and no more of it than a model call needs (docs/decisions/0042)."""

import asyncio
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit

import h11
from msgspec import Struct

from treadle.providers.http_client import (
    AddressError,
    ConnectTimeoutError,
    HeaderError,
    HttpError,
    IdleTimeoutError,
)
from treadle.providers.unpacking import Unpacking

KEPT_SECONDS = 60.0
"""How long a connection that nobody uses is worth keeping."""
_HAPPY_EYEBALLS_SECONDS = 0.25
_MOST_UNREAD = 256 * 1024
_LARGEST_HEAD = 128 * 1024
_PORTS = {"http": 80, "https": 443}
_PATH = "/%:@!$&'()*+,;=~"
_QUERY = _PATH + "?"

_Event: TypeAlias = (
    h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage | h11.ConnectionClosed | type[h11.PAUSED]
)


class Target(Struct, frozen=True):
    """Where a URL leads. `host` is as the resolver takes it, `name` what the Host header says."""

    scheme: str
    host: str
    port: int
    name: str
    path: str
    authorization: str = ""


def target_of(url: str) -> Target:
    """Take a URL apart; raises `AddressError`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError as error:
        raise AddressError(str(error)) from error
    if parts.scheme not in _PORTS or not host or " " in host:
        raise AddressError("it is no http or https URL with a host")
    shown = f"[{host}]" if ":" in host else host
    usual = _PORTS[parts.scheme]
    query = f"?{quote(parts.query, _QUERY)}" if parts.query else ""
    user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    return Target(
        scheme=parts.scheme,
        host=host,
        port=port or usual,
        name=shown if port in (None, usual) else f"{shown}:{port}",
        path=(quote(parts.path, _PATH) or "/") + query,
        authorization=f"Basic {b64encode(user).decode()}" if user != b":" else "",
    )


class DirectClient:
    """The `HttpClient` without anything between here and the server; `tls` is for https, None where that is not used.

    `connect` and `idle` are seconds.
    """

    def __init__(self, tls: ssl.SSLContext | None, *, connect: float, idle: float) -> None:
        self._tls = tls
        self._connect_seconds = connect
        self._idle_seconds = idle
        self._kept: list[_Connection] = []
        self._closed = False

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "DirectResponse":
        """Send a POST; see the port."""
        target = target_of(url)
        request = _request(target, headers, len(body))
        connection = self._take(target) or await self._open(target)
        try:
            head = await connection.exchange(request, body)
        except BaseException:
            await connection.aclose()
            raise
        return DirectResponse(head, connection, self._give_back)

    async def aclose(self) -> None:
        """Give back connections."""
        self._closed = True
        while self._kept:
            await self._kept.pop().aclose()

    def _take(self, target: Target) -> "_Connection | None":
        """Take a connection that is kept for the same place, and drop those that are of no use any more."""
        place = (target.scheme, target.host, target.port)
        for connection in [one for one in self._kept if not one.usable]:
            self._kept.remove(connection)
            connection.abort()
        found = next((one for one in self._kept if one.place == place), None)
        if found is not None:
            self._kept.remove(found)
        return found

    async def _give_back(self, connection: "_Connection") -> None:
        if connection.reset() and not self._closed:
            self._kept.append(connection)
        else:
            await connection.aclose()

    async def _open(self, target: Target) -> "_Connection":
        secure = target.scheme == "https"
        if secure and self._tls is None:
            raise AddressError("https was not expected here")
        limit = asyncio.timeout(self._connect_seconds)
        try:
            async with limit:
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(target, self._idle_seconds),
                    target.host,
                    target.port,
                    ssl=self._tls if secure else None,
                    happy_eyeballs_delay=_HAPPY_EYEBALLS_SECONDS,
                )
        except TimeoutError as error:
            if limit.expired():
                raise ConnectTimeoutError from error
            raise HttpError(str(error) or "the connection timed out") from error
        return connection


class DirectResponse:
    """The `HttpResponse` of a `DirectClient`."""

    def __init__(
        self, head: h11.Response, connection: "_Connection", give_back: "Callable[[_Connection], Awaitable[None]]"
    ) -> None:
        self.status_code = head.status_code
        self.headers = _joined(head)
        self._connection: _Connection | None = connection
        self._give_back = give_back

    async def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives; see the port."""
        if self._connection is None:
            return
        unpacking = Unpacking(self.headers.get("content-encoding", ""))
        while (piece := await self._connection.body()) is not None:
            for part in unpacking.feed(piece):
                yield part

    async def aclose(self) -> None:
        """Leave the rest unread."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._give_back(connection)


class _Connection(asyncio.Protocol):
    """One connection, for one exchange after the other. What arrives between two of them makes it unusable."""

    def __init__(self, target: Target, idle: float) -> None:
        loop = asyncio.get_running_loop()
        self.place = (target.scheme, target.host, target.port)
        self._idle_seconds = idle
        self._clock = loop.time
        self._kept_since = 0.0
        self._closed: asyncio.Future[None] = loop.create_future()
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        self._unread: deque[bytes] = deque()
        self._unread_size = 0
        self._ended = False
        self._error: Exception | None = None
        self._arrived = asyncio.Event()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; called by the loop, as the next three are."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep what arrived, and let no more come than somebody reads."""
        self._unread.append(data)
        self._unread_size += len(data)
        if self._unread_size > _MOST_UNREAD:
            self._transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> None:
        """Note the end."""
        self._ended = True
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, and what was wrong."""
        self._ended = True
        self._error = exc
        self._arrived.set()
        if not self._closed.done():
            self._closed.set_result(None)

    @property
    def usable(self) -> bool:
        """Whether another exchange can begin."""
        return not (self._ended or self._unread or self._clock() - self._kept_since > KEPT_SECONDS)

    async def exchange(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send a request and wait for the head of the answer; what cannot be sent may have been answered all the same.

        Raises `HttpError` or `OSError`.
        """
        pieces = [self._http.send(one) for one in (request, h11.Data(data=body), h11.EndOfMessage())]
        self._transport.write(b"".join(filter(None, pieces)))
        while True:
            match await self._next():
                case h11.Response() as head:
                    return head
                case h11.InformationalResponse(status_code=status) if status != 101:
                    continue
                case _:
                    raise HttpError("the server answered something else than HTTP")

    async def body(self) -> bytes | None:
        """Give the next bytes of the body; None at its end. Raises `HttpError` or `OSError`."""
        if self._http.their_state is h11.DONE:
            return None
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    def reset(self) -> bool:
        """Make ready for another exchange; says whether there can be one."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        if self._ended or self._unread or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        self._kept_since = self._clock()
        return True

    def abort(self) -> None:
        """Close without waiting for anything."""
        self._transport.abort()

    async def aclose(self) -> None:
        """Close; what was not sent or read is gone."""
        self._transport.abort()
        await self._closed

    async def _next(self) -> _Event:
        while True:
            try:
                event = self._http.next_event()
                if event is not h11.NEED_DATA:
                    return cast("_Event", event)
                data = await self._read()
                if not data and self._http.their_state is h11.SEND_RESPONSE:
                    raise HttpError("the server closed the connection without an answer")
                self._http.receive_data(data)
            except h11.RemoteProtocolError as error:
                raise HttpError(str(error)) from error

    async def _read(self) -> bytes:
        """Give what arrived; nothing at the end."""
        while not self._unread:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._arrived.clear()
            try:
                async with asyncio.timeout(self._idle_seconds):
                    await self._arrived.wait()
            except TimeoutError as error:
                raise IdleTimeoutError from error
        data = b"".join(self._unread)
        self._unread.clear()
        self._unread_size = 0
        self._transport.resume_reading()
        return data


def _request(target: Target, headers: Mapping[str, str], size: int) -> h11.Request:
    """Write the head of a request; raises `HeaderError`."""
    given = {"host": target.name, **headers, "content-length": str(size)}
    if target.authorization:
        given["authorization"] = target.authorization
    try:
        return h11.Request(method="POST", target=target.path, headers=list(given.items()))
    except h11.LocalProtocolError as error:
        raise HeaderError(str(error)) from error


def _joined(head: h11.Response) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in head.headers:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
