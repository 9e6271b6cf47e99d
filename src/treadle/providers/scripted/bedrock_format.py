"""The Converse API of Amazon Bedrock from the server's side."""

from typing import assert_never

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
from treadle.providers.event_stream import frame
from treadle.providers.scripted.bedrock_rules import BEDROCK_BOOK, converse_tools
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import Json, joined
from treadle.providers.wire import dump

_BY_STATUS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
_BY_KIND = {
    ErrorKind.RATE_LIMIT: "throttlingException",
    ErrorKind.OVERLOADED: "serviceUnavailableException",
    ErrorKind.BAD_REQUEST: "validationException",
    ErrorKind.CONTEXT_TOO_LONG: "validationException",
    ErrorKind.TIMEOUT: "modelTimeoutException",
    ErrorKind.SERVER: "internalServerException",
}


class BedrockFormat:
    """Checks requests and writes replies of the Converse API; its model and its streaming are in the path."""

    required_headers = ("authorization",)
    book = BEDROCK_BOOK
    content_type = "application/vnd.amazon.eventstream"

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        tools = tuple(tool["name"] for tool in converse_tools(body))
        return see(body["model"], joined(body.get("system", [])), [_see(value) for value in body["messages"]], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        code = refusal.code or _BY_STATUS.get(refusal.status, "")
        return dump({"message": refusal.message, **({"code": code} if code else {})})

    def writer(self, body: Json, performance: Performance) -> "BedrockWriter":  # noqa: ARG002 - what others need
        """Begin a reply; it names neither its model nor itself."""
        return BedrockWriter()


def _see(message: Json) -> SeenMessage:
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    return SeenMessage(
        role=Role(message["role"]),
        text=joined(message["content"]),
        results=tuple(joined(result["content"]) for result in results),
        has_error=any(result.get("status") == "error" for result in results),
    )


class BedrockWriter:
    """Writes one reply."""

    def __init__(self) -> None:
        self._index = 0
        self._open = ""

    def begin(self) -> bytes:
        """The start of the message."""
        return _event("messageStart", {"role": "assistant"})

    def write(self, event: StreamEvent) -> bytes:
        """The bytes of one event."""
        match event:
            case StreamText():
                return self._switch("text") + self._delta({"text": event.text})
            case StreamThinking():
                return self._switch("thinking") + self._delta({"reasoningContent": {"text": event.text}})
            case StreamThinkingDone():
                return self._end_thinking(event)
            case StreamCallStart():
                call = {"toolUse": {"toolUseId": event.wire_id, "name": event.name}}
                closed = self._switch("call")
                return closed + _event("contentBlockStart", {"contentBlockIndex": self._index, "start": call})
            case StreamCallArguments():
                return self._delta({"toolUse": {"input": event.text}})
            case StreamCallDone():
                return self._close()
            case StreamStop():
                stop = _event("messageStop", {"stopReason": event.reason.value})
                return self._close() + stop + _event("metadata", {"usage": _usage(event.usage)})
            case StreamUsage():
                return b""
            case StreamFailure():
                return _exception(event)
            case _:
                assert_never(event)

    def _end_thinking(self, event: StreamThinkingDone) -> bytes:
        if event.redacted:
            start = self._switch("thinking")
            return start + self._delta({"reasoningContent": {"redactedContent": event.redacted}}) + self._close()
        return self._delta({"reasoningContent": {"signature": event.signature}}) + self._close()

    def _switch(self, kind: str) -> bytes:
        """Go on in the open block if it is of this kind, else end it; a call always begins anew."""
        if kind != "call" and self._open == kind:
            return b""
        closed = self._close()
        self._open = kind
        return closed

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        self._index += 1
        return _event("contentBlockStop", {"contentBlockIndex": self._index - 1})

    def _delta(self, delta: Json) -> bytes:
        return _event("contentBlockDelta", {"contentBlockIndex": self._index, "delta": delta})


def _event(name: str, value: Json) -> bytes:
    return frame(dump(value), message_type="event", event_type=name, content_type="application/json")


def _exception(failed: StreamFailure) -> bytes:
    """An exception inside the stream; a conversation that is too long has no type of its own."""
    text = failed.error.message
    if failed.error.kind is ErrorKind.CONTEXT_TOO_LONG:
        text = f"Input is too long for requested model: {text}"
    kind = _BY_KIND.get(failed.error.kind, "internalServerException")
    return frame(dump({"message": text}), message_type="exception", exception_type=kind)


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
        "totalTokens": usage.context_tokens,
    }
