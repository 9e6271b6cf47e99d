"""What the Responses API refuses: one row each, with its source."""

import re
from collections.abc import Iterator
from typing import Any

from treadle.providers.scripted.openai_parameters import MAKERS, NO_REASONING, OPENAI_MEDIA, REASONS, absent, sampling
from treadle.providers.scripted.refused_schemas import OPENAI_TOOLS
from treadle.providers.scripted.request_rules import (
    Body,
    CheckedMessage,
    CheckedRequest,
    RequestRule,
    SentBlock,
    WireRules,
    is_object,
    kind_of,
    rows_of_tools,
    shape_rules,
    unknown_fields,
)
from treadle.providers.scripted.wire_format import duplicates, texts

_LONGEST_ID = 64
_LEAST_ROOM = 16
_ID = re.compile(r"[A-Za-z0-9_-]+")
_ROLES = frozenset({"system", "developer", "user", "assistant"})
_ITEMS = frozenset(
    {
        "message", "function_call", "function_call_output", "reasoning", "web_search_call", "file_search_call",
        "computer_call", "computer_call_output", "code_interpreter_call", "image_generation_call", "mcp_call",
        "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "local_shell_call", "shell_call",
        "local_shell_call_output", "shell_call_output", "apply_patch_call", "apply_patch_call_output", "compaction",
        "custom_tool_call", "custom_tool_call_output", "item_reference", "tool_search_call", "tool_search_output",
    }
)  # fmt: skip
_TOP = frozenset(
    {
        "model", "input", "stream", "stream_options", "store", "instructions", "max_output_tokens", "max_tool_calls",
        "include", "reasoning", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "text", "user",
        "metadata", "truncation", "previous_response_id", "conversation", "background", "service_tier", "prompt",
        "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "top_logprobs", "context_management",
        "verbosity",
    }
)  # fmt: skip
_PREFIXES = {"function_call": "fc", "reasoning": "rs", "message": "msg"}


def _sent(body: Body) -> CheckedRequest:
    """Read a body whose items are objects."""
    tools = [tool for tool in body.get("tools") or () if tool.get("type", "function") == "function"]
    declared = [(tool.get("name"), tool.get("description"), tool.get("parameters")) for tool in tools]
    turns = [
        CheckedMessage(where=f"input[{number}]", role=str(item.get("role", "")), blocks=[{"type": "message", **item}])
        for number, item in enumerate(body["input"])
    ]
    return CheckedRequest(body, turns, declared)


def _items(request: CheckedRequest) -> Iterator[tuple[str, str, SentBlock]]:
    for turn in request.turns:
        yield turn.where, kind_of(turn.blocks[0]), turn.blocks[0]


def _kinds(request: CheckedRequest) -> Iterator[str]:
    for where, kind, _ in _items(request):
        if kind not in _ITEMS:
            yield f"{where}: unknown type {kind!r}"


