"""What a provider would bill for each request that the scripted server answered, also where the reply was cut."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallStart,
    StreamStop,
    StreamText,
    StreamThinking,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.player import Performance, PlayStep
from treadle.providers.wire import dump

MEDIA_TOKENS = 1_500
"""What an image or a document is counted as."""

_LONGEST_TEXT = 20_000
"""Characters without any space above which a text is data."""

_NOT_READ = frozenset({"signature", "encrypted_content", "thoughtSignature", "cache_control", "id", "call_id"})
"""Fields that no model reads."""

_AS_WRITTEN = frozenset({"tools", "toolConfig", "arguments", "input", "args"})
"""Fields that a model reads as JSON."""

TokenCount = Callable[[str], int]


class Bill(Struct, frozen=True, kw_only=True):
    """What one request is billed; `whole` says whether the reply came to its end, and with it what was used."""

    usage: Usage
    whole: bool


class Billing:
    """Counts the tokens of requests and replies, and has a cache of the last request, as providers do."""

    def __init__(self, tokens: TokenCount) -> None:
        self._tokens = tokens
        self._cached = ""
        self.bills: list[Bill] = []

    def counted(self, body: Mapping[str, Any], performance: Performance) -> Performance:
        """Give a reply the usage that its request and its words have."""
        text = "\n".join(_texts(body))
        begins = text.startswith(self._cached) and bool(self._cached)
        cached = self._tokens(self._cached) if begins else 0
        whole = self._tokens(text)
        self._cached = text
        said = sum(self._written(step) for step in performance.steps)
        usage = Usage(input_tokens=whole - cached, cache_read_tokens=cached, output_tokens=said)
        steps = tuple(
            replace(step, usage=usage) if isinstance(step, StreamStop) else step for step in performance.steps
        )
        return replace(performance, usage=usage, steps=steps)

    def bill(self, performance: Performance, sent: list[PlayStep]) -> None:
        """Take note of what was sent of a reply until it ended, or nobody read it any more."""
        whole = any(isinstance(step, StreamStop) for step in sent)
        said = sum(self._written(step) for step in sent)
        self.bills.append(Bill(usage=replace(performance.usage, output_tokens=said), whole=whole))

    def _written(self, step: PlayStep) -> int:
        match step:
            case StreamText(text=text) | StreamThinking(text=text) | StreamCallArguments(text=text):
                return self._tokens(text)
            case StreamCallStart(name=name):
                return self._tokens(name)
            case _:
                return 0


def _texts(value: object) -> Iterator[str]:
    """Give all that a model reads of a request: every text, and the names of the fields of what it is told."""
    match value:
        case str():
            yield value if len(value) < _LONGEST_TEXT or " " in value[:_LONGEST_TEXT] else " x" * MEDIA_TOKENS
        case dict():
            for key, one in value.items():
                if key in _AS_WRITTEN:
                    yield dump(one).decode()
                elif key not in _NOT_READ:
                    yield key
                    yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case _:
            pass
