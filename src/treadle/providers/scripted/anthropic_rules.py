"""What the Messages API refuses: one row each, with its source."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from treadle.providers.scripted.anthropic_parameters import ANTHROPIC_PARAMETERS
from treadle.providers.scripted.request_rules import (
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

MAX_MARKERS = 4
_ID = re.compile(r"[A-Za-z0-9_-]+")
_NO_PREFILL = r"claude-(?:[a-z]+-4[-.](?:[6-9]|\d\d)|[a-z]+-[5-9]|mythos)"
_FIELDS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context", "citations"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {"id", "name", "input", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error"},
}
_OF_USER = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
_OF_ASSISTANT = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
_IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})


def _sent(body: Body) -> CheckedRequest:
    """Read a body whose messages are objects."""
    tools = [tool for tool in body.get("tools") or () if tool.get("type", "custom") == "custom"]
    declared = [(tool.get("name"), tool.get("description"), tool.get("input_schema")) for tool in tools]
    turns = [
        CheckedMessage(where=f"messages.{number}", role=str(message.get("role")), blocks=_blocks_of(message))
        for number, message in enumerate(body["messages"])
    ]
    return CheckedRequest(body, turns, declared)


def _blocks_of(message: Body) -> list[SentBlock]:
    """The blocks of a message; a text alone is one."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _first_message(request: CheckedRequest) -> Iterator[str]:
    if request.turns[0].role != "user":
        yield "messages.0: the first message must be the user's"


def _last_message(request: CheckedRequest) -> Iterator[str]:
    if request.turns[-1].role != "user":
        yield "messages: the last message must be the user's; this model does not support assistant message prefill"


