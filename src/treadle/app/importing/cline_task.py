"""Reading a task folder of Cline: the conversation, what each request cost, and the models that were used."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from treadle.app.importing.foreign_blocks import (
    count_in,
    json_list,
    parsed,
    shown_block,
    text_in,
    time_in,
    wire_blocks,
    wire_call,
    wire_result,
)
from treadle.app.importing.imported_log import ForeignCall, ForeignMessage, ForeignResult, ForeignSession, merged
from treadle.protocol.messages import Role, Text
from treadle.protocol.patterns import regex
from treadle.protocol.usage import Usage

CONVERSATION = "api_conversation_history.json"
SCREEN = "ui_messages.json"
_METADATA = "task_metadata.json"

_TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "search_files", "list_files"),
    *("list_code_definition_names", "browser_action", "use_mcp_tool", "access_mcp_resource", "ask_followup_question"),
    *("attempt_completion", "new_task", "plan_mode_respond", "load_mcp_documentation", "web_fetch", "condense"),
)
_CALL = regex(rf"<({'|'.join(_TOOLS)})>(.*?)</\1>", re.DOTALL)
_ARGUMENT = regex(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)
_RESULT = regex(r"\[(\w+)(?: for [^\n]*)?\] Result:\s*")
_ENVIRONMENT = regex(r"<environment_details>.*?</environment_details>\s*", re.DOTALL)
_FOLDER = regex(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
_TASK = regex(r"\s*<(task|feedback|user_message|answer)>\n?(.*?)\n?</\1>\s*", re.DOTALL)
_DONE = ("attempt_completion", "plan_mode_respond")
"""Calls whose text is the answer."""


def read_task(folder: Path) -> ForeignSession:
    """Read a task; what is broken or missing is named. Raises `OSError` where nothing can be read."""
    problems: list[str] = []
    screen = _optional(folder / SCREEN, problems)
    if (folder / CONVERSATION).is_file():
        entries = json_list(folder / CONVERSATION, problems)
        messages = _with_costs(list(_messages(entries)), screen)
    else:
        problems.append(f"{CONVERSATION} is missing; the words of {SCREEN} were taken.")
        entries, messages = [], list(_from_screen(screen))
    begun = time_in(int(folder.name)) if folder.name.isdecimal() and len(folder.name) < 16 else 0
    if messages and not messages[0].at:
        messages[0] = replace(messages[0], at=begun)
    return ForeignSession(
        origin="cline",
        id=folder.name,
        messages=merged(messages),
        workspace=_workspace(entries),
        model=_model(folder / _METADATA, entries),
        problems=tuple(problems),
    )


def _optional(path: Path, problems: list[str]) -> list[Mapping[str, Any]]:
    try:
        return json_list(path, problems)
    except OSError:
        problems.append(f"{path.name} cannot be read; times and costs are not known.")
        return []


def _messages(entries: Sequence[Mapping[str, Any]]) -> Iterator[ForeignMessage]:
    last: tuple[ForeignCall, ...] = ()
    for number, entry in enumerate(entries):
        if entry.get("role") == "assistant":
            message = _of_model(entry, number)
            last = message.calls
            yield message
        else:
            yield _of_user(entry, last)


def _of_model(entry: Mapping[str, Any], number: int) -> ForeignMessage:
    content: list[Any] = []
    calls: list[ForeignCall] = []
    for block in wire_blocks(entry.get("content")):
        call: ForeignCall | None = None
        if block.get("type") == "tool_use":
            call = wire_call(block)
        elif block.get("type") == "text":
            text, call = _call_in(text_in(block.get("text")), f"{number}-{len(calls)}")
            content += [Text(text=text)] if text.strip() else []
        else:
            content.append(shown_block(block))
            continue
        if call is not None and call.name in _DONE:
            answer = text_in(call.arguments.get("result")) or text_in(call.arguments.get("response"))
            content += [Text(text=answer)] if answer.strip() else []
        elif call is not None:
            calls.append(call)
    known = tuple(one for one in content if one is not None)
    return ForeignMessage(role=Role.ASSISTANT, at=time_in(entry.get("ts")), content=known, calls=tuple(calls))


def _call_in(text: str, name: str) -> tuple[str, ForeignCall | None]:
    """Find the call that a text ends with, as XML; gives the text before it."""
    found = _CALL.search(text)
    if found is None:
        return text, None
    arguments = dict(_ARGUMENT.findall(found[2]))
    return text[: found.start()].rstrip(), ForeignCall(id=f"xml-{name}", name=found[1], arguments=arguments)


def _of_user(entry: Mapping[str, Any], calls: Sequence[ForeignCall]) -> ForeignMessage:
    content: list[Any] = []
    results: dict[str, ForeignResult] = {}
    into = ""
    for block in wire_blocks(entry.get("content")):
        if block.get("type") == "tool_result":
            results.update([wire_result(block)])
            continue
        if block.get("type") != "text":
            content.append(shown_block(block))
            continue
        text = _ENVIRONMENT.sub("", text_in(block.get("text")))
        if begun := _RESULT.match(text):
            into = next((one.id for one in calls if one.name == begun[1] and one.id.startswith("xml-")), "")
            text = text[begun.end() :]
        if inner := _TASK.fullmatch(text):
            content.append(Text(text=inner[2]))
        elif text.strip() and into:
            before = results[into].content if into in results else ()
            results[into] = ForeignResult(content=(*before, Text(text=text)))
        elif text.strip():
            content.append(Text(text=text))
    known = tuple(one for one in content if one is not None)
    return ForeignMessage(role=Role.USER, at=time_in(entry.get("ts")), content=known, results=results)


def _with_costs(messages: list[ForeignMessage], screen: Sequence[Mapping[str, Any]]) -> list[ForeignMessage]:
    """Give the replies the times and costs of the requests on the screen, in their order."""
    requests = [one for one in screen if one.get("say") == "api_req_started"]
    replies = [index for index, one in enumerate(messages) if one.role is Role.ASSISTANT]
    for index, request in zip(replies, requests, strict=False):
        said = parsed(text_in(request.get("text")).encode(errors="replace"))
        given = said if isinstance(said, dict) else {}
        cost = given.get("cost")
        messages[index] = replace(
            messages[index],
            at=messages[index].at or time_in(request.get("ts")),
            cost=float(cost) if isinstance(cost, int | float) and 0 <= cost < 10**9 else None,
            usage=Usage(
                input_tokens=count_in(given.get("tokensIn")),
                output_tokens=count_in(given.get("tokensOut")),
                cache_read_tokens=count_in(given.get("cacheReads")),
                cache_write_tokens=count_in(given.get("cacheWrites")),
            ),
        )
    return messages


_OF_USER, _OF_MODEL = ("task", "user_feedback"), ("text", "completion_result")


def _from_screen(screen: Sequence[Mapping[str, Any]]) -> Iterator[ForeignMessage]:
    for number, one in enumerate(screen):
        kind, text = one.get("say"), text_in(one.get("text"))
        if text.strip() and (kind in (*_OF_USER, *_OF_MODEL) or number == 0):
            role = Role.USER if kind in _OF_USER or number == 0 else Role.ASSISTANT
            yield ForeignMessage(role=role, at=time_in(one.get("ts")), content=(Text(text=text),))


def _workspace(entries: Sequence[Mapping[str, Any]]) -> str:
    for entry in entries:
        for block in wire_blocks(entry.get("content")):
            if found := _FOLDER.search(text_in(block.get("text"))):
                return found[1]
    return ""


def _model(metadata: Path, entries: Sequence[Mapping[str, Any]]) -> str:
    """Give the model that was used last, by the messages, else by the task's metadata."""
    try:
        value = parsed(metadata.read_bytes()) if metadata.stat().st_size < 10**7 else None
    except OSError:
        value = None
    listed = value.get("model_usage") if isinstance(value, dict) else None
    by_task = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    by_message = [info for entry in entries if isinstance(info := entry.get("modelInfo"), dict)]
    used = [(text_in(one.get("model_provider_id")), text_in(one.get("model_id"))) for one in by_task]
    used += [(text_in(one.get("providerId")), text_in(one.get("modelId"))) for one in by_message]
    return next((f"{provider}/{model}" for provider, model in reversed(used) if provider and model), "")
