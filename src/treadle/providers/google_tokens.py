"""Access tokens of a Google account: a service account's file, `gcloud auth application-default login`, a machine."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import google.auth
import google.auth.exceptions
import google.auth.transport

from treadle.protocol.models import ErrorKind
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure
from treadle.providers.tokens import UNKNOWN_LIFETIME, BearerToken
from treadle.providers.wire import CallFailedError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_SECONDS = 20.0


class GoogleTokens:
    """Finds the account once, and fetches a token each time it is asked."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._credentials: Any = None

    async def fetch(self) -> BearerToken:
        """Fetch a token in a thread; raises `CallFailedError`."""
        try:
            return await asyncio.to_thread(self._fetch)
        except (google.auth.exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise CallFailedError(failure(self._endpoint, ErrorKind.AUTHENTICATION, str(error))) from error

    def _fetch(self) -> BearerToken:
        if self._credentials is None:
            self._credentials, _ = google.auth.default(scopes=[SCOPE], request=_Request())
        self._credentials.refresh(_Request())
        expiry: datetime | None = self._credentials.expiry
        lifetime = (
            UNKNOWN_LIFETIME if expiry is None else (expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        )
        return BearerToken(value=str(self._credentials.token), lifetime=lifetime)


class _Response(google.auth.transport.Response):
    """What the library reads of a response."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self._read = (status, headers, data)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._read[0]

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._read[1]

    @property
    def data(self) -> bytes:
        """The body."""
        return self._read[2]


class _Request(google.auth.transport.Request):
    """The library's way to call, without the packages that its own ways need."""

    def __call__(  # noqa: PLR0917 - the library's signature
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Response:
        """Send one request; raises `OSError`."""
        if not url.startswith(("https://", "http://metadata.google.internal/", "http://169.254.169.254/")):
            raise OSError(f"{url} is no address of Google")
        data = body.encode() if isinstance(body, str) else body
        asked = urllib.request.Request(url, data=data, headers=dict(headers or {}), method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(asked, timeout=timeout or _SECONDS) as response:  # noqa: S310
                return _Response(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as refused:
            return _Response(refused.code, dict(refused.headers), refused.read())
