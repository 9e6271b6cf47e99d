"""What every wire API gives: a request as bytes, a reader of the reply; and the parts they share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from treadle.protocol.messages import Message, WireData
from treadle.protocol.models import ModelError, ModelRequest, StreamEvent
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint

if TYPE_CHECKING:
    from treadle.providers.sse import SseEvent

_T = TypeVar("_T")
_S = TypeVar("_S", bound=Struct)
_EFFORTS = ((4096, "low"), (16384, "medium"))
"""Up to how many tokens of thinking which effort is asked for; above it is high."""

_LONGEST_NAME = 64
BRIDGE = "(The results were read.)"
"""What stands as the model's between results and a message of the user where a vendor takes no such neighbours."""

_encoder = msgspec.json.Encoder()

_TOO_DEEP = "JSON is nested too deeply"

VALUES = frozenset({"input", "args", "arguments"})
"""Below these keys null is a value; elsewhere it says no more than that a field is missing."""


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


class HttpCall(Struct, frozen=True, kw_only=True):
    """One POST."""

    url: str
    headers: Mapping[str, str]
    body: bytes


ReportLimits = Callable[[str, Mapping[str, float]], None]
"""Takes a model's own name at its provider, and in how many seconds each of its limits resets that is used up."""


class Authorizer(Protocol):
    """Proves who asks where that is more than a fixed key."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not appear in a message."""
        ...

    async def headers(self, call: HttpCall) -> Mapping[str, str]:
        """Give the headers that prove who asks; raises `CallFailedError`."""
        ...


class CallFailedError(Exception):
    """Ends a stream from within; carries what the reader of the stream is told, and the body of a refusal (`said`)."""

    def __init__(self, error: ModelError, said: str = "") -> None:
        super().__init__(error.message)
        self.error = error
        self.said = said


class ReplyPausedError(Exception):
    """Ends the reading of a reply that the provider paused: it goes on with another call.

    `go_on` makes that call of the first one; `reader` reads what comes, with what was read before in mind.
    """

    def __init__(self, reader: "WireReader", go_on: Callable[[HttpCall], HttpCall]) -> None:
        super().__init__()
        self.reader = reader
        self.go_on = go_on


class WireReader(Protocol):
    """Turns the events of one reply into the neutral stream."""

    @property
    def usage(self) -> Usage:
        """What is known to have been billed so far."""
        ...

    def read(self, event: "SseEvent") -> Iterator[StreamEvent]:
        """Take the next event. A `StreamStop` is the last item.

        Raises `CallFailedError`, `MsgspecError` or `ReplyPausedError`.
        """
        ...

    def end(self) -> Iterator[StreamEvent]:
        """The body ended in order: give what is left. Without a `StreamStop` the reply was cut.

        Raises `ReplyPausedError`.
        """
        ...


class WireApi(Protocol):
    """One wire API at one endpoint."""

    @property
    def framing(self) -> Framing:
        """How the events of its replies are packed."""
        ...

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        ...

    def reader(self) -> WireReader:
        """Begin to read a reply."""
        ...


class MessageCache(Generic[_T]):
    """Encodes each frozen message once, however often it is sent; messages are told apart by identity."""

    def __init__(self, encode: Callable[[Message], _T], *, room: int = 8192) -> None:
        self._encode = encode
        self._room = room
        self._known: dict[int, tuple[Message, _T]] = {}

    def encode(self, messages: tuple[Message, ...]) -> list[_T]:
        """Give the encoded form of each message; what other requests left behind is dropped when it is too much."""
        known = self._known
        encoded = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                entry = known[id(message)] = (message, self._encode(message))
            encoded.append(entry[1])
        if len(known) > max(self._room, 2 * len(messages)):
            self._known = {id(message): known[id(message)] for message in messages}
        return encoded


class ToolCache:
    """Encodes the tools of requests once for as long as they stay the same; told apart by identity."""

    def __init__(self, write: Callable[[Sequence[ToolSpec], Mapping[str, Any] | None], object]) -> None:
        """`write` says what is sent, nothing for none; its second argument is the provider's own search, if it may."""
        self._write = write
        self._known: tuple[object, object, bytes] = (None, None, b"")

    def encode(self, tools: Sequence[ToolSpec], search: Mapping[str, Any] | None = None) -> bytes:
        """Give the JSON; empty where there is nothing to send."""
        if self._known[0] is not tools or self._known[1] is not search:
            value = self._write(tools, search)
            self._known = (tools, search, dump(value) if value else b"")
        return self._known[2]


