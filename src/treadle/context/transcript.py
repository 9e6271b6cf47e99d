"""The conversation as messages: a projection of the log that grows by one message at a time."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.context.media import without_media
from treadle.context.xml import as_xml_message
from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    ResultContent,
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
"""What stands in their place where the log has no summary."""

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
        self._asked: list[tuple[str, ...]] = []
        self._seqs: list[int] = []
        self._requests_left_out: list[str] = []
        self._left_out: Text | None = None

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
        self, blocks: tuple[ContentBlock, ...], prompts: Sequence[Sequence[UserContent]] = (), *, seq: int = 0
    ) -> None:
        """Add a user message that event `seq` sealed; `prompts` are what the user said in it."""
        later = () if self.is_empty else prompts
        self._add(Role.USER, blocks, seq, tuple(map(_text_of, later)))

    def add_assistant(self, message: Message, context_tokens: int = 0, *, seq: int = 0) -> None:
        """Add the model's message; `context_tokens` is the provider's count of all up to here, 0 if unknown."""
        self._add(Role.ASSISTANT, message.content or (Text(text="(no answer)"),), seq)
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

    def droppable(self, part: float = 0.5) -> int:
        """Say how many messages after the first may leave, so that roles and results stay in order.

        `part` of them, oldest first; the last answer of the model and what came after it always stay.
        """
        last_answer = len(self._messages) - (1 if self._ends_with(Role.ASSISTANT) else 2)
        pairs = max(0, last_answer - 1) // 2
        return math.ceil(pairs * part) * 2

    def size_of(self, count: int) -> int:
        """Count the bytes of the `count` messages after the first."""
        return sum(size(message) for message in self._messages[1 : 1 + count])

    def requests(self, count: int) -> tuple[str, ...]:
        """Give what the user asked after the task in messages that have left, and in the next `count` to leave."""
        return (*self._requests_left_out, *(text for asked in self._asked[1 : 1 + count] for text in asked))

    def through(self, count: int) -> int:
        """Give the number of the event that completed the last of the `count` messages after the first; 0 for none."""
        return self._seqs[count] if count and count < len(self._seqs) else 0

    def drop(self, through: int, summary: str = "") -> None:
        """Leave out what events up to number `through` said, but for the task; `summary` stands in its place."""
        count = bisect_right(self._seqs, through, lo=1) - 1 if self._seqs else 0
        if count <= 0:
            return
        gone = self.size_of(count)
        self._requests_left_out += [text for asked in self._asked[1 : 1 + count] for text in asked]
        first, left_out = self._messages[0], Text(text=summary or _DROPPED)
        content = tuple(block for block in first.content if block is not self._left_out)
        self._messages[: 1 + count] = [Message(role=first.role, content=(*content, left_out))]
        del self._asked[1 : 1 + count]
        del self._seqs[1 : 1 + count]
        before = 0 if self._left_out is None else _bytes(self._left_out.text)
        self._left_out = left_out
        self._projected.clear()
        reported = min(gone, int(self._reported_tokens * BYTES_PER_TOKEN))
        self._reported_tokens -= int(reported / BYTES_PER_TOKEN)
        self._new_bytes = max(0, self._new_bytes - (gone - reported) + _bytes(left_out.text) - before)

    def results(self) -> tuple[ToolResult, ...]:
        """Give the results in the last message, if it is the user's."""
        if not self._ends_with(Role.USER):
            return ()
        return tuple(block for block in self._messages[-1].content if isinstance(block, ToolResult))

    def replace_results(self, contents: Mapping[str, tuple[ResultContent, ...]]) -> None:
        """Put shorter contents in the place of those that results of the last message had, by the call's id."""
        if not contents or not self.results():
            return
        last = self._messages.pop()
        shorter = Message(role=last.role, content=tuple(_with_content(block, contents) for block in last.content))
        for projected in self._projected.values():
            del projected[len(self._messages) :]
        self._messages.append(shorter)
        self._new_bytes = max(0, self._new_bytes - size(last) + size(shorter))

    def largest(self) -> str:
        """Name the largest part of what always stays, and about how many tokens it has."""
        kept = (message for at, message in enumerate(self._messages) if not 0 < at <= self.droppable(1.0))
        parts = [(size_of_block(block), _name(message.role, block)) for message in kept for block in message.content]
        if not parts:
            return ""
        bytes_taken, name = max(parts)
        return f"{name} (about {bytes_taken / BYTES_PER_TOKEN:,.0f} tokens)"

    def _ends_with(self, role: Role) -> bool:
        return bool(self._messages) and self._messages[-1].role is role

    def _add(self, role: Role, content: tuple[ContentBlock, ...], seq: int, asked: tuple[str, ...] = ()) -> None:
        message = Message(role=role, content=content)
        self._new_bytes += size(message)
        if self._ends_with(role):
            earlier = self._messages.pop()
            asked = (*self._asked.pop(), *asked)
            self._seqs.pop()
            for projected in self._projected.values():
                del projected[len(self._messages) :]
            message = Message(role=role, content=(*earlier.content, *content))
        self._messages.append(message)
        self._asked.append(asked)
        self._seqs.append(seq)


def _text_of(prompt: Sequence[UserContent]) -> str:
    return " ".join(block.text for block in prompt if isinstance(block, Text))


def _with_content(block: ContentBlock, contents: Mapping[str, tuple[ResultContent, ...]]) -> ContentBlock:
    if not isinstance(block, ToolResult) or block.call_id not in contents:
        return block
    return replace(block, content=contents[block.call_id])


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
    return sum(size_of_block(block) for block in message.content)


def size_of_block(block: ContentBlock) -> int:
    """Count the bytes of one block (UTF-8), as far as they cost tokens."""
    match block:
        case Text(text=text) | Thinking(text=text):
            return _bytes(text)
        case ToolUse(name=name, arguments=arguments):
            return len(name) + sum(len(key) + _bytes(str(value)) for key, value in arguments.items())
        case ToolResult(content=content):
            return sum(size_of_block(inner) for inner in content)
        case _:
            return _MEDIA_BYTES


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
