"""What both APIs of OpenAI refuse, and what Chat Completions refuses: one row each, with its source.

Many others speak Chat Completions; what some of them refuse besides is a row with their names.
"""

import re
from collections.abc import Iterator
from typing import Any

from treadle.providers.scripted.openai_parameters import CHAT_PARAMETERS, MAKERS, MOST_TOOLS
from treadle.providers.scripted.refused_schemas import OPENAI_TOOLS
from treadle.providers.scripted.request_rules import (
    Body,
    CheckedMessage,
    CheckedRequest,
    RequestRule,
    WireRules,
    is_object,
    kind_of,
    shape_rules,
)
from treadle.providers.scripted.wire_format import duplicates, texts

_LONGEST_ID = 40
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_STRICT_TEMPLATES = ("mistral", "alibaba", "vllm")
"""Whose templates want the system message first and a question or a result last."""


def _sent(body: Body) -> CheckedRequest:
    """Read a body of Chat Completions whose messages are objects."""
    functions = [
        tool.get("function") or {} for tool in body.get("tools") or () if tool.get("type", "function") == "function"
    ]
    tools = [(one.get("name"), one.get("description"), one.get("parameters")) for one in functions]
    turns = [
        CheckedMessage(where=f"messages[{number}]", role=str(message.get("role")), blocks=[message])
        for number, message in enumerate(body["messages"])
    ]
    return CheckedRequest(body, turns, tools)


def calls_of(turn: CheckedMessage) -> list[dict[str, Any]]:
    """The calls of a message."""
    return [call for call in turn.blocks[0].get("tool_calls") or () if isinstance(call, dict)]