def dump(value: object) -> bytes:
    """Encode as JSON; half characters, which JSON over UTF-8 cannot carry, become replacement characters."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(join_surrogates(value))


def decode_json(data: bytes | bytearray | str, kind: Any = Any) -> Any:
    """Decode what others wrote; raises `MsgspecError`, also where it is nested too deeply to be read."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as deep:
        raise msgspec.DecodeError(_TOO_DEEP) from deep


def join_surrogates(value: Any) -> Any:
    """Join the halves of characters in all texts of a value; a half alone becomes a replacement character."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {join_surrogates(key): join_surrogates(item) for key, item in value.items()}
        case list() | tuple():
            return [join_surrogates(item) for item in value]
        case _:
            return value


def origin(api: str, endpoint: Endpoint) -> str:
    """The name under which a block's wire data is kept: it goes back only to the same API of the same provider."""
    return f"{api}:{endpoint.name}"


def own_data(wire: WireData | None, source: str) -> dict[str, Any] | None:
    """The wire data of a block if it came from `source`."""
    return wire.data if wire is not None and wire.api == source else None


def wire_call_name(name: str) -> str:
    """The name of a call in a history: models invent names that no API takes back, and would refuse ever after."""
    if len(name) <= _LONGEST_NAME and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum():
        return name
    fitting = "".join(one if one in "_-" or (one.isascii() and one.isalnum()) else "_" for one in name)
    return fitting[:_LONGEST_NAME] or "_"


def effort(budget: int) -> str:
    """The name of a reasoning effort for a budget in tokens, for APIs that take no number."""
    return next((name for most, name in _EFFORTS if budget <= most), "high")


def update_usage(new: _S | None, known: _S) -> _S:
    """Figures of usage: those that are given later are totals and count; those left out then stay."""
    if new is None:
        return known
    given = {name: value for name in new.__struct_fields__ if (value := getattr(new, name)) is not None}
    return msgspec.structs.replace(known, **given)


class ReplyId:
    """The id under which the pieces of one reply come; some servers give each piece its own, or none."""

    def __init__(self) -> None:
        self._last = ""
        self._repeated = False

    def is_another(self, found: str | None) -> bool:
        """Take the id of the next piece; tells whether another reply begins: the id was the same, and now differs."""
        if not found:
            return False
        another = self._repeated and found != self._last
        self._repeated = found == self._last
        self._last = found
        return another


def own_number(index: int, used: set[int]) -> int:
    """The number of a new call: the provider's index, or another one where it gives that twice; it is used now."""
    number = max(used) + 1 if index in used else index
    used.add(number)
    return number


def token_count(value: int | None) -> int:
    """A number of tokens as a provider gave it; missing and negative ones count as none."""
    return max(0, value or 0)


class JsonEvents(Generic[_T]):
    """Decodes the JSON of events of one kind: strictly and fast, or as loosely as it can be understood."""

    def __init__(self, kind: type[_T]) -> None:
        self._kind = kind
        self._strict = msgspec.json.Decoder(kind)

    def decode(self, data: bytes) -> _T:
        """Give the fields of an event; raises `MsgspecError`.

        Servers written in other languages put numbers into strings, write 5 as 5.0, send NaN, or null for what is not
        there, and cut a character above U+FFFF into two halves, of which JSON then has only one.
        """
        try:
            return self._strict.decode(data)
        except RecursionError as deep:
            raise msgspec.DecodeError(_TOO_DEEP) from deep
        except msgspec.DecodeError as error:
            import json

            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                raise error from None
            return msgspec.convert(_without_null(value), self._kind, strict=False)


def _without_null(value: Any) -> Any:
    match value:
        case dict():
            given = {key: item for key, item in value.items() if item is not None}
            return {key: item if key in VALUES else _without_null(item) for key, item in given.items()}
        case list():
            return [_without_null(item) for item in value]
        case _:
            return value
