"""The Anthropic Messages API: its requests."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import quote

from msgspec import Struct

from treadle.protocol.limits import USUAL_REPLY
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
)
from treadle.protocol.models import ModelRequest
from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec
from treadle.providers.endpoint import Endpoint
from treadle.providers.plain_schemas import schema_as
from treadle.providers.provider_rows import Wire
from treadle.providers.web_search import ANTHROPIC_TOOL, kept_blocks
from treadle.providers.wire import (
    SSE,
    HttpCall,
    MessageCache,
    ToolCache,
    dump,
    effort,
    origin,
    own_data,
    wire_call_name,
)

LONG = ":1m"
"""What a model's name ends with where its longer window is asked for."""

LONG_BETA = "context-1m-2025-08-07"
API_VERSION = "2023-06-01"
MIN_THINKING = 1024
MARKER = b',"cache_control":{"type":"ephemeral"}}'
MARKED_MESSAGES = 2
"""How many of the last user messages carry a cache marker."""

_UNSETTLED = 8
"""Messages at the end that are written anew for each request: they may be merged or marked."""

if TYPE_CHECKING:
    from treadle.providers.anthropic_reader import AnthropicReader

_VERSION = regex(r"claude-[a-z]+-(\d+)(?:[-.](\d{1,2})(?!\d))?")
_CALL_ID = regex(r"[A-Za-z0-9_-]+")


_PIECE = 64 * 1024
"""Bytes above which a text is large."""


class _Encoded(Struct, frozen=True):
    """A message as JSON (empty without content), and its blocks: the API wants results before anything else."""

    role: Role
    whole: bytes
    results: bytes
    rest: bytes
    calls_unexplained: bool


def _encoded(role: Role, results: list[bytes], rest: list[bytes], *, calls_unexplained: bool) -> _Encoded:
    blocks = b",".join((*results, *rest))
    whole = b'{"role":"%s","content":[%s]}' % (role.value.encode(), blocks) if blocks else b""
    return _Encoded(role, whole, b",".join(results), b",".join(rest), calls_unexplained)


class _Begun(Struct, frozen=True):
    """The beginning of a conversation and its messages as JSON, kept so that a long one is not put together anew."""

    messages: tuple[Message, ...]
    texts: list[bytes]


