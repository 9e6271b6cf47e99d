"""The conversation as messages: a projection of the log that grows by one message at a time."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from treadle.context.left_out import Facts, known_of
from treadle.context.media import images_of, without_first_image, without_media, without_part
from treadle.context.provenance import Entry, Provenance, name_of_block, sources_of
from treadle.context.shorten import with_content
from treadle.context.sizes import MOST_IMAGE_DATA, MOST_IMAGES, bytes_of_text, size_of_block
from treadle.context.xml_protocol import as_xml_message
from treadle.protocol.messages import (
    ContentBlock,
    Message,
    ResultContent,
    Role,
    Text,
    ToolResult,
    ToolUse,
    UserContent,
)
from treadle.protocol.models import RefusedPart, ToolProtocol

BYTES_PER_TOKEN = 3.6
"""Of UTF-8; used only for what no usage report covers yet."""
LEAST_BYTES_PER_TOKEN = 2.2
"""What text takes at worst: no usual tokenizer needs more tokens for prose or code."""


def estimated_tokens(size: int) -> int:
    """Estimate the tokens of a text of so many bytes in UTF-8."""
    return round(size / BYTES_PER_TOKEN)


_DROPPED = "[Earlier messages were left out to make room. Ask the user if something you need is missing.]"
"""What stands in their place where the log has no summary."""

_LEAST_REPLACED = 200
"""Bytes; a shorter result stays."""

_IMAGES_AT_ONCE = 20
"""How many of the oldest images leave at least when there are too many: each time the provider's cache is lost."""

_NAMED_PARTS, _LEAST_NAMED = 4, 0.01
_LEAST_REPORTED = 1_000
"""Tokens; smaller counts of a provider say too little about its tokenizer."""

_LEAST_SINCE, _MOST_BYTES_PER_TOKEN = 400, 6.0


