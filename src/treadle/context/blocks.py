"""A request block by block: what each is, where it comes from, why it is there, and what it weighs."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from treadle.context.provenance import Entry, Provenance, sources_of
from treadle.context.sizes import bytes_of_text, size_of_block
from treadle.protocol.events import OfferChanged
from treadle.protocol.messages import ContentBlock, Image, Role
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
    """One block of a request; `size` is in bytes, as far as they cost tokens."""

    source: str
    why: str
    size: int


def blocks_of(offer: OfferChanged, entries: Sequence[Entry]) -> Iterator[ContextBlock]:
    """Give the blocks in the order in which a provider reads them: tools, system prompt, messages."""
    for tool in offer.tools:
        yield ContextBlock(source=f"tool {tool.name}", why="tool offered to the model", size=_size_of_tool(tool))
    for part in offer.system:
        yield _of_system(part)
    for entry in entries:
        for block, source in zip(entry.message.content, sources_of(entry), strict=True):
            yield _of_message(entry.message.role, block, source)


def _of_system(part: PromptPart) -> ContextBlock:
    why = f"rules of {part.origin}" if part.origin else "system prompt"
    return ContextBlock(source=part.origin or f"system: {part.name}", why=why, size=bytes_of_text(part.text))


def _of_message(role: Role, block: ContentBlock, source: Provenance) -> ContextBlock:
    default = "user" if role is Role.USER else "model"
    name = source.origin or _NAMES.get(source.kind, source.kind or default)
    if isinstance(block, Image) and source.kind == "prompt":
        name = "image"
    return ContextBlock(source=name, why=_WHY.get(source.kind, "message"), size=size_of_block(block))


def _size_of_tool(tool: ToolSpec) -> int:
    return len(msgspec.json.encode(tool))
