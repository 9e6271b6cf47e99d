"""Messages between user and model, in Anthropic-style content blocks."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from treadle.protocol.base import Record, Tagged


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"


class WireData(Record, frozen=True, kw_only=True):
    """What a wire API wants back untouched with a block (signatures, reasoning items); meaningless to others."""

    api: str
    data: dict[str, Any]


class Text(Tagged, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str
    wire: WireData | None = None


class Image(Tagged, frozen=True, kw_only=True, tag="image"):
    """An image; `data` is base64."""

    media_type: str
    data: str


class Document(Tagged, frozen=True, kw_only=True, tag="document"):
    """A document such as a PDF; `data` is base64."""

    media_type: str
    data: str
    title: str = ""


class Thinking(Tagged, frozen=True, kw_only=True, tag="thinking"):
    """The model's reasoning with the provider's signature over it. `searched`: it is a search of the web instead."""

    text: str
    signature: str = ""
    wire: WireData | None = None
    searched: bool = False


class RedactedThinking(Tagged, frozen=True, kw_only=True, tag="redacted_thinking"):
    """Reasoning that the provider keeps encrypted; goes back as it came."""

    data: str
    wire: WireData | None = None


class ToolUse(Tagged, frozen=True, kw_only=True, tag="tool_use"):
    """A call as part of the assistant's message.

    `id` is Treadle's own, unique in the session; `wire_id` is the provider's. `source` is the verbatim text of a
    call that was written as XML.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    wire_id: str = ""
    source: str = ""
    wire: WireData | None = None


ResultContent: TypeAlias = Text | Image | Document


class ToolResult(Tagged, frozen=True, kw_only=True, tag="tool_result"):
    """What the model reads as the outcome of a call; `call_id` is the `ToolUse.id`."""

    call_id: str
    name: str
    content: tuple[ResultContent, ...]
    is_error: bool = False
    wire_id: str = ""


UserContent: TypeAlias = Text | Image | Document
ContentBlock: TypeAlias = Text | Image | Document | Thinking | RedactedThinking | ToolUse | ToolResult


class EnclosureKind(StrEnum):
    """What goes along with a user's words."""

    FILE = "file"
    FOLDER = "folder"
    PAGE = "page"
    PROBLEMS = "problems"
    TERMINAL = "terminal"
    CHANGES = "changes"
    COMMIT = "commit"
    COMMAND = "command"
    SKILL = "skill"
    HOOK = "hook"


class Enclosure(Record, frozen=True, kw_only=True):
    """What goes along with a user's words and is not their own, such as a file that they mention.

    `origin` is its path, address or name. The content is worded for the model, with its origin in it.
    """

    kind: EnclosureKind
    origin: str
    content: tuple[UserContent, ...]


def origins(enclosed: Sequence[Enclosure]) -> tuple[str, ...]:
    """Name what goes along with a user's words."""
    return tuple(one.origin for one in enclosed)


class Message(Record, frozen=True, kw_only=True):
    """One message of the conversation."""

    role: Role
    content: tuple[ContentBlock, ...]


def text_of(content: tuple[ContentBlock, ...]) -> str:
    """Join the plain text of a message's content."""
    return "".join(block.text for block in content if isinstance(block, Text))


OWN_COMMAND = "[A command that the user ran, with its output. It was not a call of yours.]\n"
"""How a block of a user message begins that holds a command of the user's own."""


def without_own_commands(content: Sequence[UserContent]) -> tuple[UserContent, ...]:
    """Give what the user wrote and attached, without the output of their own commands."""
    return tuple(block for block in content if not (isinstance(block, Text) and block.text.startswith(OWN_COMMAND)))