class Transcript:
    """Messages in order, roles in turn, each call followed by its result. Each message is built once and kept.

    The projections for tool protocols and media share that property, so that a provider can keep a message's wire
    bytes by the message's identity. With `sizes_images` an image is as large as its pixels.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._entries: list[Entry] = []
        self._projected: dict[tuple[ToolProtocol, bool, bool], list[Message]] = {}
        self._reported_tokens = 0
        self._new_bytes = 0
        self._bytes = 0
        self._bytes_per_token = BYTES_PER_TOKEN
        self._counted = (0, 0)
        self._beside = (0, 0)
        self.sizes_images = False
        self._facts = Facts()
        self._left_out: Text | None = None
        self._images = self._image_data = 0

    def messages(self, protocol: ToolProtocol, *, images: bool = True, documents: bool = True) -> tuple[Message, ...]:
        """Give the conversation as it is sent with this tool protocol to a model that takes these media."""
        if protocol is ToolProtocol.NATIVE and images and documents:
            return tuple(self._messages)
        projected = self._projected.setdefault((protocol, images, documents), [])
        for message in self._messages[len(projected) :]:
            projected.append(self.projected(message, protocol, images=images, documents=documents))
        return tuple(projected)

    @staticmethod
    def projected(message: Message, protocol: ToolProtocol, *, images: bool, documents: bool) -> Message:
        """Give a message as it is sent with this tool protocol to a model that takes these media."""
        plain = without_media(message, images=images, documents=documents)
        return as_xml_message(plain) if protocol is ToolProtocol.XML else plain

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet."""
        return not self._messages

    @property
    def tokens(self) -> int:
        """Estimate what the conversation takes: the provider's last count, and the bytes since."""
        return self._reported_tokens + self.tokens_of(self._new_bytes)

    def tokens_of(self, count: int) -> int:
        """Estimate the tokens of so many bytes."""
        return int(count / self._bytes_per_token)

    @property
    def bytes(self) -> int:
        """The bytes of all messages."""
        return self._bytes

    @property
    def bytes_per_token(self) -> float:
        """How long this model's tokens are, as far as its provider's counts tell."""
        return self._bytes_per_token

    @property
    def counted(self) -> tuple[int, int]:
        """The bytes of the last request with its reply, and the provider's count of tokens, less what was removed."""
        return self._counted

    def tokens_without(self, gone: int, before: int) -> int:
        """Estimate what is left of `before` tokens when about so many have left."""
        if not self.is_measured or not self.sizes_images:
            return max(0, before - gone)
        left = self._scaled(-self.bytes_of(gone)) + self.tokens_of(self._new_bytes)
        return left if before == self.tokens else max(left, before - gone)

    def _scaled(self, change: int) -> int:
        """Give what is left of the provider's count: less what has left, or the share of what stays if that is more."""
        most, said = min(self._beside[1], self._reported_tokens), max(1, self._counted[0] - self._beside[0])
        share = most + round((self._reported_tokens - most) * max(0, said + change) / said)
        return max(share, self._reported_tokens + self.tokens_of(change))

    def size_of_block(self, block: ContentBlock) -> int:
        """Count the bytes of a block (UTF-8), as far as they cost tokens, as this conversation counts."""
        return size_of_block(block, images=self.sizes_images)

    def size_of_message(self, message: Message) -> int:
        """Count those of a message."""
        return sum(map(self.size_of_block, message.content))

    def bytes_of(self, tokens: int) -> int:
        """Estimate the bytes of so many tokens."""
        return int(tokens * self._bytes_per_token)

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
        blocks: tuple[ContentBlock, ...],
        prompts: Sequence[Sequence[UserContent]] = (),
        *,
        seq: int = 0,
        sources: tuple[Provenance, ...] = (),
    ) -> None:
        """Add a user message that event `seq` sealed; `prompts` are what the user said in it."""
        later = () if self.is_empty else prompts
        self._add(Entry(Message(role=Role.USER, content=blocks), seq, tuple(map(_text_of, later)), sources))

    def add_assistant(
        self,
        message: Message,
        context_tokens: int = 0,
        *,
        seq: int = 0,
        sources: tuple[Provenance, ...] = (),
        beside: int = 0,
    ) -> None:
        """Add the model's message; `context_tokens` is the provider's count of all up to here, 0 if unknown.

        That count covers prompt and tools too, which have `beside` bytes: it says how long this model's tokens are.
        """
        said = message if message.content else Message(role=Role.ASSISTANT, content=(Text(text="(no answer)"),))
        self._add(Entry(said, seq, (), sources))
        if context_tokens:
            self._learn(context_tokens, self._bytes + beside)
            self._reported_tokens, self._new_bytes = context_tokens, 0
            counts_all = context_tokens * _MOST_BYTES_PER_TOKEN >= beside  # else the messages alone
            share = counts_all * context_tokens * beside // max(1, self._counted[0])
            self._beside = (beside, max(share, self._beside[1] if beside == self._beside[0] else 0))

    def _learn(self, tokens: int, size: int) -> None:
        """Learn how long this model's tokens are: from what came since its last count, else from all of it."""
        since = tokens - self._counted[1], size - self._counted[0]
        if self._counted[1] and since[0] >= _LEAST_SINCE:
            measured = since[1] / since[0]
        elif tokens >= _LEAST_REPORTED and not self._counted[1]:
            measured = size / tokens
        else:
            measured = self._bytes_per_token
        self._bytes_per_token = min(max(measured, LEAST_BYTES_PER_TOKEN), _MOST_BYTES_PER_TOKEN)
        self._counted = (size, tokens)

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
        return sum(self.size_of_message(message) for message in self._messages[1 : 1 + count])

    @property
    def left_out_size(self) -> int:
        """The bytes of what stands in the place of messages that have left."""
        return 0 if self._left_out is None else bytes_of_text(self._left_out.text)

    def facts(self, count: int) -> Facts:
        """Give what is known of the messages after the task that have left, and of the next `count` to leave."""
        return known_of(self._entries[1 : 1 + count], self._facts)

    def entries(self) -> Sequence[Entry]:
        """Give the messages with where they come from."""
        return tuple(self._entries)

    def through(self, count: int) -> int:
        """Give the number of the event that completed the last of the `count` messages after the first; 0 for none."""
        return self._entries[count].seq if count and count < len(self._entries) else 0

    def drop(self, through: int, summary: str = "") -> None:
        """Leave out what events up to number `through` said, but for the task; `summary` stands in its place."""
        seqs = [entry.seq for entry in self._entries]
        count = bisect_right(seqs, through, lo=1) - 1 if seqs else 0
        if count <= 0:
            return
        gone = self.size_of(count)
        first, left_out = self._entries[0], Text(text=summary or _DROPPED)
        kept = [
            (block, source)
            for block, source in zip(first.message.content, sources_of(first), strict=True)
            if block is not self._left_out
        ]
        self._facts = self.facts(count)
        task = Message(role=first.message.role, content=(*(block for block, _ in kept), left_out))
        sources = (*(source for _, source in kept), Provenance("left out"))
        self._entries[: 1 + count] = [Entry(task, first.seq, first.asked, sources)]
        self._messages[: 1 + count] = [task]
        before, self._left_out = self.left_out_size, left_out
        self._projected.clear()
        self._resize(self.left_out_size - before - gone)

    def results(self) -> tuple[ToolResult, ...]:
        """Give the results in the last message, if it is the user's."""
        if not self._ends_with(Role.USER):
            return ()
        return tuple(block for block in self._messages[-1].content if isinstance(block, ToolResult))

    def replace_results(self, contents: Mapping[str, tuple[ResultContent, ...]]) -> None:
        """Put shorter contents in the place of those that results had, by the call's id."""
        if not contents:
            return
        for at, message in enumerate(self._messages):
            if any(isinstance(block, ToolResult) and block.call_id in contents for block in message.content):
                new = tuple(with_content(block, contents) for block in message.content)
                self._put(at, Message(role=message.role, content=new))

    def leave_out(self, part: RefusedPart) -> None:
        """Put a line in the place of what a provider refused; its later messages are not touched by it."""
        for at, message in enumerate(self._messages):
            self._put(at, without_part(message, part))

    def _put(self, at: int, new: Message) -> None:
        """Put a message in the place of the one that is there."""
        old = self._messages[at]
        if new is old:
            return
        self._entries[at], self._messages[at] = replace(self._entries[at], message=new), new
        for projected in self._projected.values():
            del projected[at:]
        self._resize(self.size_of_message(new) - self.size_of_message(old), at)

    def superseded(self) -> Mapping[str, str]:
        """Find results of reads that a later read of the same makes superfluous: the call's id, and what was read."""
        newest: dict[str, str] = {}
        found: dict[str, str] = {}
        for entry in reversed(self._entries):
            for block, source in zip(reversed(entry.message.content), reversed(sources_of(entry)), strict=True):
                if not isinstance(block, ToolResult) or block.is_error or not (key := source.key):
                    continue
                if key in newest and self.size_of_block(block) > _LEAST_REPLACED:
                    found[block.call_id] = source.origin
                newest.setdefault(key, block.call_id)
        return found

    def size_of_results(self, call_ids: Mapping[str, str]) -> int:
        """Count the bytes of these results."""
        blocks = (block for message in self._messages for block in message.content)
        return sum(self.size_of_block(one) for one in blocks if isinstance(one, ToolResult) and one.call_id in call_ids)

    def _resize(self, change: int, at: int = 0) -> None:
        """Take note that message number `at`, or what stands in the place of several, has another size now.

        What is left of what a provider counted takes its share of that count: the rest of a difference of two
        estimates could be anything.
        """
        self._bytes += change
        is_new = at == len(self._messages) - 1 and self._ends_with(Role.USER)
        if self.sizes_images and self.is_measured and not is_new:
            self._reported_tokens = self._scaled(change)
            self._counted = (max(self._counted[0] + change, self._beside[0]), self._reported_tokens)
            return
        size, tokens = self._counted
        if size and not self.sizes_images:
            self._counted = (max(0, size + change), max(0, tokens + self.tokens_of(change)))
        self._new_bytes += change
        if self._new_bytes < 0:
            self._reported_tokens = max(0, self._reported_tokens + self.tokens_of(self._new_bytes))
            self._new_bytes = 0

    def largest(self, *beside: tuple[int, str]) -> Sequence[tuple[int, str]]:
        """Give the largest parts of what always stays, with `beside` (bytes, name), each with about its tokens."""
        end = self.droppable(1.0)
        kept = (entry for at, entry in enumerate(self._entries) if not 0 < at <= end)
        blocks = [
            (self.size_of_block(block), name_of_block(block, entry.message.role, source))
            for entry in kept
            for block, source in zip(entry.message.content, sources_of(entry), strict=True)
        ]
        parts = sorted((*beside, *blocks), reverse=True)
        least = sum(count for count, _ in parts) * _LEAST_NAMED
        return [(self.tokens_of(count), name) for count, name in parts[:_NAMED_PARTS] if count >= least]

    def _ends_with(self, role: Role) -> bool:
        return bool(self._messages) and self._messages[-1].role is role

    def _add(self, entry: Entry) -> None:
        added = self.size_of_message(entry.message)
        self._bytes += added
        self._new_bytes += added
        if self._ends_with(entry.message.role):
            earlier = self._entries.pop()
            self._messages.pop()
            for projected in self._projected.values():
                del projected[len(self._messages) :]
            content = (*earlier.message.content, *entry.message.content)
            entry = Entry(
                Message(role=entry.message.role, content=content),
                entry.seq,
                (*earlier.asked, *entry.asked),
                (*sources_of(earlier), *sources_of(entry)),
            )
        self._messages.append(entry.message)
        self._entries.append(entry)
        self._bound_images(*images_of(entry.message))

    def _bound_images(self, count: int, data: int) -> None:
        """Let the oldest images leave where there are more, or larger ones, than a provider takes."""
        self._images += count
        self._image_data += data
        if self._images <= MOST_IMAGES and self._image_data <= MOST_IMAGE_DATA:
            return
        found = [images_of(message) for message in self._messages]
        self._images, self._image_data = (sum(one[at] for one in found) for at in (0, 1))
        if self._images <= MOST_IMAGES and self._image_data <= MOST_IMAGE_DATA:
            return
        oldest = [at for at, (images, _) in enumerate(found) for _ in range(images)]
        for number, at in enumerate(oldest[:-1]):
            fits = self._images <= MOST_IMAGES and self._image_data <= MOST_IMAGE_DATA
            if fits and (number >= _IMAGES_AT_ONCE or at == len(found) - 1):
                break
            self._leave_image(at)

    def _leave_image(self, at: int) -> None:
        """Put a note in the place of a message's first image."""
        old = self._messages[at]
        new = without_first_image(old)
        self._images -= 1
        self._image_data += images_of(new)[1] - images_of(old)[1]
        self._put(at, new)


def _text_of(prompt: Sequence[UserContent]) -> str:
    return " ".join(block.text for block in prompt if isinstance(block, Text))
