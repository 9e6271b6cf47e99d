"""The Converse API of Amazon Bedrock from the server's side."""

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
from treadle.providers.event_stream import frame
from treadle.providers.scripted.player import Performance
from treadle.providers.scripted.refused_requests import BEDROCK_REQUESTS, request_problems
from treadle.providers.scripted.refused_schemas import BEDROCK_TOOLS, NOVA_TOOLS
from treadle.providers.scripted.script import Refuse
from treadle.providers.scripted.seen_requests import SeenMessage, SeenRequest, see
from treadle.providers.scripted.wire_format import Json, base_problems, duplicates, joined
from treadle.providers.wire import dump

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9()\[\]-]+(?: [A-Za-z0-9()\[\]-]+)*")
_BLOCKS = {
    "user": frozenset({"text", "image", "document", "toolResult", "cachePoint"}),
    "assistant": frozenset({"text", "reasoningContent", "toolUse", "cachePoint"}),
}
MAX_CACHE_POINTS = 4
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
    content_type = "application/vnd.amazon.eventstream"

    def problems(self, body: Json) -> list[str]:
        """Everything about a request that the real API would refuse."""
        found = base_problems(body, messages="messages")
        if found:
            return found
        for tool in _tools(body):
            schema = (tool.get("inputSchema") or {}).get("json")
            rules = NOVA_TOOLS if "nova" in body["model"] else BEDROCK_TOOLS
            found += rules.problems(tool.get("name"), tool.get("description"), schema)
        names = duplicates(str(tool.get("name")) for tool in _tools(body))
        found += [f"toolConfig: the name {name} is there twice" for name in names]
        found += _message_problems(body["messages"])
        found += _budget_problems(body)
        found += request_problems(BEDROCK_REQUESTS, body)
        if not _tools(body) and any(
            {"toolUse", "toolResult"} & set(block) for message in body["messages"] for block in message["content"]
        ):
            found.append("the toolConfig field must be defined when using toolUse and toolResult content blocks")
        if dump(body).count(b'"cachePoint"') > MAX_CACHE_POINTS:
            found.append(f"a maximum of {MAX_CACHE_POINTS} cache points may be provided")
        return found

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        tools = tuple(tool["name"] for tool in _tools(body))
        return see(body["model"], joined(body.get("system", [])), [_see(value) for value in body["messages"]], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        code = refusal.code or _BY_STATUS.get(refusal.status, "")
        return dump({"message": refusal.message, **({"code": code} if code else {})})

    def writer(self, body: Json, performance: Performance) -> "BedrockWriter":  # noqa: ARG002 - what others need
        """Begin a reply; it names neither its model nor itself."""
        return BedrockWriter()


def _tools(body: Json) -> list[dict[str, Any]]:
    return [tool.get("toolSpec") or {} for tool in (body.get("toolConfig") or {}).get("tools", [])]


def _budget_problems(body: Json) -> list[str]:
    thinking = (body.get("additionalModelRequestFields") or {}).get("thinking") or {}
    room = (body.get("inferenceConfig") or {}).get("maxTokens", 1 << 20)
    if "budget_tokens" in thinking and not 1024 <= thinking["budget_tokens"] < room:
        return ["thinking.budget_tokens: must be at least 1024 and less than maxTokens"]
    return []


def _see(message: Json) -> SeenMessage:
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    return SeenMessage(
        role=Role(message["role"]),
        text=joined(message["content"]),
        results=tuple(joined(result["content"]) for result in results),
        has_error=any(result.get("status") == "error" for result in results),
    )


def _message_problems(messages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    if messages[0].get("role") != "user" or messages[-1].get("role") != "user":
        found.append("messages: the first and the last message must be the user's")
    open_calls: list[str] = []
    ids: list[str] = []
    names: list[str] = []
    previous = ""
    for number, message in enumerate(messages):
        role, blocks = str(message.get("role")), message.get("content") or []
        where = f"messages.{number}"
        if role == previous or role not in _BLOCKS:
            found.append(f"{where}: roles must alternate between user and assistant, this one is {role!r}")
        if not blocks:
            found.append(f"{where}: content must not be empty")
        found += [f"{where}: {problem}" for block in blocks for problem in _block_problems(block, role)]
        answered = [str(block["toolResult"].get("toolUseId")) for block in blocks if "toolResult" in block]
        if sorted(answered) != sorted(open_calls):
            found.append(f"{where}: there must be one toolResult for each toolUse of the message before")
        open_calls = [str(block["toolUse"].get("toolUseId")) for block in blocks if "toolUse" in block]
        ids += open_calls
        documents = [str(block["document"].get("name")) for block in blocks if "document" in block]
        if documents and not any("text" in block for block in blocks):
            found.append(f"{where}: a document needs a text block beside it")
        names += documents
        previous = role
    found += [f"duplicate toolUseId {call_id}" for call_id in duplicates(ids)]
    return found + [f"duplicate document name {name}" for name in duplicates(names)]


def _block_problems(block: dict[str, Any], role: str) -> list[str]:
    (kind,) = block if len(block) == 1 else ("",)
    if kind not in _BLOCKS.get(role, ()):
        return [f"{sorted(block)} is no content block of {role}"]
    match kind:
        case "text" if not str(block["text"]).strip():
            return ["the text field in the ContentBlock object is blank"]
        case "toolUse" if not _ID.fullmatch(str(block[kind].get("toolUseId"))) or "input" not in block[kind]:
            return ["a toolUse needs an id of at most 64 letters, digits, _ and -, and an input"]
        case "toolResult":
            return [problem for part in block[kind]["content"] for problem in _block_problems(part, "user")]
        case "reasoningContent" if not (
            (block[kind].get("reasoningText") or {}).get("signature") or block[kind].get("redactedContent")
        ):
            return ["reasoning needs its signature"]
        case "document" if not _NAME.fullmatch(str(block[kind].get("name"))):
            return ["the name of a document has characters that are not taken"]
        case "image" | "document" if not (block[kind].get("source") or {}).get("bytes"):
            return ["a source with bytes is required"]
        case _:
            return []


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
