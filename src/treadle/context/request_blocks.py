"""A request block by block: what each is, where it comes from, why it is there, and what it weighs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec
from msgspec import Struct

from treadle.context.provenance import Entry, Provenance, sources_of
from treadle.context.sizes import bytes_of_text, size_of_block
from treadle.protocol.events import OfferChanged
from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolSpec

_WHY = {
    "task": "frame of the task",
    "note": "note of Treadle",
    "environment": "surroundings of the step",
    "rules": "rules of a folder that was touched",
    "files": "changed files, or what came with an answer",
    "skill": "skill in use",
    "prompt": "said by the user",
    "file": "mentioned by the user",
    "folder": "mentioned by the user",
    "page": "mentioned by the user",
    "problems": "mentioned by the user",
    "terminal": "mentioned by the user",
    "changes": "mentioned by the user",
    "commit": "mentioned by the user",
    "command": "command of the user",
    "reply": "said by the model",
    "thinking": "thought by the model",
    "call": "call of the model",
    "result": "result of a call",
    "read": "read by the model",
    "answer": "answer of the user",
    "rejection": "rejected by the user",
    "left out": "summary of removed messages",
}
_NAMES = {"prompt": "user", "reply": "model", "thinking": "model", "left out": "summary"}


class ContextBlock(Struct, frozen=True, kw_only=True):
    """One block of a request, and what it holds; `size` is in bytes, as far as they cost tokens."""

    source: str
    why: str
    size: int
    content: ToolSpec | PromptPart | ContentBlock


def blocks_of(offer: OfferChanged, entries: Sequence[Entry], *, images: bool) -> Iterator[ContextBlock]:
    """Give the blocks in the order in which a provider reads them: tools, system prompt, messages.

    With `images` an image is as large as its pixels.
    """
    for tool in offer.tools:
        yield ContextBlock(
            source=f"tool {tool.name}", why="tool offered to the model", size=_size_of_tool(tool), content=tool
        )
    for part in offer.system:
        yield _of_system(part)
    for entry in entries:
        for block, source in zip(entry.message.content, sources_of(entry), strict=True):
            yield _of_message(entry.message.role, block, source, size_of_block(block, images=images))


def _of_system(part: PromptPart) -> ContextBlock:
    why = f"rules of {part.origin}" if part.origin else "system prompt"
    source = part.origin or f"system: {part.name}"
    return ContextBlock(source=source, why=why, size=bytes_of_text(part.text), content=part)


def _of_message(role: Role, block: ContentBlock, source: Provenance, size: int) -> ContextBlock:
    default = "user" if role is Role.USER else "model"
    name = source.origin or _NAMES.get(source.kind, source.kind or default)
    if isinstance(block, Image) and source.kind == "prompt":
        name = "image"
    return ContextBlock(source=name, why=_WHY.get(source.kind, "message"), size=size, content=block)


def text_of_block(block: ContextBlock) -> str:
    """Write what a block holds for a person: media are named, what has fields is JSON."""
    return _written(block.content)


def _written(content: ToolSpec | PromptPart | ContentBlock) -> str:
    match content:
        case PromptPart(text=text) | Text(text=text) | Thinking(text=text):
            return text
        case ToolSpec():
            return f"{content.description}\n\n{_as_json(content.parameters)}"
        case ToolUse(arguments=arguments):
            return _as_json(arguments)
        case ToolResult(content=parts):
            return "\n".join(map(_written, parts))
        case Image(media_type=kind, data=data) | Document(media_type=kind, data=data):
            return f"[{kind}, {len(data):,} characters of Base64]"
        case RedactedThinking():
            return "[thinking that the provider keeps to itself]"
        case _:
            assert_never(content)


def _as_json(value: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _size_of_tool(tool: ToolSpec) -> int:
    return len(msgspec.json.encode(tool))