def _roles(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("message"):
        if item.get("role") not in _ROLES:
            yield f"{turn.where}: unknown role {item.get('role')!r}"


def _content(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("message"):
        if item.get("content") is None:
            yield f"Missing required parameter: '{turn.where}.content'. content must not be empty"


def _some_content(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("message"):
        if item.get("content") in ("", []) or any(not text for text in texts(item.get("content"))):
            yield f"{turn.where}: content must not be empty"


def _parts(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("message"):
        said = item.get("role") == "assistant"
        known = ("output_text", "refusal") if said else ("input_text", "input_image", "input_file", "input_audio")
        content = item.get("content")
        for part in content if isinstance(content, list) else ():
            if kind_of(part) not in known:
                yield f"{turn.where}: Invalid value: '{kind_of(part)}'. Supported values are: {known}"


def _arguments(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("function_call"):
        if not is_object(item.get("arguments")):
            yield f"{turn.where}: the arguments are not JSON"


def _calls(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("function_call"):
        if not item.get("call_id") or not item.get("name"):
            yield f"{turn.where}: a function call needs a call_id and a name"


def _names_of_calls(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("function_call"):
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", str(item.get("name"))):
            yield f"Invalid '{turn.where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'"


def _outputs(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("function_call_output"):
        if item.get("output") is None:
            yield f"Missing required parameter: '{turn.where}.output', an output is required"


def _call_ids(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("function_call", "function_call_output"):
        if len(str(item.get("call_id"))) > _LONGEST_ID:
            yield f"Invalid '{turn.where}.call_id': string too long. Expected at most {_LONGEST_ID}"


def _ids(request: CheckedRequest) -> Iterator[str]:
    for where, _, item in _items(request):
        if "id" in item and item["id"] is not None and not _ID.fullmatch(str(item["id"])):
            yield f"Invalid '{where}.id': expected an ID that contains letters, numbers, underscores, or dashes"


def _short_ids(request: CheckedRequest) -> Iterator[str]:
    for where, _, item in _items(request):
        if len(str(item.get("id"))) > _LONGEST_ID:
            yield f"Invalid '{where}.id': string too long. Expected a string with maximum length {_LONGEST_ID}"


def _prefixes(request: CheckedRequest) -> Iterator[str]:
    for where, kind, item in _items(request):
        prefix = _PREFIXES.get(kind, "")
        if isinstance(item.get("id"), str) and not item["id"].startswith(prefix):
            yield f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."


def _ids_once(request: CheckedRequest) -> Iterator[str]:
    ids = (str(item["id"]) for _, kind, item in _items(request) if item.get("id") and kind != "item_reference")
    for one in duplicates(ids):
        yield f"Duplicate item found with id {one}. Remove duplicate items from your input and try again."


def _calls_once(request: CheckedRequest) -> Iterator[str]:
    for one in duplicates(str(item.get("call_id")) for _, item in request.of("function_call")):
        yield f"call ids must be unique: {one}"


def _every_call_answered(request: CheckedRequest) -> Iterator[str]:
    answered = {str(item.get("call_id")) for _, item in request.of("function_call_output")}
    for turn, item in request.of("function_call"):
        if str(item.get("call_id")) not in answered:
            yield f"{turn.where}: no tool output found for function call {item.get('call_id')}"


def _every_output_called(request: CheckedRequest) -> Iterator[str]:
    calls: set[str] = set()
    for where, kind, item in _items(request):
        call_id = str(item.get("call_id"))
        if kind == "function_call":
            calls.add(call_id)
        elif kind == "function_call_output" and call_id not in calls and not _goes_on(request):
            yield f"{where}: no tool call found for the output of {call_id!r}"


def _goes_on(request: CheckedRequest) -> bool:
    return bool(request.body.get("previous_response_id") or request.body.get("conversation"))


def _outputs_follow(request: CheckedRequest) -> Iterator[str]:
    """Results come before the next question: what stands between is refused by those who make messages of it."""
    yield from _left_open(request, lambda kind, item: kind == "message" and item.get("role") != "assistant")


def _outputs_directly(request: CheckedRequest) -> Iterator[str]:
    yield from _left_open(request, lambda kind, _: kind == "message")


def _left_open(request: CheckedRequest, closes: Any) -> Iterator[str]:
    missing: list[str] = []
    for where, kind, item in _items(request):
        if kind == "function_call":
            missing.append(str(item.get("call_id")))
        elif kind == "function_call_output":
            missing = [call for call in missing if call != item.get("call_id")]
        elif closes(kind, item):
            for call in missing:
                yield f"{where}: No tool output found for tool call {call}."
            missing = []


def _summaries(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("reasoning"):
        if not isinstance(item.get("summary"), list):
            yield f"Missing required parameter: '{turn.where}.summary'."


def _kept_reasoning(request: CheckedRequest) -> Iterator[str]:
    """Look at reasoning that the server was told not to keep: it must come whole."""
    if request.body.get("store") is False:
        for turn, item in request.of("reasoning"):
            if not (item.get("encrypted_content") or item.get("content")):
                yield (
                    f"{turn.where}: Item with id '{item.get('id')}' not found. Items are not persisted when `store` is "
                    "set to false: reasoning that is not stored needs its content"
                )


def _followed_reasoning(request: CheckedRequest) -> Iterator[str]:
    for number, turn in enumerate(request.turns):
        item = turn.blocks[0]
        if kind_of(item) == "reasoning":
            after = request.turns[number + 1].blocks[0] if number + 1 < len(request.turns) else {}
            ends = not after or (kind_of(after) == "message" and after.get("role") != "assistant")
            if ends or kind_of(after).endswith("_output"):
                yield (f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.")


def _searches(request: CheckedRequest) -> Iterator[str]:
    for turn, item in request.of("web_search_call"):
        if not item.get("id"):
            yield f"Missing required parameter: '{turn.where}.id', a search needs its id"


def _room(request: CheckedRequest) -> Iterator[str]:
    room = request.body.get("max_output_tokens")
    if room is not None and (not isinstance(room, int) or room < _LEAST_ROOM):
        yield f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {_LEAST_ROOM}, got {room}"


_REFERENCE = "platform.openai.com/docs/api-reference/responses/create"


RESPONSES_RULES = (
    RequestRule(
        what="fields of the API",
        source=f"{_REFERENCE} and the 400 \"Unknown parameter: 'x'\", 2026-05",
        check=unknown_fields(_TOP, "Unknown parameter: '{}'."),
        code="unknown_parameter",
        vendors=MAKERS,
    ),
    RequestRule(
        what="16 tokens of room",
        source="the 400: \"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16\", 2026-07",
        check=_room,
        code="integer_below_min_value",
    ),
    RequestRule(
        what="no sampling with reasoning",
        source="the 400: \"Unsupported parameter: 'temperature' is not supported with this model\", 2026-01",
        check=sampling("temperature", "top_p"),
        models=REASONS,
        vendors=MAKERS,
    ),
    RequestRule(
        what="no effort without reasoning",
        source="the 400: \"Unsupported parameter: 'reasoning.effort' is not supported with this model\", 2025-11",
        check=absent("reasoning"),
        code="unsupported_parameter",
        models=NO_REASONING,
        vendors=MAKERS,
    ),
    RequestRule(what="kinds of items", source=f"{_REFERENCE}: input, 2026-05", check=_kinds, code="invalid_value"),
    RequestRule(what="roles", source=f"{_REFERENCE}: input.role, 2025-11", check=_roles, code="invalid_value"),
    RequestRule(
        what="content", source="the 400: \"Missing required parameter: 'input[0].content'\", 2025-11", check=_content
    ),
    RequestRule(
        what="content that is not empty",
        source="servers that copy the API: 'item['content'] is empty' (llama.cpp), 2026-09",
        check=_some_content,
        vendors=("llama.cpp",),
    ),
    RequestRule(
        what="parts of content",
        source="the 400: \"Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'\", 2026-01",
        check=_parts,
        code="invalid_value",
    ),
    RequestRule(what="calls", source=f"{_REFERENCE}: function_call, 2025-11", check=_calls),
    RequestRule(
        what="arguments are JSON",
        source="servers that copy the API and read them for the template (vLLM, llama.cpp), 2025-11",
        check=_arguments,
        vendors=("vllm",),
    ),
    RequestRule(
        what="names of calls",
        source="the 400: \"Invalid 'input[3].name': string does not match pattern\", 2025-11",
        check=_names_of_calls,
        code="invalid_value",
    ),
    RequestRule(
        what="outputs", source="the 400: \"Missing required parameter: 'input[3].output'\", 2025-11", check=_outputs
    ),
    RequestRule(
        what="call ids of 64 characters",
        source="the 400: \"Invalid 'input[95].call_id': string too long ... maximum length 64\", 2026-06",
        check=_call_ids,
        code="string_above_max_length",
    ),
    RequestRule(
        what="characters of ids",
        source="the 400: 'Expected an ID that contains letters, numbers, underscores, or dashes', 2026-01",
        check=_ids,
        code="invalid_value",
    ),
    RequestRule(
        what="ids of 64 characters",
        source="the 400: \"Invalid 'input[2].id': string too long. Expected a string with maximum length 64\", 2026-03",
        check=_short_ids,
        code="string_above_max_length",
        vendors=MAKERS,
    ),
    RequestRule(
        what="what ids begin with",
        source="the 400: \"Expected an ID that begins with 'fc'\", 2025-11",
        check=_prefixes,
        code="invalid_value",
        vendors=MAKERS,
        usual=False,
    ),
    RequestRule(
        what="items once", source="the 400: 'Duplicate item found with id', 2025-11", check=_ids_once, vendors=MAKERS
    ),
    RequestRule(
        what="ids of calls once",
        source="servers that give other models their requests, which want ids once, 2025-11",
        check=_calls_once,
        vendors=("openrouter",),
    ),
    RequestRule(
        what="a result for every call",
        source="the 400: 'No tool output found for function call call_1', 2025-11",
        check=_every_call_answered,
    ),
    RequestRule(
        what="a call for every result",
        source="the 400: 'No tool call found for function call output with call_id call_1', 2025-11",
        check=_every_output_called,
    ),
    RequestRule(
        what="results before the next question",
        source="servers that make chat messages of it: 'No tool output found for tool call', 2026-05",
        check=_outputs_follow,
        vendors=("deepseek", "vllm"),
    ),
    RequestRule(
        what="results directly after calls",
        source="DeepSeek's 400: 'No tool output found for tool call call-a' (recorded), 2026-05",
        check=_outputs_directly,
        vendors=("deepseek",),
        usual=False,
    ),
    RequestRule(
        what="reasoning has a summary",
        source="the 400: \"Missing required parameter: 'input[1].summary'\", 2026-09",
        check=_summaries,
        code="missing_required_parameter",
    ),
    RequestRule(
        what="reasoning that is not stored",
        source="the 404: 'Items are not persisted when `store` is set to false', 2025-11",
        check=_kept_reasoning,
        status=404,
    ),
    RequestRule(
        what="reasoning is followed",
        source="the 400: \"of type 'reasoning' was provided without its required following item\", 2026-03",
        check=_followed_reasoning,
        vendors=MAKERS,
    ),
    RequestRule(what="searches", source=f"{_REFERENCE}: web_search_call.id, 2025-11", check=_searches),
    *OPENAI_MEDIA,
    *rows_of_tools(OPENAI_TOOLS),
)
RESPONSES_BOOK = WireRules(shape=shape_rules("input"), rules=RESPONSES_RULES, read=_sent)
