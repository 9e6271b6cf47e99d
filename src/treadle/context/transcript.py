"""The conversation as messages: a projection of the log that grows by one message at a time."""

from collections.abc import Sequence
from typing import assert_never

from treadle.context.media import without_media
from treadle.context.xml import as_xml_message
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
    UserContent,
)
from treadle.protocol.models import ToolProtocol

BYTES_PER_TOKEN = 3.6
"""Of UTF-8; used only for what no usage report covers yet."""

LEAST_BYTES_PER_TOKEN = 2.2
"""What text takes at worst: no usual tokenizer needs more tokens for prose or code."""

_DROPPED = "[Earlier messages were left out to make room. Ask the user if something you need is missing.]"
_MEDIA_BYTES = 6_000


class Transcript:
    """Messages in order, roles in turn, each call followed by its result. Each message is built once and kept.

    The projections for tool protocols and media share that property, so that a provider can keep a message's wire
    bytes by the message's identity.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._projected: dict[tuple[ToolProtocol, bool, bool], list[Message]] = {}
        self._reported_tokens = 0
        self._new_bytes = 0

    def messages(self, protocol: ToolProtocol, *, images: bool = True, documents: bool = True) -> tuple[Message, ...]:
        """Give the conversation as it is sent with this tool protocol to a model that takes these media."""
        if protocol is ToolProtocol.NATIVE and images and documents:
            return tuple(self._messages)
        projected = self._projected.setdefault((protocol, images, documents), [])
        for message in self._messages[len(projected) :]:
            plain = without_media(message, images=images, documents=documents)
            projected.append(as_xml_message(plain) if protocol is ToolProtocol.XML else plain)
        return tuple(projected)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet."""
        return not self._messages

    @property
    def tokens(self) -> int:
        """Estimate what the conversation takes: the provider's last count, and the bytes since."""
        return self._reported_tokens + int(self._new_bytes / BYTES_PER_TOKEN)

    @property
    def most_tokens(self) -> int:
        """Say what the conversation takes at most."""
        return self._reported_tokens + int(self._new_bytes / LEAST_BYTES_PER_TOKEN)

    @property
    def is_measured(self) -> bool:
        """Whether a provider's count, which covers prompt and tools too, is part of the estimate."""
        return self._reported_tokens > 0

    def add_user(
        self,
        *,
        results: Sequence[ToolResult],
        prompts: Sequence[Sequence[UserContent]],
        notes: Sequence[str],
        environment: str,
    ) -> None:
        """Seal a user message: results first, then notes, prompts and the environment."""
        blocks: list[ContentBlock] = [*results]
        blocks += [Text(text=f"<note>\n{note}\n</note>") for note in notes]
        for prompt in prompts:
            blocks += _as_task(prompt) if self.is_empty else prompt
        if environment:
            blocks.append(Text(text=f"<environment>\n{environment}\n</environment>"))
        self._add(Role.USER, tuple(blocks))

    def add_assistant(self, message: Message, context_tokens: int = 0) -> None:
        """Add the model's message; `context_tokens` is the provider's count of all up to here, 0 if unknown."""
        self._add(Role.ASSISTANT, message.content or (Text(text="(no answer)"),))
        if context_tokens:
            self._reported_tokens, self._new_bytes = context_tokens, 0

    def wire_id(self, call_id: str) -> str:
        """Look up the provider's own id of a call of the last message."""
        blocks = self._messages[-1].content if self._messages else ()
        uses = (block for block in blocks if isinstance(block, ToolUse))
        return next((use.wire_id for use in uses if use.id == call_id), "")

    def holds(self, text: str) -> bool:
        """Whether a result that is still sent has a text that is exactly this."""
        return any(
            isinstance(inner, Text) and inner.text == text
            for message in self._messages
            for block in message.content
            if isinstance(block, ToolResult)
            for inner in block.content
        )

    def droppable(self) -> int:
        """Say how many messages after the first may leave, so that roles and results stay in order: about half."""
        pairs = (len(self._messages) - 1) // 2
        return (pairs + 1) // 2 * 2 if pairs > 1 else 0

    def drop(self, count: int) -> None:
        """Leave out `count` messages after the first (which carries the task) and say so in their place."""
        count = min(count, self.droppable())
        if not count:
            return
        gone = self._messages[1 : 1 + count]
        first = self._messages[0]
        if not any(isinstance(block, Text) and block.text == _DROPPED for block in first.content):
            first = Message(role=first.role, content=(*first.content, Text(text=_DROPPED)))
        self._messages[: 1 + count] = [first]
        self._projected.clear()
        left_out = sum(size(message) for message in gone)
        self._reported_tokens = max(0, self._reported_tokens - int(left_out / BYTES_PER_TOKEN))

    def largest(self) -> str:
        """Name the largest part of what stays when `droppable` messages leave, and about how many tokens it has."""
        kept = (message for at, message in enumerate(self._messages) if not 0 < at <= self.droppable())
        parts = [(_size(block), _name(message.role, block)) for message in kept for block in message.content]
        if not parts:
            return ""
        bytes_taken, name = max(parts)
        return f"{name} (about {bytes_taken / BYTES_PER_TOKEN:,.0f} tokens)"

    def _add(self, role: Role, content: tuple[ContentBlock, ...]) -> None:
        message = Message(role=role, content=content)
        self._new_bytes += size(message)
        if self._messages and self._messages[-1].role is role:
            earlier = self._messages.pop()
            for projected in self._projected.values():
                del projected[len(self._messages) :]
            message = Message(role=role, content=(*earlier.content, *content))
        self._messages.append(message)


def _as_task(prompt: Sequence[UserContent]) -> list[ContentBlock]:
    return [Text(text="<task>"), *prompt, Text(text="</task>")]


def _name(role: Role, block: ContentBlock) -> str:
    match block:
        case ToolResult(name=name):
            return f"the result of {name}"
        case ToolUse(name=name):
            return f"the call of {name}"
        case Image() | Document():
            return "an image or a document"
        case Text() | Thinking() | RedactedThinking():
            return "the text of a request" if role is Role.USER else "an answer of the model"
        case _:
            assert_never(block)


def size(message: Message) -> int:
    """Count the bytes of a message (UTF-8), as far as they cost tokens."""
    return sum(_size(block) for block in message.content)


def _size(block: ContentBlock) -> int:
    match block:
        case Text(text=text) | Thinking(text=text):
            return _bytes(text)
        case ToolUse(name=name, arguments=arguments):
            return len(name) + sum(len(key) + _bytes(str(value)) for key, value in arguments.items())
        case ToolResult(content=content):
            return sum(_size(inner) for inner in content)
        case _:
            return _MEDIA_BYTES


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
