"""Tools, and ways to read a reply, that the parser tests share."""

from collections.abc import Iterable, Sequence

from treadle.parsing import (
    CallComplete,
    ContentDelta,
    Malformation,
    ParameterDelta,
    ParserEvent,
    ReasoningDelta,
    ToolGrammar,
    XmlReader,
)

READ = ToolGrammar("read_file", ("path",), ("path",))
WRITE = ToolGrammar("write_to_file", ("path", "content"), ("path", "content"))
LIST = ToolGrammar("list_files", ("path", "recursive"), ("path",))
DONE = ToolGrammar("done", ())
COMMAND = ToolGrammar("command", ("command",), ("command",))
TOOLS = (READ, WRITE, LIST, DONE, COMMAND)


def read(chunks: Iterable[str], *, tools: Sequence[ToolGrammar] = TOOLS, reasoning: bool = False) -> list[ParserEvent]:
    """All blocks of a reply, deltas joined."""
    reader = XmlReader(tools, reasoning_tags=reasoning)
    blocks = [block for chunk in chunks for block in reader.feed(chunk)]
    return coalesced([*blocks, *reader.finish()])


def coalesced(blocks: Iterable[ParserEvent]) -> list[ParserEvent]:
    """Neighbouring deltas of one kind, joined."""
    joined: list[ParserEvent] = []
    for block in blocks:
        last = joined[-1] if joined else None
        match last, block:
            case (ContentDelta(before), ContentDelta(text)):
                joined[-1] = ContentDelta(before + text)
            case (ReasoningDelta(before), ReasoningDelta(text)):
                joined[-1] = ReasoningDelta(before + text)
            case (ParameterDelta(index, name, before), ParameterDelta(same, also, text)) if (index, name) == (
                same,
                also,
            ):
                joined[-1] = ParameterDelta(index, name, before + text)
            case _:
                joined.append(block)
    return joined


def rebuilt(blocks: Iterable[ParserEvent]) -> str:
    """The reply, from the texts and sources of its blocks."""
    pieces = []
    for block in blocks:
        match block:
            case ContentDelta(text):
                pieces.append(text)
            case CallComplete() | Malformation():
                pieces.append(block.source)
            case _:
                pass
    return "".join(pieces)


def summary(blocks: Iterable[ParserEvent]) -> list[tuple[str, object]]:
    """Text, complete calls and malformation codes, in short."""
    short: list[tuple[str, object]] = []
    for block in blocks:
        match block:
            case ContentDelta(text):
                short.append(("text", text))
            case ReasoningDelta(text):
                short.append(("reasoning", text))
            case CallComplete():
                short.append((block.name, block.arguments))
            case Malformation():
                short.append((block.code, block.source))
            case _:
                pass
    return short
