"""How the events of a reply are packed into its body."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from treadle.providers.sse import SseEvent


class EventDecoder(Protocol):
    """Cuts a body into events."""

    def feed(self, chunk: bytes) -> "list[SseEvent]":
        """Take the next bytes and return the events they complete."""
        ...

    def end(self) -> "list[SseEvent]":
        """Return what the end of the body completes."""
        ...


class Framing(Struct, frozen=True, kw_only=True):
    """One way: what to ask for, the content types that may hold it, and its decoder (given the largest event)."""

    accept: str
    types: frozenset[str]
    decoder: Callable[[int], EventDecoder]


def _server_sent(largest: int) -> EventDecoder:
    from treadle.providers.sse import SseDecoder

    return SseDecoder(largest)


SSE = Framing(
    accept="text/event-stream",
    types=frozenset({"", "text/event-stream", "text/plain", "application/octet-stream"}),
    decoder=_server_sent,
)
"""Server-sent events; some servers say no content type, or a general one."""
