"""What is said to an embedded model, and how its replies are read: chat completions with constrained replies."""

from collections.abc import Iterator
from typing import Any, assert_never

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    text_of,
)
from treadle.protocol.models import ModelRequest, ReplyStop, StreamEvent, StreamStop, StreamText
from treadle.protocol.usage import Usage
from treadle.providers.constrained import ConstrainedReply, reply_schema, tool_text
from treadle.providers.endpoint import Endpoint
from treadle.providers.openai_chat import ChatReader
from treadle.providers.sse import SseEvent
from treadle.providers.wire import SSE, HttpCall, dump

MAX_TOKENS = 1024
"""The limit of a reply where none is asked for: a small model may not find an end."""


class EmbeddedApi:
    """Writes requests to the server of llama.cpp and reads its replies."""

    framing = SSE

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        system = [request.system.strip(), tool_text(request.tools) if request.tools else ""]
        body: dict[str, Any] = {
            "messages": _messages("\n\n".join(filter(None, system)), request),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "temperature": 0.2,
            "repeat_penalty": 1.15,
            "cache_prompt": True,
        }
        if request.tools:
            schema = {"name": "reply", "schema": reply_schema(request.tools)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        headers = self._endpoint.key_headers("authorization")
        return HttpCall(url=self._endpoint.url("/chat/completions"), headers=headers, body=dump(body))

    def reader(self) -> "EmbeddedReader":
        """Begin to read a reply."""
        return EmbeddedReader(self._endpoint)


class EmbeddedReader:
    """Reads one reply: JSON that is an answer or a call, or plain text."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._chat = ChatReader(endpoint)
        self._reply = ConstrainedReply()
        self._plain: bool | None = None

    @property
    def usage(self) -> Usage:
        """What the reply took; a model on this machine costs nothing."""
        return self._chat.usage

    def read(self, event: SseEvent) -> Iterator[StreamEvent]:
        """Take the next event."""
        yield from self._items(self._chat.read(event))

    def end(self) -> Iterator[StreamEvent]:
        """The body ended."""
        yield from self._items(self._chat.end())

    def _items(self, items: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for item in items:
            if isinstance(item, StreamText):
                yield from self._text(item)
            elif isinstance(item, StreamStop):
                yield from self._stop(item)
            else:
                yield item

    def _text(self, item: StreamText) -> Iterator[StreamEvent]:
        if self._plain is None and item.text.strip():
            self._plain = not item.text.lstrip().startswith("{")
        yield from (iter((item,)) if self._plain else self._reply.feed(item.text))

    def _stop(self, item: StreamStop) -> Iterator[StreamEvent]:
        rest = self._reply.rest()
        if rest.strip():
            yield StreamText(text=rest)
        called = self._reply.called and item.reason is ReplyStop.END_TURN
        yield StreamStop(reason=ReplyStop.TOOL_USE if called else item.reason, usage=item.usage)


def _messages(system: str, request: ModelRequest) -> list[dict[str, str]]:
    """The conversation as text alone, neighbours of one role together: such models have no other form."""
    said = [{"role": "system", "content": system}] if system else []
    for message in request.messages:
        text = "\n".join(filter(None, (_text_of(block, constrained=bool(request.tools)) for block in message.content)))
        if said and said[-1]["role"] == message.role.value:
            said[-1]["content"] += "\n" + text
        elif text:
            said.append({"role": message.role.value, "content": text})
    return said


def _text_of(block: ContentBlock, *, constrained: bool) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            call = {"tool": block.name, "arguments": block.arguments}
            return dump(call).decode() if constrained else block.source
        case ToolResult():
            return f"Result of {block.name}: {text_of(block.content) or '(no output)'}"
        case Image() | Document():
            return f"({block.media_type}, which this model cannot read)"
        case Thinking() | RedactedThinking():
            return ""
        case _:
            assert_never(block)
