"""AWS Signature Version 4: proves with a secret key who sends a request, without sending the key."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, urlsplit

from treadle.providers.wire import HttpCall

ALGORITHM = "AWS4-HMAC-SHA256"
CONTENT_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCredentials:
    """A key of AWS; those of a role or a single sign-on come with a session token."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


class AwsSigner:
    """Signs the calls of one service in one region, each with the credentials that count at that moment."""

    def __init__(
        self,
        credentials: Callable[[], Awaitable[AwsCredentials]],
        *,
        region: str,
        service: str,
        now: Callable[[], datetime],
    ) -> None:
        """`credentials` may raise `CallFailedError`; `now` gives the time in UTC."""
        self._credentials = credentials
        self._region = region
        self._service = service
        self._now = now
        self._secrets: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a message: refusals of AWS repeat what was signed, the session token included."""
        return self._secrets

    async def headers(self, call: HttpCall) -> dict[str, str]:
        """Give the headers that prove who asks."""
        credentials = await self._credentials()
        self._secrets = tuple(filter(None, (credentials.secret_key, credentials.session_token)))
        return signed_headers(call, credentials, region=self._region, service=self._service, moment=self._now())


def signed_headers(
    call: HttpCall, credentials: AwsCredentials, *, region: str, service: str, moment: datetime
) -> dict[str, str]:
    """Sign a POST whose content type is `CONTENT_TYPE`; `moment` is in UTC."""
    parts = urlsplit(call.url)
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    host = parts.hostname or ""
    signed = {
        "content-type": CONTENT_TYPE,
        "host": host if parts.port in (None, usual) else f"{host}:{parts.port}",
        "x-amz-date": stamp,
    }
    if credentials.session_token:
        signed["x-amz-security-token"] = credentials.session_token
    names = ";".join(signed)
    canonical = "\n".join(
        (
            "POST",
            quote(parts.path or "/", safe="/-_.~"),
            parts.query,
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            names,
            hashlib.sha256(call.body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    proof = f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {name: value for name, value in signed.items() if name.startswith("x-amz-")} | {"authorization": proof}