def _few_calls(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if len(calls_of(turn)) > MOST_TOOLS:
            yield f"Invalid '{turn.where}.tool_calls': array too long. Expected at most {MOST_TOOLS}"


def _roles(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if turn.role not in _ROLES:
            yield f"{turn.where}: unknown role {turn.role!r}"


def _system_first(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns[1:]:
        if turn.role in ("system", "developer"):
            yield f"{turn.where}: the system message must come first"


def _last_message(request: CheckedRequest) -> Iterator[str]:
    last = request.turns[-1]
    if last.role not in ("user", "tool") and not last.blocks[0].get("prefix"):
        yield "Expected last role User or Tool: the last message must be the user's or a tool's"


def _results_after_calls(request: CheckedRequest) -> Iterator[str]:
    calls: list[str] = []
    for turn in request.turns:
        if turn.role == "tool":
            call_id = str(turn.blocks[0].get("tool_call_id"))
            if call_id not in calls:
                yield f"{turn.where}: 'tool' must follow the message with the call {call_id!r} directly"
        else:
            calls = [str(call.get("id")) for call in calls_of(turn)]


def _every_call_answered(request: CheckedRequest) -> Iterator[str]:
    missing: list[str] = []
    for turn in (*request.turns, CheckedMessage(where="messages", role="user", blocks=[{}])):
        if turn.role == "tool":
            missing = [call for call in missing if call != turn.blocks[0].get("tool_call_id")]
            continue
        if missing:
            yield f"{turn.where}: tool_call_ids without a response directly after: {', '.join(missing)}"
        missing = [str(call.get("id")) for call in calls_of(turn)]


def _one_answer_each(request: CheckedRequest) -> Iterator[str]:
    answered: list[str] = []
    for turn in request.turns:
        if turn.role != "tool":
            answered = []
            continue
        call_id = str(turn.blocks[0].get("tool_call_id"))
        if call_id in answered:
            yield f"{turn.where}: 'tool' must follow the message with the call {call_id!r} directly, and only once"
        answered.append(call_id)


def _ids_once(request: CheckedRequest) -> Iterator[str]:
    for call_id in duplicates(str(call.get("id")) for turn in request.turns for call in calls_of(turn)):
        yield f"tool call ids must be unique: {call_id}"


def _content(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        message = turn.blocks[0]
        if message.get("content") is None and not (turn.role == "assistant" and _says_otherwise(message)):
            yield f"Invalid value for 'content': expected a string, got null. {turn.where}: content must not be empty"


def _says_otherwise(message: dict[str, Any]) -> bool:
    return any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio"))


def _some_content(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        content = turn.blocks[0].get("content")
        if (content in ("", []) and not _says_otherwise(turn.blocks[0])) or (
            isinstance(content, list) and any(not text for text in texts(content))
        ):
            yield f"{turn.where}: content must not be empty"


def _parts(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        content = turn.blocks[0].get("content")
        allowed = ("text", "image_url", "input_audio", "file") if turn.role == "user" else ("text", "refusal")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and kind_of(part) not in (*allowed, "thinking", "reasoning"):
                yield f"Invalid '{turn.where}': content of type {kind_of(part)!r} is not possible here"


def _calls(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for call in calls_of(turn):
            function = call.get("function") or {}
            if call.get("type") != "function" or not call.get("id") or not function.get("name"):
                yield f"{turn.where}: a tool call needs the type 'function', an id and a name"


def _arguments(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for call in calls_of(turn):
            function = call.get("function") or {}
            if not is_object(function.get("arguments")):
                yield f"{turn.where}: the arguments of {function.get('name')} are not JSON"


def _names_of_calls(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for call in calls_of(turn):
            name = str((call.get("function") or {}).get("name"))
            if not OPENAI_TOOLS.name.fullmatch(name):
                yield f"Invalid '{turn.where}.tool_calls.function.name': string does not match pattern, {name!r}"


def _short_ids(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for call in calls_of(turn):
            if len(str(call.get("id"))) > _LONGEST_ID:
                yield f"Invalid '{turn.where}.tool_calls.id': string too long. Expected at most {_LONGEST_ID}"


def _nine_characters(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        for call in calls_of(turn):
            if not _NINE.fullmatch(str(call.get("id"))):
                yield f"Tool call id was {call.get('id')} but must be a-z, A-Z, 0-9, with a length of 9."


def _user_after_tool(request: CheckedRequest) -> Iterator[str]:
    for before, turn in zip(request.turns, request.turns[1:], strict=False):
        if before.role == "tool" and turn.role == "user":
            yield f"{turn.where}: Unexpected role 'user' after role 'tool'"


def _reasoning_is_kept(request: CheckedRequest) -> Iterator[str]:
    if (request.body.get("thinking") or {}).get("type") != "enabled":
        return
    for turn in request.turns:
        if calls_of(turn) and turn.blocks[0].get("reasoning_content") is None:
            yield f"Missing `reasoning_content` field in the assistant message {turn.where}"


def _no_reasoning(request: CheckedRequest) -> Iterator[str]:
    for turn in request.turns:
        if "reasoning_content" in turn.blocks[0]:
            yield f"'{turn.where}' : property 'reasoning_content' is unsupported"


_REFERENCE = "platform.openai.com/docs/api-reference/chat/create"
CHAT_RULES = (
    *CHAT_PARAMETERS,
    RequestRule(
        what="128 calls",
        source="the 400: \"Invalid 'messages[2].tool_calls': array too long\", 2024-12",
        check=_few_calls,
        code="array_above_max_length",
        vendors=MAKERS,
    ),
    RequestRule(what="roles", source=f"{_REFERENCE}: messages, 2025-11", check=_roles),
    RequestRule(
        what="the system first",
        source="the template of Qwen: 'System message must be at the beginning', 2026-03",
        check=_system_first,
        vendors=_STRICT_TEMPLATES,
    ),
    RequestRule(
        what="a question or a result last",
        source="Mistral's 400: 'Expected last role User or Tool (or Assistant with prefix True)', 2025-12",
        check=_last_message,
        vendors=("mistral",),
    ),
    RequestRule(
        what="a call for every result",
        source="the 400: \"messages with role 'tool' must be a response to a preceeding message\", 2025-11",
        check=_results_after_calls,
    ),
    RequestRule(
        what="a result for every call",
        source="the 400: \"An assistant message with 'tool_calls' must be followed by tool messages\", 2025-11",
        check=_every_call_answered,
    ),
    RequestRule(
        what="one result for a call",
        source="the 400: \"messages with role 'tool' must be a response to a preceeding message\", 2025-11",
        check=_one_answer_each,
        vendors=("mistral", "deepseek"),
    ),
    RequestRule(
        what="ids of calls once",
        source="servers that give Claude its requests: 'ids must be unique', 2025-11",
        check=_ids_once,
        vendors=("openrouter", "snowflake"),
    ),
    RequestRule(
        what="content",
        source="the 400: \"Invalid value for 'content': expected a string, got null\", 2025-11",
        check=_content,
    ),
    RequestRule(
        what="content that is not empty",
        source="servers that give Claude or Gemini its requests: 'text content blocks must be non-empty', 2025-11",
        check=_some_content,
        vendors=("vertex-openai", "snowflake"),
    ),
    RequestRule(
        what="parts of content",
        source="the 400: 'Content blocks are expected to be either text or image_url type' (recorded), 2026-05",
        check=_parts,
        code="invalid_value",
    ),
    RequestRule(what="calls", source=f"{_REFERENCE}: tool_calls, 2025-11", check=_calls),
    RequestRule(
        what="arguments are JSON",
        source="vLLM and llama.cpp, which read them for the template: 'Failed to parse tool call arguments', 2025-11",
        check=_arguments,
        vendors=("vllm", "mistral"),
    ),
    RequestRule(
        what="names of calls",
        source="the 400: \"Invalid 'messages[2].tool_calls[0].function.name': string does not match pattern\", 2025-11",
        check=_names_of_calls,
        vendors=MAKERS,
    ),
    RequestRule(
        what="ids of 40 characters",
        source="the 400: \"Invalid 'messages[68].tool_calls[0].id': string too long ... maximum length 40\", 2026-02",
        check=_short_ids,
        code="string_above_max_length",
        vendors=MAKERS,
        usual=False,
    ),
    RequestRule(
        what="ids of 9 characters",
        source="Mistral's 400: 'Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9', 2025-11",
        check=_nine_characters,
        vendors=("mistral",),
        usual=False,
    ),
    RequestRule(
        what="no question after a result",
        source="Mistral's 400: \"Unexpected role 'user' after role 'tool'\", 2026-08",
        check=_user_after_tool,
        code="3230",
        vendors=("mistral",),
        usual=False,
    ),
    RequestRule(
        what="reasoning of calls",
        source="api-docs.deepseek.com/guides/thinking_mode and Moonshot's 400 'reasoning_content is missing', 2026-05",
        check=_reasoning_is_kept,
        vendors=("deepseek", "moonshot"),
        usual=False,
    ),
    RequestRule(
        what="no reasoning in history",
        source="Groq's 400: \"property 'reasoning_content' is unsupported\", 2025-11",
        check=_no_reasoning,
        vendors=("groq",),
        usual=False,
    ),
)
CHAT_BOOK = WireRules(shape=shape_rules("messages"), rules=CHAT_RULES, read=_sent)