class AnthropicMessages:
    """Writes requests and reads replies of the Messages API."""

    framing = SSE

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(Wire.ANTHROPIC_MESSAGES.value, endpoint)
        self._messages = MessageCache(self._encode)
        self._begun = _Begun((), [])
        self._tools = ToolCache(_tools)

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request; `max_tokens` is required here, so it has a default."""
        self._begun = self._go_on(request.messages)
        encoded = self._messages.encode(request.messages[len(self._begun.messages) :])
        parts = [*self._head(request.model), b',"stream":true', self._budget(request, encoded)]
        if request.system.strip():
            parts += [b',"system":[', _mark(dump({"type": "text", "text": request.system})), b"]"]
        searches = request.web_search and self._endpoint.quirks.web_search
        if tools := self._tools.encode(request.tools, ANTHROPIC_TOOL if searches else None):
            parts += [b',"tools":', tools]
        parts.append(b',"messages":[')
        headers = {"anthropic-version": API_VERSION, **self._endpoint.key_headers("x-api-key")}
        if _is_long(request.model):
            headers["anthropic-beta"] = LONG_BETA
        for number, text in enumerate((*self._begun.texts, *_join(encoded))):
            parts += [b",", text] if number else [text]
        parts.append(b"]}")
        return HttpCall(url=self._url(request.model), headers=headers, body=b"".join(parts))

    def _head(self, model: str) -> tuple[bytes, ...]:
        """The beginning of the body: the model, or what Vertex has in its place."""
        if self._endpoint.quirks.model_in_path:
            return (b'{"anthropic_version":"vertex-2023-10-16"',)
        return b'{"model":', dump(_name_of(model))

    def _url(self, model: str) -> str:
        if self._endpoint.quirks.model_in_path:
            return self._endpoint.url(f"/models/{quote(_name_of(model))}:streamRawPredict")
        return self._endpoint.url("/messages", version="/v1")

    def _go_on(self, messages: tuple[Message, ...]) -> "_Begun":
        """Write down for good what no later request can change: all but the last messages, where markers move."""
        begun, end = self._begun, len(messages) - _UNSETTLED
        known = len(begun.messages)
        if known > max(end, 0) or messages[:known] != begun.messages:
            begun, known = _Begun((), []), 0
        while known < end and not self._separate(messages[end], messages[end - 1]):
            end -= 1
        added = self._messages.encode(messages[known:end]) if known < end else []
        if (
            not added
            or not added[0].whole
            or any(first.role is second.role or not second.whole for first, second in pairwise(added))
        ):
            return begun
        for message in added:
            begun.texts.append(message.whole)
            _pack(begun.texts)
        return _Begun(messages[:end], begun.texts)

    def _separate(self, after: Message, before: Message) -> bool:
        """Whether what follows stays a message of its own: it is written, and of the other role."""
        return after.role is not before.role and bool(self._messages.encode((after,))[0].whole)

    def reader(self) -> "AnthropicReader":
        """Begin to read a reply; the request was written without what does that."""
        from treadle.providers.anthropic_reader import AnthropicReader

        return AnthropicReader(self._endpoint)

    def _budget(self, request: ModelRequest, encoded: list[_Encoded]) -> bytes:
        """Limits of the reply, `max_tokens` with thinking in it.

        Models that take a budget refuse to go on with thinking after calls whose message does not begin with signed
        thinking (another provider made them), so it stays off there.
        """
        budget = max(request.thinking_budget or 0, 0)
        room = request.max_tokens or USUAL_REPLY + budget
        text = b',"max_tokens":%d' % room
        if budget and thinks_adaptively(request.model):
            thinking = {"type": "adaptive", "display": "summarized"}
            return text + b',"thinking":%s,"output_config":%s' % (dump(thinking), dump({"effort": effort(budget)}))
        budget = min(max(budget, MIN_THINKING), room - 1) if budget else 0
        replies = (message for message in reversed(encoded) if message.role is Role.ASSISTANT and message.whole)
        last = next(replies, None)
        if budget < MIN_THINKING or (last is not None and last.calls_unexplained):
            return text
        return text + b',"thinking":{"type":"enabled","budget_tokens":%d}' % budget

    def _encode(self, message: Message) -> _Encoded:
        sent = [(block, value) for block in message.content for value in self._values(block)]
        calls = any(isinstance(block, ToolUse) for block, _ in sent)
        explained = bool(sent) and sent[0][1]["type"] in ("thinking", "redacted_thinking")
        return _encoded(
            message.role,
            [dump(value) for _, value in sent if value["type"] == "tool_result"],
            [dump(value) for _, value in sent if value["type"] != "tool_result"],
            calls_unexplained=calls and not explained,
        )

    def _values(self, block: ContentBlock) -> list[dict[str, Any]]:
        """Write a block: as what it came as where it is a search, else as one value or none."""
        if searched := kept_blocks(block, self._origin):
            return searched
        if isinstance(block, ToolResult):
            return _result(block)
        value = self._block(block)
        return [] if value is None else [value]

    def _block(self, block: ContentBlock) -> dict[str, Any] | None:
        """Write a block; None leaves it out: empty text, and reasoning that another provider signed."""
        match block:
            case Text() | Image() | Document():
                return _content(block)
            case Thinking():
                if own_data(block.wire, self._origin) is None or not block.signature:
                    return None
                return {"type": "thinking", "thinking": block.text, "signature": block.signature}
            case RedactedThinking():
                if own_data(block.wire, self._origin) is None:
                    return None
                return {"type": "redacted_thinking", "data": block.data}
            case ToolUse():
                call_id = _call_id(block.wire_id, block.id)
                return {"type": "tool_use", "id": call_id, "name": wire_call_name(block.name), "input": block.arguments}
            case ToolResult():
                return None
            case _:
                assert_never(block)


def _result(block: ToolResult) -> list[dict[str, Any]]:
    """Write a result. One of a failed call has to have words and nothing else, so images come after it."""
    content = [value for value in map(_content, block.content) if value is not None]
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _call_id(block.wire_id, block.call_id)}
    if not block.is_error:
        return [{**result, "content": content} if content else result]
    words = [value for value in content if value["type"] == "text"]
    attached = [value for value in content if value["type"] != "text"]
    if not words:
        words = [{"type": "text", "text": "(attached below)" if attached else "(no output)"}]
    if attached:
        attached.insert(0, {"type": "text", "text": f"Attached to the result of {block.name}:"})
    return [{**result, "content": words, "is_error": True}, *attached]


def _tools(tools: Sequence[ToolSpec], search: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    declared: list[Mapping[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": schema_as("anthropic", tool.parameters)}
        for tool in tools
    ]
    return [*declared, search] if search else declared


def _is_long(model: str) -> bool:
    return model.startswith("claude-") and model.endswith(LONG)


def _name_of(model: str) -> str:
    """Give the name that the API knows: how long its window is to be stands in a header."""
    return model.removesuffix(LONG) if _is_long(model) else model


def thinks_adaptively(model: str) -> bool:
    """Whether a model decides by itself how much to think; those before version 4.6 take a budget instead."""
    found = _VERSION.search(model)
    return "claude-mythos" in model or (found is not None and (int(found[1]), int(found[2] or 0)) >= (4, 6))


def _content(block: ResultContent) -> dict[str, Any] | None:
    match block:
        case Text():
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case Image():
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "image", "source": source}
        case Document():
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            titled = {"title": block.title} if block.title else {}
            return {"type": "document", "source": source, **titled}
        case _:
            assert_never(block)


def _call_id(wire_id: str, own_id: str) -> str:
    """The provider's id where this API takes it, else ours with what it does not take replaced."""
    if _CALL_ID.fullmatch(wire_id):
        return wire_id
    return re.sub(r"[^A-Za-z0-9_-]", "_", own_id)


