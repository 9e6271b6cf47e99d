"""Connections of the HTTP library: through proxies, and to addresses that need its reading."""

import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager

import httpx2

from treadle.providers.endpoint import Endpoint
from treadle.providers.http_connections import KEPT_SECONDS, Sent, SocksError, Trouble, Troubles, named, trace_of

_TROUBLES: Troubles = (
    (httpx2.ConnectTimeout, Trouble.CONNECT_TIMEOUT),
    (httpx2.ConnectError, Trouble.UNREACHED),
    (httpx2.TimeoutException, Trouble.STALLED),
    (httpx2.UnsupportedProtocol, Trouble.ADDRESS),
    (httpx2.InvalidURL, Trouble.ADDRESS),
    (httpx2.LocalProtocolError, Trouble.HEADER),
    (httpx2.DecodingError, Trouble.COMPRESSION),
    (httpx2.ProxyError, Trouble.PROXY),
    (httpx2.RemoteProtocolError, Trouble.PROTOCOL),
    (httpx2.HTTPError, Trouble.NETWORK),
    (httpx2.StreamError, Trouble.NETWORK),
)


@contextmanager
def _without_socks() -> Iterator[None]:
    """Raise `SocksError` where the library misses what it needs for such a proxy."""
    try:
        yield
    except ImportError as error:
        raise SocksError("SOCKS needs the package socksio, which is not installed") from error


class LibraryConnections:
    """Connections as the endpoint and the environment want them."""

    def __init__(self, endpoint: Endpoint, certificates: ssl.SSLContext | None, *, here: bool) -> None:
        """Raises `OSError`, `ValueError` or `ConnectionFailedError` for a proxy that cannot be used."""
        with named(_TROUBLES), _without_socks():
            self._client = httpx2.AsyncClient(
                verify=certificates or not here,
                proxy=endpoint.proxy or None,
                trust_env=not here,
                timeout=httpx2.Timeout(None, connect=endpoint.limits.connect),
                limits=httpx2.Limits(keepalive_expiry=KEPT_SECONDS),
                follow_redirects=False,
            )

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, sent: Sent) -> "_Response":
        """Send a request; see the port."""
        with named(_TROUBLES):
            trace = {"trace": trace_of(sent)}
            request = self._client.build_request("POST", url, headers=headers, content=body, extensions=trace)
            return _Response(await self._client.send(request, stream=True))

    async def close(self) -> None:
        """Give them back."""
        with named(_TROUBLES):
            await self._client.aclose()


class _Response:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    @property
    def status(self) -> int:
        return self._response.status_code

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        with named(_TROUBLES):
            async with aclosing(self._response.aiter_bytes()) as body:
                async for chunk in body:
                    yield chunk

    async def close(self) -> None:
        with named(_TROUBLES):
            await self._response.aclose()
