"""A whole reply, given in chunks, as plain data: what `treadle parse` prints."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, assert_never

import msgspec

from treadle.parsing.framing import unframe
from treadle.parsing.native import NativeReader
from treadle.parsing.reply_blocks import (
    CallComplete,
    CallOpened,
    ContentDelta,
    Malformation,
    ParameterDelta,
    ParserEvent,
    ReasoningDelta,
    ToolGrammar,
)
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
    """A piece of a native call: `arguments` continues its JSON; id and name come with the first."""

    index: int = 0
    id: str | None = None
    name: str = ""
    arguments: str = ""


UNNAMED = "unnamed"


def parse_chunks(
    chunks: Iterable[str | CallFragment], protocol: Protocol, tools: Sequence[ToolGrammar] = ()
) -> ParsedReply:
    """Parse a reply that arrives as `chunks`.

    "xml": the chunks are the text of the reply, split anywhere.
    "native": a string is a piece of the argument JSON of one call, which is named after the only tool, or
    else "unnamed"; a `CallFragment` is a piece of the call that it says, as in a streamed delta, and calls
    may interleave. Raises TypeError for a `CallFragment` in an XML reply.
    """
    if protocol == "native":
        return _plain(_read_native(chunks, tools[0].name if len(tools) == 1 else UNNAMED), {})
    return _plain(_read_xml(chunks, tools), {tool.name: tool for tool in tools})


def _read_xml(chunks: Iterable[str | CallFragment], tools: Sequence[ToolGrammar]) -> Iterator[ParserEvent]:
    reader = XmlReader(tools)
    for chunk in chunks:
        if isinstance(chunk, CallFragment):
            raise TypeError("an XML reply is text; it has no call fragments")
        yield from reader.feed(chunk)
    yield from reader.finish()


def _read_native(chunks: Iterable[str | CallFragment], name: str) -> Iterator[ParserEvent]:
    reader = NativeReader()
    for chunk in chunks:
        piece = CallFragment(name=name, arguments=chunk) if isinstance(chunk, str) else chunk
        yield from reader.start(piece.index, piece.id, piece.name)
        yield from reader.feed(piece.index, piece.arguments)
    yield from reader.finish()


def _plain(blocks: Iterable[ParserEvent], grammars: Mapping[str, ToolGrammar]) -> ParsedReply:
    """Join the deltas. The partial parameters of the calls in `grammars` (XML) are read off the source."""
    parsed: list[ParsedBlock] = []
    errors: list[ParseError] = []
    text: list[str] = []
    previews: dict[int | None, dict[str, list[str]]] = {}
    for block in blocks:
        match block:
            case ContentDelta(piece) | ReasoningDelta(piece):
                text.append(piece)
            case CallOpened():
                pass
            case ParameterDelta(index, name, piece):
                previews.setdefault(index, {}).setdefault(name, []).append(piece)
            case CallComplete():
                _flush(text, parsed)
                parsed.append(_call(block.name, block.arguments, partial=False))
            case Malformation():
                _flush(text, parsed)
                if block.name in grammars:
                    params = partial_arguments(grammars[block.name], block.source)
                else:
                    params = {name: "".join(said) for name, said in previews.get(block.index, {}).items()}
                parsed.append(_call(block.name, params, partial=True))
                errors.append({"code": block.code, "message": block.message, "index": block.index, "name": block.name})
            case _:
                assert_never(block)
    _flush(text, parsed)
    return {"blocks": parsed, "errors": errors}


def _flush(text: list[str], parsed: list[ParsedBlock]) -> None:
    if text:
        parsed.append({"type": "text", "text": "".join(text), "partial": False})
        text.clear()


def _call(name: str, params: Mapping[str, Any], *, partial: bool) -> ParsedBlock:
    return {"type": "tool_use", "name": name, "params": dict(params), "partial": partial}


def partial_arguments(grammar: ToolGrammar, source: str) -> dict[str, str]:
    """What can be read of the parameters of a malformed XML call, to be shown and never to be run."""
    names = "|".join(map(re.escape, grammar.parameters))
    if not names:
        return {}
    value = re.compile(rf"<({names})>(.*?)(?:</\1>|</{re.escape(grammar.name)}>|\Z)", re.DOTALL)
    return {found[1]: unframe(found[2]) for found in value.finditer(source)}
