"""The Gemini API, `generateContent`, of Google AI Studio and of Vertex: its requests."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never
from urllib.parse import quote

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    text_of,
)
from treadle.protocol.models import ModelRequest
from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec
from treadle.providers.endpoint import Endpoint
from treadle.providers.gemini_reader import API, SIGNATURE, GeminiReader
from treadle.providers.plain_schemas import schema_as
from treadle.providers.web_search import GEMINI_TOOL, gemini_searches, kept_blocks
from treadle.providers.wire import SSE, HttpCall, MessageCache, ToolCache, dump, origin, own_data, wire_call_name

UNSIGNED = "skip_thought_signature_validator"
"""What the API takes as the signature of a call that another model made."""

_BUDGETS = (("2.5-pro", 128, 32_768), ("2.5-flash-lite", 512, 24_576), ("2.5-flash", 1, 24_576))
"""The least and the most tokens of thinking, by a part of the model's name (the first that fits)."""

_NO_SIGNATURES = regex(r"gemini-[12]\.")
"""Models that take their own calls back without a signature, as they often make them."""

_ROLES = {Role.USER: b"user", Role.ASSISTANT: b"model"}


class _Encoded(NamedTuple):
    """A message as JSON, and its parts; both empty without content."""

    role: Role
    whole: bytes
    parts: bytes


def _encoded(role: Role, parts: bytes) -> _Encoded:
    return _Encoded(role, b'{"role":"%s","parts":[%s]}' % (_ROLES[role], parts) if parts else b"", parts)


class Gemini:
    """Writes requests and reads replies of the Gemini API."""

    framing = SSE

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._messages = {signed: self._cache(signed=signed) for signed in (True, False)}
        self._tools = ToolCache(_tools)

    def _cache(self, *, signed: bool) -> MessageCache[_Encoded]:
        return MessageCache(lambda message: self._encode(message, signed=signed))

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        encoded = self._messages[_NO_SIGNATURES.search(request.model) is None].encode(request.messages)
        parts = [b'{"contents":[', b",".join(_join(encoded)), b"]"]
        if request.system.strip():
            parts += [b',"systemInstruction":', dump({"parts": [{"text": request.system}]})]
        searches = request.web_search and self._endpoint.quirks.web_search and gemini_searches(request.model)
        if tools := self._tools.encode(request.tools, GEMINI_TOOL if searches else None):
            parts += [b',"tools":', tools]
        if searches and request.tools:
            parts += [b',"toolConfig":{"includeServerSideToolInvocations":true}']
        config: dict[str, Any] = {}
        if request.max_tokens is not None:
            config["maxOutputTokens"] = request.max_tokens
        if request.thinking_budget:
            budget = _budget(request.model, request.thinking_budget)
            config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": budget}
        parts += [b',"generationConfig":', dump(config), b"}"]
        model = request.model if "/" in request.model else f"models/{request.model}"
        url = self._endpoint.url(f"/{quote(model)}:streamGenerateContent", query="alt=sse")
        return HttpCall(url=url, headers=self._endpoint.key_headers("x-goog-api-key"), body=b"".join(parts))

    def reader(self) -> GeminiReader:
        """Begin to read a reply."""
        return GeminiReader(self._endpoint)

    def _encode(self, message: Message, *, signed: bool) -> _Encoded:
        """Write a message; `signed` says that the model wants a signature with the first call of each."""
        blocks = sorted(message.content, key=_comes_later) if message.role is Role.USER else message.content
        parts = [part for block in blocks for part in self._parts(block)]
        first = next((part for part in parts if "functionCall" in part), None)
        if signed and first is not None:
            first.setdefault(SIGNATURE, UNSIGNED)
        return _encoded(message.role, b",".join(dump(part) for part in parts))

    def _parts(self, block: ContentBlock) -> list[dict[str, Any]]:
        """Write a block; thoughts themselves stay out, only the signatures that came with the answer go back."""
        match block:
            case Text():
                return [{"text": block.text}] if block.text else []
            case Image() | Document():
                return [_inline(block)]
            case Thinking() | RedactedThinking():
                if searched := kept_blocks(block, self._origin):
                    return searched
                signature = (own_data(block.wire, self._origin) or {}).get(SIGNATURE)
                return [{"text": "", SIGNATURE: signature}] if signature else []
            case ToolUse():
                return [self._call(block)]
            case ToolResult():
                response = {"error" if block.is_error else "output": text_of(block.content)}
                value = {"name": wire_call_name(block.name), "response": response, **_id(block.wire_id)}
                attached = [_inline(part) for part in block.content if not isinstance(part, Text)]
                return [{"functionResponse": value}, *attached]
            case _:
                assert_never(block)

    def _call(self, block: ToolUse) -> dict[str, Any]:
        call = {"functionCall": {"name": wire_call_name(block.name), "args": block.arguments, **_id(block.wire_id)}}
        own = own_data(block.wire, self._origin)
        signature = UNSIGNED if own is None else own.get(SIGNATURE)
        return {**call, SIGNATURE: signature} if signature else call


def _tools(tools: Sequence[ToolSpec], search: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    functions = [
        {
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": schema_as("gemini", tool.parameters),
        }
        for tool in tools
    ]
    declared = {**(search or {}), **({"functionDeclarations": functions} if functions else {})}
    return [declared] if declared else []


def _budget(model: str, wanted: int) -> int:
    """Bring a thinking budget into the range of a model: one that is outside is refused."""
    for name, least, most in _BUDGETS:
        if name in model:
            return min(max(wanted, least), most)
    return wanted


def _comes_later(block: ContentBlock) -> bool:
    """Results come first."""
    return not isinstance(block, ToolResult)


def _id(wire_id: str) -> dict[str, str]:
    return {"id": wire_id} if wire_id else {}


def _inline(block: Image | Document) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.media_type, "data": block.data}}


def _join(encoded: list[_Encoded]) -> list[bytes]:
    """Merge neighbours of one role."""
    merged: list[_Encoded] = []
    for message in encoded:
        if merged and message.role is merged[-1].role and message.parts:
            merged[-1] = _encoded(message.role, merged[-1].parts + b"," + message.parts)
        elif message.parts:
            merged.append(message)
    return [message.whole for message in merged]
