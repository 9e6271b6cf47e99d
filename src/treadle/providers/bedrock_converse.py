"""The Converse API of Amazon Bedrock: one form for the models of many makers."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import count as numbers
from itertools import islice
from typing import Any, NamedTuple, assert_never
from urllib.parse import quote

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    ResultContent,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.models import ModelRequest
from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec
from treadle.providers.anthropic_messages import LONG, LONG_BETA, MARKED_MESSAGES, MIN_THINKING, thinks_adaptively
from treadle.providers.bedrock_reader import API, EVENT_STREAM, BedrockReader
from treadle.providers.endpoint import Endpoint
from treadle.providers.tool_schemas import BEDROCK, description_for, schema_for
from treadle.providers.wire import (
    BRIDGE,
    HttpCall,
    MessageCache,
    ToolCache,
    dump,
    effort,
    origin,
    own_data,
    wire_call_name,
)

CACHE_POINT = b'{"cachePoint":{"type":"default"}}'
IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_CALL_ID = regex(r"[A-Za-z0-9_-]{1,64}")
_CACHES = regex(r"anthropic\.claude-(?:3-7|3-5-haiku|3-5-sonnet-20241022|[a-z]+-\d)")
"""Models whose prompts can be cached at points that we name."""

_EFFORT_MODELS = {"amazon.nova-2": "nova", "openai.gpt-oss": "openai"}
_ALONE = "meta.llama"
"""Models that take results only in a message of their own."""

_KNOWS_STATUS = ("anthropic.claude", "amazon.nova")
"""Makers whose models take the status of a result; others refuse it."""


class _Encoded(NamedTuple):
    """A message as JSON: its blocks, results first (empty without content)."""

    role: Role
    results: bytes
    rest: bytes
    calls_unexplained: bool


class BedrockConverse:
    """Writes requests and reads replies of the Converse API."""

    framing = EVENT_STREAM

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._origin = origin(API, endpoint)
        self._messages = {status: self._cache(status) for status in (True, False)}
        self._documents = numbers(1)
        self._tools = ToolCache(_tools)

    def _cache(self, status: bool) -> MessageCache[_Encoded]:  # noqa: FBT001 - one of two caches
        return MessageCache(lambda message: self._encode(message, status=status))

    def prepare(self, request: ModelRequest) -> HttpCall:
        """Write the request; the model is named in the path."""
        knows_status = any(maker in request.model for maker in _KNOWS_STATUS)
        caches = _CACHES.search(request.model) is not None
        encoded = self._messages[knows_status].encode(request.messages)
        parts = [b'{"messages":[', b",".join(_join(encoded, caches=caches, mixes=_ALONE not in request.model)), b"]"]
        if request.system.strip():
            system = [dump({"text": request.system})]
            parts += [b',"system":[', b",".join([*system, CACHE_POINT] if caches else system), b"]"]
        parts += [b',"inferenceConfig":', dump({"maxTokens": request.max_tokens} if request.max_tokens else {})]
        if tools := self._tools.encode(request.tools):
            parts += [b',"toolConfig":', tools]
        fields = _thinking(request, encoded)
        model = request.model
        if "anthropic.claude" in model and model.endswith(LONG):
            model, fields = model.removesuffix(LONG), {**fields, "anthropic_beta": [LONG_BETA]}
        if fields:
            parts += [b',"additionalModelRequestFields":', dump(fields)]
        url = self._endpoint.url(f"/model/{quote(model, safe='')}/converse-stream")
        return HttpCall(url=url, headers=self._endpoint.key_headers("authorization"), body=b"".join((*parts, b"}")))

    def reader(self) -> BedrockReader:
        """Begin to read a reply."""
        return BedrockReader(self._endpoint)

    def _encode(self, message: Message, *, status: bool) -> _Encoded:
        sent = [(block, value) for block in message.content for value in self._values(block, status=status)]
        calls = any("toolUse" in value for _, value in sent)
        values = [value for _, value in sent]
        if any("document" in value for value in values) and not any("text" in value for value in values):
            sent.append((Text(text=""), {"text": "(attached)"}))  # the API wants words with each document
        return _Encoded(
            message.role,
            b",".join(dump(value) for _, value in sent if "toolResult" in value),
            b",".join(dump(value) for _, value in sent if "toolResult" not in value),
            calls_unexplained=calls and "reasoningContent" not in sent[0][1],
        )

    def _values(self, block: ContentBlock, *, status: bool) -> list[dict[str, Any]]:
        """Write a block as one value or none; what else than words a failed call has follows its result."""
        if isinstance(block, ToolResult):
            return self._result(block, status=status)
        value = self._block(block)
        return [] if value is None else [value]

    def _result(self, block: ToolResult, *, status: bool) -> list[dict[str, Any]]:
        content = [value for value in map(self._content, block.content) if value is not None]
        result: dict[str, Any] = {"toolUseId": _call_id(block.wire_id, block.call_id)}
        if not block.is_error or not status:
            return [{"toolResult": {**result, "content": content or [{"text": "(no output)"}]}}]
        words = [value for value in content if "text" in value]
        attached = [value for value in content if "text" not in value]
        if attached:
            attached.insert(0, {"text": f"Attached to the result of {block.name}:"})
        words = words or [{"text": "(attached below)" if attached else "(no output)"}]
        return [{"toolResult": {**result, "content": words, "status": "error"}}, *attached]

    def _block(self, block: ContentBlock) -> dict[str, Any] | None:
        """Write a block; None leaves it out: blank text, and reasoning that another provider signed."""
        match block:
            case Text() | Image() | Document():
                return self._content(block)
            case Thinking():
                if own_data(block.wire, self._origin) is None or not block.signature:
                    return None
                return {"reasoningContent": {"reasoningText": {"text": block.text, "signature": block.signature}}}
            case RedactedThinking():
                if own_data(block.wire, self._origin) is None:
                    return None
                return {"reasoningContent": {"redactedContent": block.data}}
            case ToolUse():
                call_id = _call_id(block.wire_id, block.id)
                return {"toolUse": {"toolUseId": call_id, "name": wire_call_name(block.name), "input": block.arguments}}
            case ToolResult():
                return None
            case _:
                assert_never(block)

    def _content(self, block: ResultContent) -> dict[str, Any] | None:
        """Write what a message or a result can hold; a kind of file that the API does not know is said in words."""
        match block:
            case Text():
                return {"text": block.text} if block.text.strip() else None
            case Image():
                image = IMAGES.get(block.media_type)
                if image is None:
                    return {"text": f"(an image of the type {block.media_type}, which cannot be sent)"}
                return {"image": {"format": image, "source": {"bytes": block.data}}}
            case Document():
                kind = DOCUMENTS.get(block.media_type)
                if kind is None:
                    return {"text": f"({block.title or 'a document'}: {block.media_type} cannot be sent)"}
                title = re.sub(r"[^A-Za-z0-9()\[\]-]+", " ", block.title).strip() or "document"
                name = f"{title[:150]} {next(self._documents)}"  # two documents of one name are refused
                return {"document": {"format": kind, "name": name, "source": {"bytes": block.data}}}
            case _:
                assert_never(block)


def _tools(tools: Sequence[ToolSpec], _: Mapping[str, Any] | None) -> dict[str, Any]:
    declared = [
        {
            "toolSpec": {
                "name": tool.name,
                "description": description_for(tool, BEDROCK),
                "inputSchema": {"json": schema_for(BEDROCK, tool.parameters)},
            }
        }
        for tool in tools
    ]
    return {"tools": declared} if declared else {}


def _call_id(wire_id: str, own_id: str) -> str:
    """The provider's id where this API takes it, else ours, made to fit."""
    if _CALL_ID.fullmatch(wire_id):
        return wire_id
    fitting = re.sub(r"[^A-Za-z0-9_-]", "_", own_id)
    return fitting if _CALL_ID.fullmatch(fitting) else hashlib.sha256(own_id.encode()).hexdigest()