def _join(encoded: list[_Encoded]) -> list[bytes]:
    """Merge neighbours of one role and mark the last user messages for the prompt cache."""
    merged: list[_Encoded] = []
    for message in encoded:
        if merged and message.role is merged[-1].role and message.whole:
            merged[-1] = _merge(merged[-1], message)
        elif message.whole:
            merged.append(message)
    parts = [message.whole for message in merged]
    users = (index for index in range(len(merged) - 1, -1, -1) if merged[index].role is Role.USER)
    for index in islice(users, MARKED_MESSAGES):
        parts[index] = _mark(parts[index].removesuffix(b"]}")) + b"]}"
    return parts


def _pack(texts: list[bytes]) -> None:
    """Join the last texts into larger ones: to touch thousands of small ones for each request takes long.

    A text is copied a few times at most until it is part of a large one.
    """
    while len(texts) > 1 and len(texts[-2]) < min(_PIECE, 2 * len(texts[-1])):
        last = texts.pop()
        texts[-1] = b"%s,%s" % (texts[-1], last)


def _merge(first: _Encoded, second: _Encoded) -> _Encoded:
    results = [part.results for part in (first, second) if part.results]
    rest = [part.rest for part in (first, second) if part.rest]
    return _encoded(first.role, results, rest, calls_unexplained=first.calls_unexplained or second.calls_unexplained)


def _mark(blocks: bytes) -> bytes:
    """Put a cache marker on the last of some encoded blocks."""
    return blocks[:-1] + MARKER
