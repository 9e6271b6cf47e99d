"""The OpenAI Chat Completions API from the server's side."""

from typing import Any, assert_never

from treadle.protocol.messages import Role
from treadle.protocol.models import (
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.chat_rules import CHAT_BOOK
from treadle.providers.scripted.openai_errors import openai_code, openai_refusal
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import (
    SSE_TYPE,
    Json,
    joined,
    sse,
)

_STOPS = {
    ReplyStop.END_TURN: "stop",
    ReplyStop.TOOL_USE: "tool_calls",
    ReplyStop.MAX_TOKENS: "length",
    ReplyStop.REFUSAL: "content_filter",
}


class ChatFormat:
    """Checks requests and writes replies of the Chat Completions API."""

    required_headers: tuple[str, ...] = ()
    book = CHAT_BOOK
    content_type = SSE_TYPE

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        messages = [message for message in body["messages"] if message["role"] not in ("system", "developer")]
        system = "\n".join(joined(value["content"]) for value in body["messages"] if value not in messages)
        tools = tuple(tool["function"]["name"] for tool in body.get("tools", []))
        return see(body["model"], system, [_see(message) for message in messages], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        return openai_refusal(refusal)

    def writer(self, body: Json, performance: Performance) -> "ChatWriter":
        """Begin a reply."""
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return ChatWriter(body["model"], performance, wants_usage=wants_usage)


def _see(message: Json) -> SeenMessage:
    text = joined(message.get("content"))
    if message["role"] == "tool":
        return SeenMessage(role=Role.USER, results=(text,))
    return SeenMessage(role=Role(message["role"]), text=text)


class ChatWriter:
    """Writes one reply."""

    def __init__(self, model: str, performance: Performance, *, wants_usage: bool) -> None:
        self._head = {"id": f"chatcmpl-{performance.number}", "object": "chat.completion.chunk", "model": model}
        self._wants_usage = wants_usage

    def begin(self) -> bytes:
        """The first chunk, which only names the role."""
        return self._delta({"role": "assistant", "content": ""})

    def write(self, event: StreamEvent) -> bytes:
        """The bytes of one event."""
        match event:
            case StreamText():
                return self._delta({"content": event.text})
            case StreamThinking():
                return self._delta({"reasoning_content": event.text})
            case StreamCallStart():
                function = {"name": event.name, "arguments": ""}
                return self._call({"index": event.index, "id": event.wire_id, "type": "function", "function": function})
            case StreamCallArguments():
                return self._call({"index": event.index, "function": {"arguments": event.text}})
            case StreamThinkingDone() | StreamCallDone():
                return b""
            case StreamStop():
                return self._end(event)
            case StreamUsage():
                return b""
            case StreamFailure():
                code = openai_code(event.error.kind)
                return sse({"error": {"message": event.error.message, "type": code, "code": code}})
            case _:
                assert_never(event)

    def _delta(self, delta: Json, finish: str | None = None) -> bytes:
        return sse({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _call(self, call: Json) -> bytes:
        return self._delta({"tool_calls": [call]})

    def _end(self, stop: StreamStop) -> bytes:
        end = self._delta({}, _STOPS[stop.reason])
        if self._wants_usage:
            end += sse({**self._head, "choices": [], "usage": _usage(stop.usage)})
        return end + b"data: [DONE]\n\n"


def _usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
