"""What the scripted server needs of a wire format, and what the formats share."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from treadle.protocol.models import StreamEvent
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.request_rules import WireRules
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenRequest
from treadle.providers.wire import dump

Json = Mapping[str, Any]
SSE_TYPE = "text/event-stream; charset=utf-8"


class ReplyWriter(Protocol):
    """Writes one reply as the events of its API."""

    def begin(self) -> bytes:
        """What comes before anything is said."""
        ...

    def write(self, event: StreamEvent) -> bytes:
        """The bytes of one event of the neutral stream; a stop or a failure ends the reply."""
        ...


class WireFormat(Protocol):
    """One wire format, from the server's side."""

    @property
    def content_type(self) -> str:
        """Of what type a reply is."""
        ...

    @property
    def required_headers(self) -> tuple[str, ...]:
        """Headers without which the real API refuses."""
        ...

    @property
    def book(self) -> WireRules:
        """What the real API refuses."""
        ...

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        ...

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        ...

    def writer(self, body: Json, performance: Performance) -> ReplyWriter:
        """Begin a reply."""
        ...


def sse(value: Json, *, name: str = "") -> bytes:
    """One server-sent event."""
    head = b"event: %s\n" % name.encode() if name else b""
    return head + b"data: " + dump(value) + b"\n\n"


def texts(content: object) -> list[str]:
    """The texts of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def joined(content: object) -> str:
    """The texts of a content, one under the other."""
    return "\n".join(texts(content))


def duplicates(values: Iterable[str]) -> list[str]:
    """The values that occur more than once."""
    seen: set[str] = set()
    return [value for value in values if value in seen or seen.add(value)]  # type: ignore[func-returns-value]
