"""The Anthropic Messages API from the server's side."""

from typing import Any, assert_never

from treadle.protocol.messages import Role
from treadle.protocol.models import (
    ErrorKind,
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
from treadle.providers.scripted.anthropic_rules import ANTHROPIC_BOOK
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import (
    SSE_TYPE,
    Json,
    joined,
    sse,
)
from treadle.providers.wire import dump

_BY_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_BY_KIND = {
    ErrorKind.AUTHENTICATION: "authentication_error",
    ErrorKind.PERMISSION: "permission_error",
    ErrorKind.BALANCE: "billing_error",
    ErrorKind.RATE_LIMIT: "rate_limit_error",
    ErrorKind.OVERLOADED: "overloaded_error",
    ErrorKind.CONTEXT_TOO_LONG: "request_too_large",
    ErrorKind.BAD_REQUEST: "invalid_request_error",
    ErrorKind.NOT_FOUND: "not_found_error",
    ErrorKind.TIMEOUT: "timeout_error",
}


class AnthropicFormat:
    """Checks requests and writes replies of the Messages API."""

    required_headers = ("anthropic-version",)
    book = ANTHROPIC_BOOK
    content_type = SSE_TYPE

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        tools = tuple(tool["name"] for tool in body.get("tools", []))
        return see(body["model"], joined(body.get("system", [])), [_see(value) for value in body["messages"]], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        code = refusal.code or _BY_STATUS.get(refusal.status, "api_error")
        return dump({"type": "error", "error": {"type": code, "message": refusal.message}})

    def writer(self, body: Json, performance: Performance) -> "AnthropicWriter":
        """Begin a reply."""
        return AnthropicWriter(body["model"], performance)


def _see(message: Json) -> SeenMessage:
    content = message["content"]
    blocks = [] if isinstance(content, str) else content
    results = [block for block in blocks if block["type"] == "tool_result"]
    return SeenMessage(
        role=Role(message["role"]),
        text=joined(content),
        results=tuple(joined(result.get("content", "")) for result in results),
        has_error=any(result.get("is_error", False) for result in results),
    )


class AnthropicWriter:
    """Writes one reply."""

    def __init__(self, model: str, performance: Performance) -> None:
        self._model = model
        self._id = f"msg_{performance.number}"
        self._usage = performance.usage
        self._index = 0
        self._open = ""

    def begin(self) -> bytes:
        """The start of the message, with what the input cost."""
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "usage": {**_usage(self._usage), "output_tokens": 1},
        }
        start = sse({"type": "message_start", "message": message}, name="message_start")
        return start + sse({"type": "ping"}, name="ping")

    def write(self, event: StreamEvent) -> bytes:  # noqa: C901 - one line for each event
        """The bytes of one event."""
        match event:
            case StreamText():
                return self._switch("text", {"type": "text", "text": ""}) + self._delta(
                    "text_delta", "text", event.text
                )
            case StreamThinking():
                start = self._switch("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                return start + self._delta("thinking_delta", "thinking", event.text)
            case StreamThinkingDone(redacted=""):
                return self._delta("signature_delta", "signature", event.signature) + self._close()
            case StreamThinkingDone():
                return self._switch("", {"type": "redacted_thinking", "data": event.redacted}) + self._close()
            case StreamCallStart():
                return self._switch("", {"type": "tool_use", "id": event.wire_id, "name": event.name, "input": {}})
            case StreamCallArguments():
                return self._delta("input_json_delta", "partial_json", event.text)
            case StreamCallDone():
                return self._close()
            case StreamStop():
                return self._close() + self._end(event)
            case StreamUsage():
                return b""
            case StreamFailure():
                error = {"type": _BY_KIND.get(event.error.kind, "api_error"), "message": event.error.message}
                return sse({"type": "error", "error": error}, name="error")
            case _:
                assert_never(event)

    def _switch(self, kind: str, block: Json) -> bytes:
        """Go on in the open block if it is of this kind, else begin a new one."""
        if kind and self._open == kind:
            return b""
        closed = self._close()
        self._open = kind or "other"
        value = {"type": "content_block_start", "index": self._index, "content_block": block}
        return closed + sse(value, name="content_block_start")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        self._index += 1
        return sse({"type": "content_block_stop", "index": self._index - 1}, name="content_block_stop")

    def _delta(self, kind: str, field: str, text: str) -> bytes:
        value = {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, field: text}}
        return sse(value, name="content_block_delta")

    def _end(self, stop: StreamStop) -> bytes:
        delta = {"stop_reason": stop.reason.value, "stop_sequence": None}
        end = sse({"type": "message_delta", "delta": delta, "usage": _usage(stop.usage)}, name="message_delta")
        return end + sse({"type": "message_stop"}, name="message_stop")


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
