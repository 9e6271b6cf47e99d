"""What the Converse API of Amazon Bedrock refuses: one row each, with its source."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from treadle.providers.scripted.bedrock_parameters import BEDROCK_PARAMETERS, thinking_of
from treadle.providers.scripted.request_rules import (
    DOCUMENT_FORMATS,
    Body,
    CheckedMessage,
    CheckedRequest,
    RequestRule,
    SentBlock,
    WireRules,
    kind_of,
    shape_rules,
)
from treadle.providers.scripted.wire_format import duplicates, texts

_MOST_DOCUMENTS = 5
_CLAUDE = r"anthropic\.claude"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9()\[\]-]+(?: [A-Za-z0-9()\[\]-]+)*")
_OF_USER = frozenset({"text", "image", "document", "video", "toolResult", "cachePoint", "guardContent"})
_OF_ASSISTANT = frozenset(
    {"text", "reasoningContent", "toolUse", "toolResult", "cachePoint", "citationsContent", "image"}
)


def _sent(body: Body) -> CheckedRequest:
    """Read a body whose messages are objects."""
    turns = [
        CheckedMessage(
            where=f"messages.{number}",
            role=str(message.get("role")),
            blocks=[block for block in message.get("content") or () if isinstance(block, dict)],
        )
        for number, message in enumerate(body["messages"])
    ]
    tools = [
        (tool.get("name"), tool.get("description", "-"), (tool.get("inputSchema") or {}).get("json"))
        for tool in converse_tools(body)
    ]
    return CheckedRequest(body, turns, tools)


def converse_tools(body: Body) -> list[dict[str, Any]]:
    """The declared tools of a body."""
    listed = (body.get("toolConfig") or {}).get("tools") or ()
    return [tool["toolSpec"] for tool in listed if isinstance(tool.get("toolSpec"), dict)]


def _first_message(request: CheckedRequest) -> Iterator[str]:
    if request.turns[0].role != "user":
        yield "A conversation must start with a user message: the first and the last message must be the user's"


def _last_message(request: CheckedRequest) -> Iterator[str]:
    if request.turns[-1].role != "user":
        yield "messages: the last message must be the user's; this model does not support assistant message prefill"


def _roles(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.role not in ("user", "assistant"):
            yield f"{turn.where}.role: must satisfy enum value set: [user, assistant], not {turn.role!r}"


def _alternating(request: CheckedRequest) -> Iterator[str]:
    for first, second in pairwise(request.turns):
        if first.role == second.role:
            yield f"{second.where}: roles must alternate between user and assistant, this one is {second.role!r}"


def _content(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if not turn.blocks:
            yield f"The content field in the Message object at {turn.where} is empty: content must not be empty"


def _kinds_of_blocks(request: CheckedRequest) -> Iterator[str]:
    for kind, places in request.blocks.items():
        for turn, block in places:
            if len(block) != 1 or kind not in (_OF_USER if turn.role == "user" else _OF_ASSISTANT):
                yield f"{turn.where}: {sorted(block)} is no content block of {turn.role}"


def _blank_text(request: CheckedRequest) -> Iterator[str]:
    inner = [(turn, part) for turn, block in request.of("toolResult") for part in _parts(block)]
    for turn, block in (*request.of("text"), *((turn, part) for turn, part in inner if "text" in part)):
        if not str(block["text"]).strip():
            yield f"The text field in the ContentBlock object at {turn.where} is blank"


def _blank_system(request: CheckedRequest) -> Iterator[str]:
    if any(not text.strip() for text in texts(request.body.get("system"))):
        yield "The text field in the SystemContentBlock object is blank"


def _parts(block: SentBlock) -> list[SentBlock]:
    return [part for part in block["toolResult"].get("content") or () if isinstance(part, dict)]


def _ids(request: CheckedRequest) -> Iterator[str]:
    for kind in ("toolUse", "toolResult"):
        for turn, block in request.of(kind):
            if not _ID.fullmatch(str(block[kind].get("toolUseId"))):
                yield f"{turn.where}: {kind}.toolUseId: at most 64 letters, digits, _ and -"


def _names_of_calls(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("toolUse"):
        if not _ID.fullmatch(str(block["toolUse"].get("name"))):
            yield f"{turn.where}: toolUse.name: at most 64 letters, digits, _ and -"


def _inputs(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("toolUse"):
        if not isinstance(block["toolUse"].get("input"), dict):
            yield f"The format of the value at {turn.where}.toolUse.input is invalid. Provide a json object"


def _results(request: CheckedRequest) -> Iterator[str]:
    calls: list[str] = []
    for turn in (*request.turns, CheckedMessage(where="messages", role="user", blocks=())):
        answered = [str(block["toolResult"].get("toolUseId")) for block in turn.of("toolResult")]
        if len(answered) > len(calls):
            yield f"The number of toolResult blocks at {turn.where} exceeds the number of toolUse blocks before"
        elif sorted(answered) != sorted(calls):
            yield f"Expected toolResult blocks at {turn.where}: one toolResult for each toolUse of the message before"
        calls = [str(block["toolUse"].get("toolUseId")) for block in turn.of("toolUse")]


def _ids_once(request: CheckedRequest) -> Iterator[str]:
    for call in duplicates(str(block["toolUse"].get("toolUseId")) for _, block in request.of("toolUse")):
        yield f"duplicate toolUseId {call}"


def _results_alone(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.of("toolResult") and len(turn.of("toolResult", "cachePoint")) < len(turn.blocks):
            yield f"{turn.where}: Conversation blocks and tool result blocks cannot be provided in the same turn."


def _results_say_something(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("toolResult"):
        if block["toolResult"].get("status") == "error" and not _parts(block):
            yield f"The content field at {turn.where}.toolResult cannot be empty when status value is error."


def _errors_in_words(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("toolResult"):
        if block["toolResult"].get("status") == "error" and any(kind_of(part) != "text" for part in _parts(block)):
            yield f"{turn.where}: tool_result: all content must be type `text` if `is_error` is true"


def _no_status(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("toolResult"):
        if "status" in block["toolResult"]:
            yield f"{turn.where}: This model doesn't support the status field."


def _signed(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("reasoningContent"):
        kept = block["reasoningContent"]
        if not ((kept.get("reasoningText") or {}).get("signature") or kept.get("redactedContent")):
            yield f"{turn.where}: reasoning needs its signature"


def _thinking_first(request: CheckedRequest) -> Iterator[str]:
    last = next((turn for turn in reversed(request.turns) if turn.role == "assistant"), None)
    enabled = thinking_of(request).get("type") == "enabled"
    if enabled and last is not None and last.of("toolUse") and kind_of(last.blocks[0]) != "reasoningContent":
        yield f"{last.where}.content.0.type: Expected `thinking` or `redacted_thinking`"


def _sources(request: CheckedRequest) -> Iterator[str]:
    inner = [(turn, part) for turn, block in request.of("toolResult") for part in _parts(block)]
    for turn, block in (*request.of("image", "document"), *inner):
        kind = kind_of(block)
        if kind in ("image", "document") and not (block[kind].get("source") or {}).get("bytes"):
            yield f"{turn.where}: {kind}.source.type: Field required, a source with bytes is required"


def _documents(request: CheckedRequest) -> list[tuple[CheckedMessage, SentBlock]]:
    inner = [(turn, part) for turn, block in request.of("toolResult") for part in _parts(block) if "document" in part]
    return [*request.of("document"), *inner]


def _names_of_documents(request: CheckedRequest) -> Iterator[str]:
    for turn, block in _documents(request):
        if not _NAME.fullmatch(str(block["document"].get("name"))):
            yield f"{turn.where}: the name of a document has characters that are not taken"


def _documents_once(request: CheckedRequest) -> Iterator[str]:
    for name in duplicates(str(block["document"].get("name")) for _, block in _documents(request)):
        yield f"duplicate document name {name}"


def _words_with_documents(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.of("document") and not turn.of("text"):
            yield f"{turn.where}: a document needs a text block beside it"


def _few_documents(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if len(turn.of("document")) > _MOST_DOCUMENTS:
            yield f"{turn.where}: a message has at most {_MOST_DOCUMENTS} documents"


def _kinds_of_documents(request: CheckedRequest) -> Iterator[str]:
    for turn, block in _documents(request):
        if block["document"].get("format") not in DOCUMENT_FORMATS:
            yield f"{turn.where}: document.format: must satisfy enum value set, not {block['document'].get('format')!r}"


_REFERENCE = "docs.aws.amazon.com/bedrock/latest/APIReference"


BEDROCK_RULES = (
    *BEDROCK_PARAMETERS,
    RequestRule(
        what="the user first",
        source="the 400: 'A conversation must start with a user message', 2025-11",
        check=_first_message,
    ),
    RequestRule(
        what="the user last",
        source="the 400: 'This model does not support assistant message prefill', 2026-02",
        check=_last_message,
    ),
    RequestRule(what="roles", source=f"{_REFERENCE}/API_runtime_Message.html, 2025-11", check=_roles),
    RequestRule(
        what="roles in turn",
        source="the 400: 'A conversation must alternate between user and assistant roles', 2025-11",
        check=_alternating,
    ),
    RequestRule(
        what="content",
        source="the 400: 'The content field in the Message object at messages.3 is empty', 2026-02",
        check=_content,
    ),
    RequestRule(
        what="kinds of blocks",
        source=f"{_REFERENCE}/API_runtime_ContentBlock.html: a union, 2025-11",
        check=_kinds_of_blocks,
    ),
    RequestRule(
        what="no blank text",
        source="the 400: 'The text field in the ContentBlock object at ... is blank', 2025-11",
        check=_blank_text,
    ),
    RequestRule(
        what="no blank system text",
        source=f"{_REFERENCE}/API_runtime_SystemContentBlock.html: at least one character, 2025-11",
        check=_blank_system,
    ),
    RequestRule(
        what="ids of calls", source=f"{_REFERENCE}/API_runtime_ToolUseBlock.html: toolUseId, 2025-11", check=_ids
    ),
    RequestRule(
        what="names of calls",
        source=f"{_REFERENCE}/API_runtime_ToolUseBlock.html: name, 2025-11",
        check=_names_of_calls,
    ),
    RequestRule(
        what="inputs of calls",
        source="the 400: 'The format of the value at messages.1.content.0.toolUse.input is invalid', 2025-11",
        check=_inputs,
    ),
    RequestRule(
        what="results of the calls before",
        source="the 400: 'The number of toolResult blocks ... exceeds', 'Expected toolResult blocks', 2026-01",
        check=_results,
    ),
    RequestRule(
        what="ids of calls once",
        source="the 400 of Claude there: '`tool_use` ids must be unique', 2025-11",
        check=_ids_once,
    ),
    RequestRule(
        what="results alone",
        source="the 400 with Llama: 'Conversation blocks and tool result blocks cannot be provided', 2025-11",
        check=_results_alone,
        models=r"meta\.llama",
    ),
    RequestRule(
        what="errors with words",
        source="the 400: 'cannot be empty when status value is error', 2026-06",
        check=_results_say_something,
    ),
    RequestRule(
        what="errors in words",
        source="the 400 of Claude: 'all content must be type `text` if `is_error` is true', 2026-03",
        check=_errors_in_words,
        models=_CLAUDE,
    ),
    RequestRule(
        what="status of results",
        source=f"{_REFERENCE}/API_runtime_ToolResultBlock.html: Amazon Nova and Claude 3 and later only, 2025-11",
        check=_no_status,
        models=r"meta\.|mistral\.|cohere\.|ai21\.|deepseek\.|openai\.",
    ),
    RequestRule(
        what="reasoning is signed",
        source=f"{_REFERENCE}/API_runtime_ReasoningTextBlock.html, 2025-11",
        check=_signed,
        models=rf"{_CLAUDE}|^(?!.*\.)",
    ),
    RequestRule(
        what="thinking before calls",
        source="the 400 of Claude: 'a final `assistant` message must start with a thinking block', 2025-12",
        check=_thinking_first,
    ),
    RequestRule(
        what="sources",
        source="the 400 of Claude: 'document.source.type: Field required' where it is not bytes (recorded), 2026-05",
        check=_sources,
        models=rf"{_CLAUDE}|^(?!.*\.)",
    ),
    RequestRule(
        what="names of documents",
        source=f"{_REFERENCE}/API_runtime_DocumentBlock.html: name, 2025-11",
        check=_names_of_documents,
    ),
    RequestRule(
        what="names of documents once", source="the 400: 'Duplicate document names', 2025-11", check=_documents_once
    ),
    RequestRule(
        what="words with documents",
        source=f"{_REFERENCE}/API_runtime_ContentBlock.html: document, 2025-11",
        check=_words_with_documents,
    ),
    RequestRule(
        what="5 documents a message", source=f"{_REFERENCE}/API_runtime_Message.html, 2025-11", check=_few_documents
    ),
    RequestRule(
        what="kinds of documents",
        source=f"{_REFERENCE}/API_runtime_DocumentBlock.html: format, 2025-11",
        check=_kinds_of_documents,
    ),
)
BEDROCK_BOOK = WireRules(shape=shape_rules("messages"), rules=BEDROCK_RULES, read=_sent)
