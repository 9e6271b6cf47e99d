"""The Anthropic Messages API from the server's side."""

import re
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
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.refused_requests import ANTHROPIC_REQUESTS, request_problems
from treadle.providers.scripted.refused_schemas import ANTHROPIC_TOOLS
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import (
    SSE_TYPE,
    Json,
    base_problems,
    duplicates,
    joined,
    sse,
    texts,
)
from treadle.providers.wire import dump

MAX_MARKERS = 4
_ID = re.compile(r"[A-Za-z0-9_-]+")
_BLOCKS = {
    "user": frozenset({"text", "image", "document", "tool_result"}),
    "assistant": frozenset(
        {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result"}
    ),
}
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
    content_type = SSE_TYPE

    def problems(self, body: Json) -> list[str]:
        """Everything about a request that the real API would refuse."""
        found = base_problems(body, messages="messages")
        room = body.get("max_tokens")
        if not isinstance(room, int) or room < 1:
            found.append("max_tokens: a positive number is required")
            room = 1
        budget = (body.get("thinking") or {}).get("budget_tokens", 1024)
        if "thinking" in body and not 1024 <= budget < room:
            found.append("thinking.budget_tokens: must be at least 1024 and less than max_tokens")
        if found:
            return found
        if any(not text.strip() for text in texts(body.get("system", []))):
            found.append("system: text content blocks must be non-empty")
        found += request_problems(ANTHROPIC_REQUESTS, body)
        found += _tool_problems(body)
        found += _message_problems(body["messages"])
        if dump(body).count(b'"cache_control"') > MAX_MARKERS:
            found.append(f"a maximum of {MAX_MARKERS} blocks with cache_control may be provided")
        return found

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


def _tool_problems(body: Json) -> list[str]:
    found: list[str] = []
    tools = body.get("tools", [])
    for tool in tools:
        if tool.get("type", "custom") == "custom":
            found += ANTHROPIC_TOOLS.problems(tool.get("name"), tool.get("description"), tool.get("input_schema"))
    found += [f"tools: the name {name} is there twice" for name in duplicates(str(tool.get("name")) for tool in tools)]
    used = any(
        block.get("type") in ("tool_use", "tool_result") for value in body["messages"] for block in _blocks(value)
    )
    if used and not tools:
        found.append("requests which include tool_use or tool_result blocks must define tools")
    return found


def _blocks(message: Json) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _message_problems(messages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    if messages[0].get("role") != "user":
        found.append("messages.0: the first message must be the user's")
    if messages[-1].get("role") != "user":
        found.append("messages: the last message must be the user's")
    ids: list[str] = []
    open_calls: list[str] = []
    previous = ""
    for number, message in enumerate(messages):
        role = str(message.get("role"))
        blocks = _blocks(message)
        where = f"messages.{number}"
        if role == previous or role not in _BLOCKS:
            found.append(f"{where}: roles must alternate between user and assistant, this one is {role!r}")
        if not blocks:
            found.append(f"{where}: content must not be empty")
        for place, block in enumerate(blocks):
            found += [f"{where}.content.{place}: {problem}" for problem in _block_problems(block, role)]
        found += [f"{where}: {problem}" for problem in _result_problems(blocks, open_calls)]
        open_calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        ids += open_calls
        previous = role
    found += [f"tool_use ids must be unique: {call_id}" for call_id in duplicates(ids)]
    if open_calls:
        found.append(f"tool_use ids without tool_result directly after: {', '.join(open_calls)}")
    return found


def _result_problems(blocks: list[dict[str, Any]], open_calls: list[str]) -> list[str]:
    """Results must come first and answer exactly the calls of the message before."""
    kinds = [block.get("type") == "tool_result" for block in blocks]
    answered = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    found = [f"tool_use id without tool_result directly after: {call}" for call in open_calls if call not in answered]
    found += [
        f"tool_result for no tool_use in the message before: {call}" for call in answered if call not in open_calls
    ]
    found += [f"two tool_results for {call}" for call in duplicates(answered)]
    if kinds != sorted(kinds, reverse=True):
        found.append("tool_result blocks must come first")
    return found


def _block_problems(block: dict[str, Any], role: str) -> list[str]:
    kind = str(block.get("type"))
    if kind not in _BLOCKS.get(role, ()):
        return [f"{kind!r} is not possible in a message of {role}"]
    match kind:
        case "text" if not str(block.get("text", "")).strip():
            return ["text content blocks must be non-empty"]
        case "tool_use" if not _ID.fullmatch(str(block.get("id"))) or not isinstance(block.get("input"), dict):
            return ["a tool_use needs an id of letters, digits, _ and - and an object as input"]
        case "tool_result" if any(not text.strip() for text in texts(block.get("content", []))):
            return ["text content blocks must be non-empty"]
        case "thinking" if not block.get("signature"):
            return ["thinking needs its signature"]
        case "image" | "document" if not (block.get("source") or {}).get("data"):
            return ["a source with data is required"]
        case _:
            return []


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
