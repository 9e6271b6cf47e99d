"""The OpenAI Responses API from the server's side."""

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
from treadle.providers.scripted.openai_errors import openai_code, openai_refusal
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.responses_rules import RESPONSES_BOOK
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import (
    SSE_TYPE,
    Json,
    joined,
    sse,
)

_REASONS = {ReplyStop.MAX_TOKENS: "max_output_tokens", ReplyStop.REFUSAL: "content_filter"}


class ResponsesFormat:
    """Checks requests and writes replies of the Responses API."""

    required_headers: tuple[str, ...] = ()
    book = RESPONSES_BOOK
    content_type = SSE_TYPE

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        tools = tuple(tool["name"] for tool in body.get("tools", []) if "name" in tool)
        return see(body["model"], body.get("instructions") or "", [_see(item) for item in body["input"]], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        return openai_refusal(refusal)

    def writer(self, body: Json, performance: Performance) -> "ResponsesWriter":
        """Begin a reply."""
        return ResponsesWriter(body["model"], performance)


def _see(item: Json) -> SeenMessage:
    match item.get("type", "message"):
        case "function_call_output":
            return SeenMessage(role=Role.USER, results=(joined(item["output"]),))
        case "message":
            role = Role.ASSISTANT if item["role"] == "assistant" else Role.USER
            return SeenMessage(role=role, text=joined(item["content"]))
        case _:
            return SeenMessage(role=Role.ASSISTANT)


class ResponsesWriter:
    """Writes one reply."""

    def __init__(self, model: str, performance: Performance) -> None:
        self._response = {"id": f"resp_{performance.number}", "object": "response", "model": model}
        self._number = 0
        self._index = 0
        self._kind = ""
        self._item: dict[str, Any] = {}
        self._said = ""

    def begin(self) -> bytes:
        """The start of the response."""
        response = {**self._response, "status": "in_progress", "output": []}
        return self._event("response.created", {"response": response}) + self._event(
            "response.in_progress", {"response": response}
        )

    def write(self, event: StreamEvent) -> bytes:
        """The bytes of one event."""
        match event:
            case StreamText():
                start = self._switch("message", {"role": "assistant", "content": []})
                return start + self._delta("response.output_text.delta", event.text)
            case StreamThinking():
                start = self._switch("reasoning", {"summary": []})
                return start + self._delta("response.reasoning_summary_text.delta", event.text)
            case StreamThinkingDone():
                start = self._switch("reasoning", {"summary": []})
                self._item["encrypted_content"] = event.redacted or event.signature
                return start + self._close()
            case StreamCallStart():
                call = {"call_id": event.wire_id, "name": event.name, "arguments": ""}
                return self._close() + self._switch("function_call", call)
            case StreamCallArguments():
                return self._delta("response.function_call_arguments.delta", event.text)
            case StreamCallDone():
                return self._close()
            case StreamStop():
                return self._close() + self._end(event)
            case StreamUsage():
                return b""
            case StreamFailure():
                error = {"code": openai_code(event.error.kind), "message": event.error.message}
                return self._event(
                    "response.failed", {"response": {**self._response, "status": "failed", "error": error}}
                )
            case _:
                assert_never(event)

    def _event(self, kind: str, value: Json) -> bytes:
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number - 1, **value}, name=kind)

    def _switch(self, kind: str, item: dict[str, Any]) -> bytes:
        """Go on in the open item if it is of this kind, else begin a new one."""
        if self._kind == kind:
            return b""
        closed = self._close()
        self._kind, self._said = kind, ""
        self._item = {"id": f"{kind}_{self._response['id']}_{self._index}", "type": kind, **item}
        return closed + self._event("response.output_item.added", {"output_index": self._index, "item": self._item})

    def _delta(self, kind: str, text: str) -> bytes:
        self._said += text
        return self._event(kind, {"output_index": self._index, "item_id": self._item["id"], "delta": text})

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        whole_items: dict[str, dict[str, Any]] = {
            "message": {"content": [{"type": "output_text", "text": self._said, "annotations": []}]},
            "reasoning": {"summary": [{"type": "summary_text", "text": self._said}] if self._said else []},
            "function_call": {"arguments": self._said},
        }
        whole = whole_items[self._kind]
        self._kind = ""
        self._index += 1
        value = {"output_index": self._index - 1, "item": {**self._item, **whole, "status": "completed"}}
        return self._event("response.output_item.done", value)

    def _end(self, stop: StreamStop) -> bytes:
        reason = _REASONS.get(stop.reason)
        status = "incomplete" if reason else "completed"
        details = {"reason": reason} if reason else None
        response = {**self._response, "status": status, "incomplete_details": details, "usage": _usage(stop.usage)}
        return self._event(f"response.{status}", {"response": response})


def _usage(usage: Usage) -> dict[str, Any]:
    """Tokens written to a cache are plain input here."""
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": given + usage.output_tokens,
    }
