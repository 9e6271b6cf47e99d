"""Plain connections, by the library below the HTTP library."""

import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from urllib.parse import urlsplit

import httpcore2

from treadle.providers.http_connections import KEPT_SECONDS, Sent, Trouble, Troubles, named
from treadle.providers.sockets import LoopBackend

_TROUBLES: Troubles = (
    (httpcore2.ConnectTimeout, Trouble.CONNECT_TIMEOUT),
    (httpcore2.ConnectError, Trouble.UNREACHED),
    (httpcore2.TimeoutException, Trouble.STALLED),
    (httpcore2.UnsupportedProtocol, Trouble.ADDRESS),
    (httpcore2.LocalProtocolError, Trouble.HEADER),
    (httpcore2.ProtocolError, Trouble.PROTOCOL),
    (httpcore2.NetworkError, Trouble.NETWORK),
    (zlib.error, Trouble.COMPRESSION),
)
_MOST_AT_ONCE = 1024 * 1024
"""Bytes into which a piece of a packed body is unpacked at once."""


class PlainConnections:
    """Connections without a proxy."""

    def __init__(self, certificates: ssl.SSLContext | None, *, connect_seconds: float) -> None:
        """`certificates` are for https; the time of each read is bounded by whoever reads."""
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=certificates,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=LoopBackend(),
        )
        self._timeouts = {"connect": connect_seconds, "read": None, "write": None, "pool": None}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, sent: Sent) -> "_Response":
        """Send a request; see the port."""
        with named(_TROUBLES):
            parts = urlsplit(url)
            fields = {
                "host": parts.netloc,
                "connection": "keep-alive",
                **headers,
                "content-length": str(len(body)),
            }
            request = httpcore2.Request(
                "POST",
                httpcore2.URL(
                    scheme=parts.scheme,
                    host=parts.hostname or "",
                    port=parts.port,
                    target=f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}",
                ),
                headers=list(fields.items()),
                content=_Body(body, sent),
                extensions={"timeout": self._timeouts},
            )
            return _Response(await self._pool.handle_async_request(request))

    async def close(self) -> None:
        """Give them back."""
        with named(_TROUBLES):
            await self._pool.aclose()


class _Body:
    """The body of a request, which is over when it has left; to have everything traced for that takes longer."""

    def __init__(self, body: bytes, sent: Sent) -> None:
        self._body = body
        self._sent = sent

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body
        self._sent()


class _Response:
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self.headers: dict[str, str] = {}
        for name, value in ((raw.decode("latin-1").lower(), text.decode("latin-1")) for raw, text in response.headers):
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    @property
    def status(self) -> int:
        return self._response.status

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        unpack = _Unpack() if self.headers.get("content-encoding", "").lower() in ("gzip", "deflate") else None
        with named(_TROUBLES):
            async with aclosing(self._response.aiter_stream()) as body:
                async for chunk in body:
                    if unpack is None:
                        yield chunk
                    else:
                        for piece in unpack.feed(chunk):
                            yield piece

    async def close(self) -> None:
        with named(_TROUBLES):
            await self._response.aclose()


class _Unpack:
    """Unpacks gzip and both kinds of deflate, a bounded piece at a time."""

    def __init__(self) -> None:
        self._any = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._first(data) if not self._begun else self._any.decompress(data, _MOST_AT_ONCE)
        while piece:
            yield piece
            piece = self._any.decompress(self._any.unconsumed_tail, _MOST_AT_ONCE)

    def _first(self, data: bytes) -> bytes:
        """Find out by the first bytes whether there is a header."""
        self._begun = True
        try:
            return self._any.decompress(data, _MOST_AT_ONCE)
        except zlib.error:
            self._any = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._any.decompress(data, _MOST_AT_ONCE)
