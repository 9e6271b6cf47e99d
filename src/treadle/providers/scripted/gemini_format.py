"""The Gemini API from the server's side."""

from typing import Any, assert_never

import msgspec

from treadle.protocol.messages import Role
from treadle.protocol.models import (
    ErrorKind,
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
from treadle.providers.scripted.gemini_rules import GEMINI_BOOK, functions_of
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

_STOPS = {ReplyStop.MAX_TOKENS: "MAX_TOKENS", ReplyStop.REFUSAL: "SAFETY"}
_BY_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_BY_KIND = {
    ErrorKind.AUTHENTICATION: 401,
    ErrorKind.PERMISSION: 403,
    ErrorKind.RATE_LIMIT: 429,
    ErrorKind.OVERLOADED: 503,
    ErrorKind.BAD_REQUEST: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONTEXT_TOO_LONG: 413,
    ErrorKind.TIMEOUT: 504,
}


class GeminiFormat:
    """Checks requests and writes replies of the Gemini API; its model and its streaming are in the path."""

    required_headers: tuple[str, ...] = ()
    book = GEMINI_BOOK
    content_type = SSE_TYPE

    def see(self, body: Json) -> SeenRequest:
        """Sum up a request that has no problems."""
        system = joined((body.get("systemInstruction") or {}).get("parts"))
        tools = tuple(function["name"] for function in functions_of(body))
        return see(body["model"], system, [_see(content) for content in body["contents"]], tools)

    def refusal(self, refusal: Refuse) -> bytes:
        """An error body in the provider's form."""
        return dump(_error(refusal.status, refusal.message, refusal.code))

    def writer(self, body: Json, performance: Performance) -> "GeminiWriter":
        """Begin a reply."""
        return GeminiWriter(body["model"], performance)


def _error(status: int, message: str, code: str = "") -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": code or _BY_STATUS.get(status, "UNKNOWN")}}


def _see(content: Json) -> SeenMessage:
    responses = [part["functionResponse"]["response"] for part in content["parts"] if "functionResponse" in part]
    return SeenMessage(
        role=Role.ASSISTANT if content["role"] == "model" else Role.USER,
        text=joined(content["parts"]),
        results=tuple("\n".join(map(str, response.values())) for response in responses),
        has_error=any("error" in response for response in responses),
    )


class GeminiWriter:
    """Writes one reply."""

    def __init__(self, model: str, performance: Performance) -> None:
        self._head = {"modelVersion": model, "responseId": f"response_{performance.number}"}
        self._call: dict[str, Any] = {}
        self._arguments = ""

    def begin(self) -> bytes:
        """Nothing comes before the first words."""
        return b""

    def write(self, event: StreamEvent) -> bytes:
        """The bytes of one event; a call goes out when it is complete."""
        match event:
            case StreamText():
                return self._part({"text": event.text})
            case StreamThinking():
                return self._part({"text": event.text, "thought": True})
            case StreamThinkingDone():
                return self._part({"text": "", "thoughtSignature": event.redacted or event.signature})
            case StreamCallStart():
                self._call, self._arguments = {"name": event.name, "id": event.wire_id}, ""
                return b""
            case StreamCallArguments():
                self._arguments += event.text
                return b""
            case StreamCallDone():
                return self._part({"functionCall": {**self._call, "args": _object(self._arguments)}})
            case StreamStop():
                finish = _STOPS.get(event.reason, "STOP")
                candidate = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": finish, "index": 0}
                return sse({"candidates": [candidate], "usageMetadata": _usage(event.usage), **self._head})
            case StreamUsage():
                return b""
            case StreamFailure():
                return sse(_error(_BY_KIND.get(event.error.kind, 500), event.error.message))
            case _:
                assert_never(event)

    def _part(self, part: Json) -> bytes:
        return sse({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], **self._head})


def _object(arguments: str) -> Any:
    """The arguments as this API gives them, decoded; damaged JSON cannot be said in it."""
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {}


def _usage(usage: Usage) -> dict[str, int]:
    """Tokens written to a cache are plain input here, and thoughts count beside the answer."""
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.cache_read_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": prompt + usage.output_tokens,
    }
