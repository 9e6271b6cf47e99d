"""A whole reply, given in chunks, as plain data: what `treadle parse` prints."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, assert_never

import msgspec

from treadle.parsing.blocks import (
    Block,
    CallComplete,
    CallStarted,
    Malformation,
    ParameterDelta,
    ReasoningDelta,
    TextDelta,
    ToolGrammar,
)
from treadle.parsing.native import NativeReader
from treadle.parsing.xml import XmlReader

Protocol: TypeAlias = Literal["xml", "native"]


class ParsedBlock(TypedDict):
    """Text (`text`) or a call (`name`, `params`); a `partial` call is malformed and must not be run."""

    type: Literal["text", "tool_use"]
    text: NotRequired[str]
    name: NotRequired[str]
    params: NotRequired[dict[str, Any]]
    partial: bool


class ParseError(TypedDict):
    """One malformation, as the model would read it."""

    code: str
    message: str
    index: int | None
    name: str


class ParsedReply(TypedDict):
    """The blocks of a reply in their order, and what was malformed."""

    blocks: list[ParsedBlock]
    errors: list[ParseError]


class CallFragment(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a native call: `arguments` is the next piece of its JSON; id and name come with the first."""

    index: int = 0
    id: str | None = None
    name: str = ""
    arguments: str = ""


def parse_chunks(chunks: Iterable[str], protocol: Protocol, tools: Sequence[ToolGrammar] = ()) -> ParsedReply:
    """Parse a reply that arrives as `chunks`.

    "xml": the chunks are the text of the reply, split anywhere.
    "native": each chunk is a piece of the argument JSON of one call (named after the only tool, or `""`), or,
    if the first chunk is an object with the field "arguments" as a string, each chunk is a whole JSON object
    `{"index", "id", "name", "arguments"}` as in a streamed delta, and calls may interleave.
    """
    blocks = _read_xml(chunks, tools) if protocol == "xml" else _read_native(chunks, tools)
    return _plain(blocks)


def _read_xml(chunks: Iterable[str], tools: Sequence[ToolGrammar]) -> Iterator[Block]:
    reader = XmlReader(tools)
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.finish()
