"""What a model call needs of HTTP: one POST, whose answer is read as it comes; and how that can fail."""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol


class HttpError(Exception):
    """An exchange that did not come to its end, by the network or by what the server sent; the text may be shown."""


class AddressError(HttpError):
    """The URL leads nowhere: it is no http(s) URL, or names no host."""


class HeaderError(HttpError):
    """A header of the request cannot be sent."""


class ConnectTimeoutError(HttpError):
    """There was no connection within its time limit."""


class IdleTimeoutError(HttpError):
    """Nothing more arrived within its time limit."""


class CompressionError(HttpError):
    """The body cannot be unpacked."""


HTTP_ERRORS = (HttpError, OSError)
"""Everything a call or its body can raise; `TimeoutError` is an `OSError`."""


class HttpResponse(Protocol):
    """An answer; the names of its headers are in lower case."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; those of one name are joined by commas."""
        ...

    def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, unpacked; raises `HttpError` or `OSError`."""
        ...

    async def aclose(self) -> None:
        """Leave the rest unread; the connection is kept only if the body was read to its end."""
        ...


class HttpClient(Protocol):
    """Sends requests, and keeps connections for the next ones."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a POST and wait for the head of its answer; redirects are not followed.

        Raises `HttpError` or `OSError`.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...