def _join(encoded: list[_Encoded], *, caches: bool, mixes: bool) -> list[bytes]:
    """Merge neighbours of one role, results first, and put cache points behind the last user messages.

    Without `mixes`, results have a message of their own.
    """
    merged: list[tuple[Role, list[bytes], list[bytes]]] = []
    for message in encoded:
        if not message.results and not message.rest:
            continue
        if not merged or merged[-1][0] is not message.role:
            merged.append((message.role, [], []))
        merged[-1][1].extend(filter(None, [message.results]))
        merged[-1][2].extend(filter(None, [message.rest]))
    users = (index for index in range(len(merged) - 1, -1, -1) if merged[index][0] is Role.USER)
    marked = set(islice(users, MARKED_MESSAGES)) if caches else set()
    whole = []
    for index, (role, results, rest) in enumerate(merged):
        apart = bool(results and rest) and not mixes
        if apart:
            whole += [_message(role, results), _message(Role.ASSISTANT, [dump({"text": BRIDGE})])]
        blocks = [*(() if apart else results), *rest, *((CACHE_POINT,) if index in marked else ())]
        whole.append(_message(role, blocks))
    return whole


def _message(role: Role, blocks: list[bytes]) -> bytes:
    return b'{"role":"%s","content":[%s]}' % (role.value.encode(), b",".join(blocks))


def _thinking(request: ModelRequest, encoded: list[_Encoded]) -> dict[str, Any]:
    """The fields that ask for reasoning, each maker's in its own way; others think as they are.

    Claude with a budget refuses to go on with thinking after calls whose message begins without signed thinking, and
    wants the budget below the limit of the reply.
    """
    budget = max(request.thinking_budget or 0, 0)
    if not budget:
        return {}
    maker = next((maker for name, maker in _EFFORT_MODELS.items() if name in request.model), "")
    if maker == "nova":
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort(budget)}}
    if maker == "openai":
        return {"reasoning_effort": effort(budget)}
    if "anthropic.claude" not in request.model:
        return {}
    if thinks_adaptively(request.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort(budget)}}
    budget = max(budget, MIN_THINKING)
    if request.max_tokens is not None:
        budget = min(budget, request.max_tokens - 1)
    last = next((message for message in reversed(encoded) if message.role is Role.ASSISTANT and message.rest), None)
    if budget < MIN_THINKING or (last is not None and last.calls_unexplained):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}