def _trailing_space(request: CheckedRequest) -> Iterator[str]:
    last = request.turns[-1]
    if last.role == "assistant" and last.blocks and kind_of(last.blocks[-1]) == "text":
        said = str(last.blocks[-1].get("text"))
        if said != said.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _roles(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.role not in ("user", "assistant", "system"):
            yield f"{turn.where}.role: {turn.role!r} is neither 'user' nor 'assistant'"


def _alternating(request: CheckedRequest) -> Iterator[str]:
    for first, second in pairwise(request.turns):
        if first.role == second.role:
            yield f"{second.where}: roles must alternate between user and assistant, this one is {second.role!r}"


def _content(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if not turn.blocks:
            yield f"{turn.where}: content must not be empty"


def _kinds_of_blocks(request: CheckedRequest) -> Iterator[str]:
    for kind, places in request.blocks.items():
        for turn, _ in places:
            known = _OF_USER if turn.role == "user" else _OF_ASSISTANT
            if kind not in known and not (turn.role == "assistant" and kind.endswith("_tool_result")):
                yield f"{turn.where}: {kind!r} is not possible in a message of {turn.role}"


def _fields_of_blocks(request: CheckedRequest) -> Iterator[str]:
    for kind, known in _FIELDS.items():
        for turn, block in request.of(kind):
            for name in block.keys() - known - {"type", "cache_control"}:
                yield f"{turn.where}: {kind}.{name}: Extra inputs are not permitted"


def _empty_text(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("text"):
        if block.get("text", "") == "":
            yield f"{turn.where}: text content blocks must be non-empty"


def _blank_text(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("text"):
        if turn.role != "assistant" and block.get("text") and not str(block["text"]).strip():
            yield f"{turn.where}: text content blocks must contain non-whitespace text"
    for turn, block in request.of("tool_result"):
        if any(not str(part.get("text")).strip() for part in _parts(block) if kind_of(part) == "text"):
            yield f"{turn.where}: text content blocks must contain non-whitespace text"


def _blank_reply(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("text"):
        if turn.role == "assistant" and block.get("text") and not str(block["text"]).strip():
            yield f"{turn.where}: text content blocks must contain non-whitespace text"


def _blank_system(request: CheckedRequest) -> Iterator[str]:
    system = request.body.get("system", [])
    if isinstance(system, list) and any(not text.strip() for text in texts(system)):
        yield "system: text content blocks must be non-empty"


def _call_ids(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("tool_use"):
        if not _ID.fullmatch(str(block.get("id"))):
            yield f"{turn.where}: tool_use.id: String should match pattern: it needs an id of letters"


def _inputs(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("tool_use"):
        if not isinstance(block.get("input"), dict):
            yield f"{turn.where}: tool_use.input: Input should be a valid dictionary"


def _calls_before(request: CheckedRequest) -> Iterator[tuple[CheckedMessage, list[str], list[str]]]:
    """Give each message with the calls of the message before it, and what it answers."""
    calls: list[str] = []
    for turn in request.turns:
        yield turn, calls, [str(block.get("tool_use_id")) for block in turn.of("tool_result")]
        calls = [str(block.get("id")) for block in turn.of("tool_use")]
    yield CheckedMessage(where="messages", role="user", blocks=()), calls, []


def _every_call_answered(request: CheckedRequest) -> Iterator[str]:
    for turn, calls, answered in _calls_before(request):
        for call in calls:
            if call not in answered:
                yield f"{turn.where}: tool_use id without tool_result directly after: {call}"


def _no_other_answer(request: CheckedRequest) -> Iterator[str]:
    for turn, calls, answered in _calls_before(request):
        for call in answered:
            if call not in calls:
                yield f"{turn.where}: tool_result for no tool_use in the message before: {call}"


def _one_answer_each(request: CheckedRequest) -> Iterator[str]:
    for turn, _, answered in _calls_before(request):
        for call in duplicates(answered):
            yield f"{turn.where}: each tool_use must have a single result, there are two tool_results for {call}"


def _results_first(request: CheckedRequest) -> Iterator[str]:
    for turn in {id(turn): turn for turn, _ in request.of("tool_result")}.values():
        firsts = [kind_of(block) == "tool_result" for block in turn.blocks]
        if firsts != sorted(firsts, reverse=True):
            yield f"{turn.where}: tool_result blocks must come first"


def _ids_once(request: CheckedRequest) -> Iterator[str]:
    for call in duplicates(str(block.get("id")) for _, block in request.of("tool_use")):
        yield f"tool_use ids must be unique: {call}"


def _results_of_errors(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("tool_result"):
        if block.get("is_error") and any(kind_of(part) != "text" for part in _parts(block)):
            yield f"{turn.where}: tool_result: all content must be type `text` if `is_error` is true"


def _errors_say_something(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("tool_result"):
        if block.get("is_error") and not block.get("content"):
            yield f"{turn.where}: tool_result: content cannot be empty if `is_error` is true"


def _kinds_in_results(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("tool_result"):
        for part in _parts(block):
            if kind_of(part) not in _IN_RESULTS:
                yield f"{turn.where}: tool_result.content: {kind_of(part)!r} is not possible here"


def _parts(result: SentBlock) -> list[dict[str, Any]]:
    content = result.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _tools_defined(request: CheckedRequest) -> Iterator[str]:
    if not request.body.get("tools") and request.of("tool_use", "tool_result"):
        yield "requests which include tool_use or tool_result blocks must define tools"


def _markers(request: CheckedRequest) -> Iterator[dict[str, Any]]:
    """Give what carries a marker, in the order in which they are processed."""
    system = request.body.get("system")
    blocks = [block for turn in request.turns for block in turn.blocks]
    inner = [part for block in blocks if kind_of(block) == "tool_result" for part in _parts(block)]
    for one in (*(request.body.get("tools") or ()), *(system if isinstance(system, list) else ()), *blocks, *inner):
        if isinstance(one, dict) and one.get("cache_control"):
            yield one


def _few_markers(request: CheckedRequest) -> Iterator[str]:
    count = sum(1 for _ in _markers(request))
    if count > MAX_MARKERS:
        yield f"a maximum of {MAX_MARKERS} blocks with cache_control may be provided, found {count}"


def _markers_of_thinking(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("thinking", "redacted_thinking"):
        if block.get("cache_control"):
            yield f"{turn.where}: thinking.cache_control: Extra inputs are not permitted"


def _long_markers_first(request: CheckedRequest) -> Iterator[str]:
    lives = [one["cache_control"].get("ttl", "5m") for one in _markers(request)]
    if any(first == "5m" and second == "1h" for first, second in pairwise(lives)):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"


def _signed(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("thinking"):
        if not block.get("signature"):
            yield f"{turn.where}: thinking.signature: Field required, thinking needs its signature"


def _thinking_first(request: CheckedRequest) -> Iterator[str]:
    """Look at the last reply where it waits for its results: it must begin with thinking."""
    last = next((turn for turn in reversed(request.turns) if turn.role == "assistant"), None)
    enabled = (request.body.get("thinking") or {}).get("type") == "enabled"
    if enabled and last is not None and last.of("tool_use"):
        kind = kind_of(last.blocks[0])
        if kind not in ("thinking", "redacted_thinking"):
            yield f"{last.where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`"


def _sources(request: CheckedRequest) -> Iterator[str]:
    for turn, block in request.of("image", "document"):
        source = block.get("source") or {}
        needed = {"base64": "data", "text": "data", "url": "url", "file": "file_id", "content": "content"}
        if not source.get(needed.get(str(source.get("type")), "")):
            yield f"{turn.where}: {kind_of(block)}: a source with data is required"


_TOOL_USE = "platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls"
_MESSAGES = "platform.claude.com/docs/en/api/messages"
_VISION = "platform.claude.com/docs/en/build-with-claude/vision"
_CACHING = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
_THINKING = "platform.claude.com/docs/en/build-with-claude/extended-thinking"


ANTHROPIC_RULES = (
    *ANTHROPIC_PARAMETERS,
    RequestRule(
        what="the user first",
        source="the 400: 'first message must use the \"user\" role', 2025-11",
        check=_first_message,
    ),
    RequestRule(
        what="the user last",
        source="the 400: 'This model does not support assistant message prefill', 2026-02",
        check=_last_message,
        models=rf"^(?!.*claude-)|{_NO_PREFILL}",
    ),
    RequestRule(
        what="no blanks at the end of a prefill",
        source="the 400: 'final assistant content cannot end with trailing whitespace', 2026-02",
        check=_trailing_space,
    ),
    RequestRule(what="roles", source=f"{_MESSAGES}: role, 2025-11", check=_roles),
    RequestRule(
        what="roles in turn",
        source="servers that copy the API; itself it joins neighbours of one role (documented), 2025-11",
        check=_alternating,
        vendors=("anthropic-compatible",),
    ),
    RequestRule(what="content", source="the 400: 'all messages must have non-empty content', 2025-11", check=_content),
    RequestRule(what="kinds of blocks", source=f"{_MESSAGES}: content, 2026-05", check=_kinds_of_blocks),
    RequestRule(
        what="fields of blocks",
        source=f"{_MESSAGES} and the 400 'Extra inputs are not permitted', 2026-05",
        check=_fields_of_blocks,
    ),
    RequestRule(
        what="no empty text", source="the 400: 'text content blocks must be non-empty', 2025-11", check=_empty_text
    ),
    RequestRule(
        what="no blank text",
        source="the 400: 'text content blocks must contain non-whitespace text', 2026-07",
        check=_blank_text,
    ),
    RequestRule(
        what="no blank reply",
        source="the same 400 (home-assistant/core#175637), 2026-07; Claude Haiku 4.5 took one (recorded)",
        check=_blank_reply,
        vendors=("anthropic-compatible",),
    ),
    RequestRule(
        what="no blank system text",
        source="the 400: 'system: text content blocks must be non-empty', 2025-11",
        check=_blank_system,
    ),
    RequestRule(
        what="ids of calls", source="the 400: 'tool_use.id: String should match pattern', 2025-11", check=_call_ids
    ),
    RequestRule(
        what="inputs of calls",
        source="the 400: 'tool_use.input: Input should be a valid dictionary', 2025-11",
        check=_inputs,
    ),
    RequestRule(
        what="a result for every call",
        source=f"{_TOOL_USE}, and the 400 'without `tool_result` blocks immediately after', 2025-11",
        check=_every_call_answered,
    ),
    RequestRule(
        what="a call for every result",
        source="the 400: 'unexpected `tool_use_id` found in `tool_result` blocks', 2025-11",
        check=_no_other_answer,
    ),
    RequestRule(
        what="one result for a call",
        source="the 400: 'each tool_use must have a single result', 2025-11",
        check=_one_answer_each,
    ),
    RequestRule(what="results first", source=f"{_TOOL_USE}: text after results, 2025-11", check=_results_first),
    RequestRule(what="ids of calls once", source="the 400: '`tool_use` ids must be unique', 2025-11", check=_ids_once),
    RequestRule(
        what="errors in words",
        source="the 400: 'all content must be type `text` if `is_error` is true', 2026-03",
        check=_results_of_errors,
    ),
    RequestRule(
        what="errors with words",
        source="the 400: 'content cannot be empty if `is_error` is true', 2025-07",
        check=_errors_say_something,
    ),
    RequestRule(what="kinds of results", source=f"{_MESSAGES}: tool_result.content, 2026-05", check=_kinds_in_results),
    RequestRule(
        what="tools where there are calls",
        source="the 400: 'Requests which include `tool_use` or `tool_result` blocks must define tools', 2025-11",
        check=_tools_defined,
    ),
    RequestRule(
        what="long markers first",
        source="the 400: \"a ttl='1h' cache_control block must not come after a ttl='5m'\", 2026-08",
        check=_long_markers_first,
    ),
    RequestRule(what="4 markers", source=f"{_CACHING}: up to 4 breakpoints, and the 400, 2025-11", check=_few_markers),
    RequestRule(
        what="no marker of thinking", source=f"{_CACHING}: thinking blocks, 2025-11", check=_markers_of_thinking
    ),
    RequestRule(what="thinking is signed", source=f"{_THINKING}: signature, 2025-11", check=_signed),
    RequestRule(
        what="thinking before calls",
        source="the 400: 'a final `assistant` message must start with a thinking block', 2025-12",
        check=_thinking_first,
    ),
    RequestRule(what="sources", source=f"{_VISION}: source, 2025-11", check=_sources),
)
ANTHROPIC_BOOK = WireRules(shape=shape_rules("messages"), rules=ANTHROPIC_RULES, read=_sent)
