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
from treadle.protocol.tools import ToolSpec
from treadle.providers.endpoint import Endpoint
from treadle.providers.gemini_reader import API, SIGNATURE, GeminiReader
from treadle.providers.plain_schemas import schema_as
from treadle.providers.web_search import GEMINI_TOOL, gemini_searches, kept_blocks
from treadle.providers.wire import SSE, HttpCall, MessageCache, ToolCache, dump, origin, own_data

UNSIGNED = "skip_thought_signature_validator"
"""What the API takes as the signature of a call that another model made."""

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
        self._messages = MessageCache(self._encode)
        self._tools = ToolCache(_tools)

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request."""
        parts = [b'{"contents":[', b",".join(_join(self._messages.encode(request.messages))), b"]"]
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
            config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": request.thinking_budget}
        parts += [b',"generationConfig":', dump(config), b"}"]
        model = request.model if "/" in request.model else f"models/{request.model}"
        url = self._endpoint.url(f"/{quote(model)}:streamGenerateContent", query="alt=sse")
        return HttpCall(url=url, headers=self._endpoint.key_headers("x-goog-api-key"), body=b"".join(parts))

    def reader(self) -> GeminiReader:
        """Begin to read a reply."""
        return GeminiReader(self._endpoint)

    def _encode(self, message: Message) -> _Encoded:
        blocks = sorted(message.content, key=_comes_later) if message.role is Role.USER else message.content
        parts = [part for block in blocks for part in self._parts(block)]
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
                value = {"name": block.name, "response": response, **_id(block.wire_id)}
                attached = [_inline(part) for part in block.content if not isinstance(part, Text)]
                return [{"functionResponse": value}, *attached]
            case _:
                assert_never(block)

    def _call(self, block: ToolUse) -> dict[str, Any]:
        call = {"functionCall": {"name": block.name, "args": block.arguments, **_id(block.wire_id)}}
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
