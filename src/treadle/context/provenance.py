"""Where each block of a request comes from."""

from typing import assert_never

import msgspec
from msgspec import Struct

from treadle.context.focus import PROGRESS
from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.tools import ToolCall

_SUBJECTS = ("path", "command", "url", "query", "regex")
"""Parameters of tools that say what a call is about."""

_LONGEST_SUBJECT = 120


class Provenance(Struct, frozen=True):
    """What a block is, and what it comes from: a path or an address, or a call.

    `kind` is that of a passage or an enclosure, or `prompt`, `reply`, `thinking`, `call`, `result`, `answer` (of the
    user to the question of a call), `rejection` (of a call, by the user), `read` (the result of reading something),
    `left out` (what stands for messages that left).
    """

    kind: str
    named: str = ""
    call: ToolCall | None = None

    @property
    def origin(self) -> str:
        """Name what it comes from: for a call its tool, and what it is about where that is one short argument."""
        call = self.call
        if call is None:
            return self.named
        match self.kind:
            case "answer":
                asked = call.arguments.get("question", "")
                return asked if isinstance(asked, str) else ""
            case "read":
                return _subject(call) or call.name
            case _:
                return f"{call.name} {_subject(call)}".strip()

    @property
    def key(self) -> str:
        """What reads of the same have in common: the newest one supersedes the others; empty for all else."""
        if self.kind != "read" or self.call is None:
            return ""
        arguments = {name: value for name, value in self.call.arguments.items() if name != PROGRESS}
        return f"{self.call.name} {msgspec.json.encode(arguments, order='sorted').decode()}"


def _subject(call: ToolCall) -> str:
    about = next((call.arguments[name] for name in _SUBJECTS if isinstance(call.arguments.get(name), str)), "")
    return " ".join(about.split())[:_LONGEST_SUBJECT]


class Entry(Struct, frozen=True):
    """One message, the event that completed it, what the user said in it, and where each of its blocks comes from."""

    message: Message
    seq: int
    asked: tuple[str, ...]
    sources: tuple[Provenance, ...]


_UNKNOWN = Provenance("")


def sources_of(entry: Entry) -> tuple[Provenance, ...]:
    """Give the source of each block, also of a message that was put together without."""
    return entry.sources or (_UNKNOWN,) * len(entry.message.content)


_UNNAMED = Provenance("")


def name_of_block(block: ContentBlock, role: Role = Role.USER, source: Provenance = _UNNAMED) -> str:
    """Name a part of the conversation for a person."""
    match block:
        case ToolResult(name=name):
            return f"the result of {name}"
        case ToolUse(name=name):
            return f"the call of {name}"
        case _ if source.named and role is Role.USER:
            return source.named
        case Image() | Document():
            return "an image or a document"
        case Text() | Thinking() | RedactedThinking():
            return "the text of a request" if role is Role.USER else "an answer of the model"
        case _:
            assert_never(block)
