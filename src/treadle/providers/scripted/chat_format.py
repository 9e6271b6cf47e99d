"""The OpenAI Chat Completions API from the server's side."""

from typing import Any, assert_never

import msgspec

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
from treadle.providers.scripted.openai_errors import openai_code, openai_refusal
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.refused_requests import OPENAI_REQUESTS, request_problems
from treadle.providers.scripted.refused_schemas import OPENAI_TOOLS
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

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_STOPS = {
    ReplyStop.END_TURN: "stop",
    ReplyStop.TOOL_USE: "tool_calls",
    ReplyStop.MAX_TOKENS: "length",
    ReplyStop.REFUSAL: "content_filter",
}


class ChatFormat:
    """Checks requests and writes replies of the Chat Completions API."""

    required_headers: tuple[str, ...] = ()
    content_type = SSE_TYPE

    def problems(self, body: Json) -> list[str]:
        """Everything about a request that the real API would refuse."""
        found = base_problems(body, messages="messages")
        if found:
            return found
        tools = [tool.get("function") or {} for tool in body.get("tools", [])]
        for tool in tools:
            found += OPENAI_TOOLS.problems(tool.get("name"), tool.get("description"), tool.get("parameters"))
        found += [
            f"tools: the name {name} is there twice" for name in duplicates(str(tool.get("name")) for tool in tools)
        ]
        if "tools" in body and not tools:
            found.append("tools: must not be empty")
        if len(tools) > OPENAI_TOOLS.most:
            found.append(f"tools: at most {OPENAI_TOOLS.most} are possible")
        return found + request_problems(OPENAI_REQUESTS, body) + _message_problems(body["messages"])

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


def _message_problems(messages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    ids: list[str] = []
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        role = str(message.get("role"))
        where = f"messages[{number}]"
        if role not in _ROLES:
            found.append(f"{where}: unknown role {role!r}")
        if role in ("system", "developer") and number > 0:
            found.append(f"{where}: the system message must come first")
        if role == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id in open_calls:
                open_calls.remove(call_id)
            else:
                found.append(f"{where}: 'tool' must follow the message with the call {call_id!r} directly")
        elif open_calls:
            found.append(f"{where}: tool_call_ids without a response directly after: {', '.join(open_calls)}")
            open_calls = []
        found += [f"{where}: {problem}" for problem in _content_problems(message, role)]
        calls = message.get("tool_calls") or []
        found += [f"{where}: {problem}" for call in calls for problem in _call_problems(call)]
        if calls:
            open_calls = [str(call.get("id")) for call in calls]
            ids += open_calls
    if open_calls:
        found.append(f"tool_call_ids without a response directly after: {', '.join(open_calls)}")
    if messages[-1].get("role") not in ("user", "tool"):
        found.append("messages: the last message must be the user's or a tool's")
    return found + [f"tool call ids must be unique: {call_id}" for call_id in duplicates(ids)]


def _content_problems(message: Json, role: str) -> list[str]:
    content = message.get("content")
    if content is None and role == "assistant" and message.get("tool_calls"):
        return []
    if not content or not isinstance(content, str | list) or any(not text for text in texts(content)):
        return ["content must not be empty"]
    kinds = [part.get("type") for part in content] if isinstance(content, list) else []
    allowed = ("text", "image_url", "file") if role == "user" else ("text",)
    return [f"content of type {kind!r} is not possible here" for kind in kinds if kind not in allowed]


def _call_problems(call: Json) -> list[str]:
    function = call.get("function") or {}
    if call.get("type") != "function" or not call.get("id") or not function.get("name"):
        return ["a tool call needs the type 'function', an id and a name"]
    try:
        msgspec.json.decode(function.get("arguments", ""))
    except (msgspec.DecodeError, TypeError):
        return [f"the arguments of {function['name']} are not JSON"]
    return []


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
