"""HTTP by way of a proxy: a general client, which knows their kinds and where the environment names them."""

import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import httpx2

from treadle.providers.http_client import (
    AddressError,
    CompressionError,
    ConnectTimeoutError,
    HeaderError,
    HttpError,
    IdleTimeoutError,
)

LIBRARY_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
"""Everything the library raises by itself."""


class ProxiedClient:
    """The `HttpClient` that goes through `proxy`, or through those that the environment names where that is empty.

    `tls` checks certificates; None stands for the system's own way. `connect` and `idle` are seconds. Raises
    `ValueError` for a proxy that is none.
    """

    def __init__(self, proxy: str, tls: ssl.SSLContext | None, *, connect: float, idle: float) -> None:
        try:
            self._client = httpx2.AsyncClient(
                verify=True if tls is None else tls,
                proxy=proxy or None,
                timeout=httpx2.Timeout(idle, connect=connect),
                limits=httpx2.Limits(keepalive_expiry=60.0),
                follow_redirects=False,
            )
        except httpx2.InvalidURL as error:
            raise ValueError(str(error)) from error

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "ProxiedResponse":
        """Send a POST; see the port."""
        with _translated():
            request = self._client.build_request("POST", url, headers=dict(headers), content=body)
            return ProxiedResponse(await self._client.send(request, stream=True))

    async def aclose(self) -> None:
        """Give back connections."""
        await self._client.aclose()


class ProxiedResponse:
    """The `HttpResponse` of a `ProxiedClient`."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status_code = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives; see the port."""
        with _translated():
            async for piece in self._response.aiter_bytes():
                yield piece

    async def aclose(self) -> None:
        """Leave the rest unread."""
        with _translated():
            await self._response.aclose()


@contextmanager
def _translated() -> Iterator[None]:
    """Let what the library raises out as what the port says."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        _raise(error)


def _raise(error: Exception) -> NoReturn:
    match error:
        case httpx2.ConnectTimeout():
            raise ConnectTimeoutError(str(error)) from error
        case httpx2.TimeoutException():
            raise IdleTimeoutError(str(error)) from error
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            raise AddressError(str(error)) from error
        case httpx2.LocalProtocolError():
            raise HeaderError(str(error)) from error
        case httpx2.DecodingError():
            raise CompressionError(str(error)) from error
        case _:
            raise HttpError(str(error) or type(error).__name__) from error
