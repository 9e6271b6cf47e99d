"""Tokens that live for a short time, fetched when the one at hand has run out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from treadle.providers.wire import HttpCall

MARGIN = 60.0
"""Seconds before its end at which a token is no longer used."""
UNKNOWN_LIFETIME = 600.0
"""Seconds for which a token is used that does not say how long it lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """A bearer token; `lifetime` is in seconds."""

    value: str = field(repr=False)
    lifetime: float


class BearerTokens:
    """Puts a token into each call; the calls of one moment share it."""

    def __init__(self, fetch: Callable[[], Awaitable[BearerToken]], *, clock: Callable[[], float]) -> None:
        """`fetch` may raise `CallFailedError`; `clock` gives seconds."""
        self._fetch = fetch
        self._clock = clock
        self._value = ""
        self._until = 0.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """The token."""
        return (self._value,) if self._value else ()

    async def headers(self, call: HttpCall) -> dict[str, str]:  # noqa: ARG002 - the port; a signature would need it
        """Give the header with the token."""
        now = self._clock()
        if not self._value or now >= self._until:
            token = await self._fetch()
            self._value, self._until = token.value, now + max(0.0, token.lifetime - MARGIN)
        return {"authorization": f"Bearer {self._value}"}
