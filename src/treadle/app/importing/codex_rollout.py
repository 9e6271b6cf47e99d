"""Reading a rollout of Codex: JSON lines of a session, as each version since 2025 has written them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from treadle.app.importing.foreign_blocks import (
    as_text,
    broken_lines,
    count_in,
    json_entries,
    parsed,
    text_in,
    time_in,
    wire_blocks,
)
from treadle.app.importing.imported_log import ForeignCall, ForeignMessage, ForeignResult, ForeignSession, merged
from treadle.protocol.messages import Image, Role, Text, Thinking
from treadle.protocol.patterns import regex
from treadle.protocol.usage import Usage

_WRAPPED = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_SPOKEN = {"user_message": Role.USER, "agent_message": Role.ASSISTANT}
_TAGS = """
    environment_context user_instructions INSTRUCTIONS permissions collaboration_mode turn_aborted skills_instructions
    apps_instructions plugins_instructions model_switch subagent_notification
"""
_SURROUNDINGS = regex(rf"\s*(?:<(?:{'|'.join(_TAGS.split())})\b|# AGENTS\.md instructions\b)")
"""What Codex sends as the user's and the user did not write."""

_REQUEST = "## My request for Codex:"
_PICTURE = regex(r"data:(image/[\w.+-]+);base64,")
_FOLDER = regex(r"<cwd>([^<]+)</cwd>")


def is_rollout(first: object) -> bool:
    """Whether the first line of a file, parsed, is that of a rollout."""
    if not isinstance(first, dict):
        return False
    if text_in(first.get("type")) in _WRAPPED and isinstance(first.get("payload"), dict):
        return True
    is_old = "id" in first and "timestamp" in first and ("instructions" in first or "git" in first)
    return is_old or (isinstance(first.get("session"), dict) and isinstance(first.get("items"), list))


def read_rollout(path: Path) -> ForeignSession:
    """Read a rollout; lines that are broken are left out and named. Raises `OSError`."""
    entries, broken = json_entries(path)
    lines = list(_lines(entries))
    meta = next((payload for kind, _, payload in lines if kind == "session_meta"), {})
    contexts = [payload for kind, _, payload in lines if kind == "turn_context"]
    items = [(at, payload) for kind, at, payload in lines if kind == "response_item"]
    has_words = any(one.get("type") == "message" and one.get("role") == "assistant" for _, one in items)
    has_events = any(kind == "event_msg" and text_in(one.get("type")) in _SPOKEN for kind, _, one in lines)
    messages = list(_messages(lines, by_events=has_events and not has_words))
    model = next(
        (name for one in reversed(contexts) if (name := text_in(one.get("model")))), text_in(meta.get("model"))
    )
    folder = text_in(meta.get("cwd")) or next((name for one in contexts if (name := text_in(one.get("cwd")))), "")
    return ForeignSession(
        origin="codex",
        id=text_in(meta.get("id")) or path.stem,
        messages=merged(messages),
        workspace=folder or _folder_in(items),
        model=f"{text_in(meta.get('model_provider')) or 'openai'}/{model}" if model else "",
        problems=broken_lines(broken),
    )


def _lines(entries: list[Mapping[str, Any]]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Give each entry in the form of today: its kind, its time, and what it is about."""
    for entry in entries:
        kind, payload, at = text_in(entry.get("type")), entry.get("payload"), time_in(entry.get("timestamp"))
        if kind in _WRAPPED and isinstance(payload, dict):
            yield kind, at, payload
        elif isinstance(entry.get("session"), dict):  # one JSON value, as the first versions wrote it
            yield "session_meta", at, entry["session"]
            items = entry.get("items")
            yield from (("response_item", 0, one) for one in items or () if isinstance(one, dict))
        elif kind in _ITEMS or kind in _CALLS or kind in _OUTPUTS:
            yield "response_item", at, entry
        elif "id" in entry and not kind:
            yield "session_meta", at, entry


def _messages(lines: list[tuple[str, int, Mapping[str, Any]]], *, by_events: bool) -> Iterator[ForeignMessage]:
    """Give what was said, without what was taken back; `by_events` where the words are in events alone."""
    found: list[ForeignMessage] = []
    for kind, at, payload in lines:
        of = text_in(payload.get("type"))
        if kind == "response_item":
            if not (by_events and of == "message"):
                found += _of_item(payload, of, at)
        elif kind == "event_msg" and of == "token_count":
            _count(found, payload)
        elif kind == "event_msg" and of == "thread_rolled_back":
            _take_back(found, count_in(payload.get("num_turns")))
        elif kind == "event_msg" and by_events and of in _SPOKEN:
            text = _asked(text_in(payload.get("message")))
            found += [ForeignMessage(role=_SPOKEN[of], at=at, content=(Text(text=text),))] if text else []
    return iter(found)


def _of_item(item: Mapping[str, Any], kind: str, at: int) -> list[ForeignMessage]:
    name = text_in(item.get("call_id")) or text_in(item.get("id"))
    if kind in _CALLS:
        call = ForeignCall(
            id=name, name=text_in(item.get("name")) or kind.removesuffix("_call"), arguments=_given(item)
        )
        return [ForeignMessage(role=Role.ASSISTANT, at=at, calls=(call,))]
    if kind in _OUTPUTS:
        return [ForeignMessage(role=Role.USER, at=at, results={name: _result(item.get("output"))})]
    if kind == "reasoning":
        thought = "\n\n".join(text for one in wire_blocks(item.get("summary")) if (text := text_in(one.get("text"))))
        return [ForeignMessage(role=Role.ASSISTANT, at=at, content=(Thinking(text=thought),))] if thought else []
    role = {"user": Role.USER, "assistant": Role.ASSISTANT}.get(text_in(item.get("role")))
    if kind != "message" or role is None:
        return []
    content = tuple(one for block in wire_blocks(item.get("content")) if (one := _shown(block, role)) is not None)
    return [ForeignMessage(role=role, at=at, content=content)] if content else []


def _shown(block: Mapping[str, Any], role: Role) -> Text | Image | None:
    if block.get("type") == "input_image":
        return _picture(text_in(block.get("image_url")))
    text = as_text(block["text"]) if "text" in block else as_text(dict(block))
    text = _asked(text) if role is Role.USER else text
    return Text(text=text) if text.strip() else None


def _asked(text: str) -> str:
    """Give what the user wrote, without what Codex or an editor put around it."""
    if _SURROUNDINGS.match(text):
        return ""
    return text.rpartition(_REQUEST)[2].strip() if _REQUEST in text else text


def _picture(url: str) -> Text | Image | None:
    found = _PICTURE.match(url)
    if found is None:
        return Text(text=url) if url else None
    return Image(media_type=found[1], data=url[found.end() :])


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    """Read the arguments of a call: JSON in a text, a text, or what a shell or a search was given."""
    said: Any = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), {})
    value = parsed(said.encode(errors="replace")) if isinstance(said, str) else said
    return value if isinstance(value, dict) else {"input": said} if said else {}


def _result(output: Any) -> ForeignResult:
    """Read what came of a call: a text, blocks, or a text with `success` or an exit code beside it."""
    value = parsed(output.encode(errors="replace")) if isinstance(output, str) and output[:1] == "{" else output
    failed = False
    if isinstance(value, dict) and ("content" in value or "output" in value):
        metadata = value.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        failed = value.get("success") is False or (isinstance(code, int) and code != 0)
        output = value.get("content", value.get("output"))
    shown = tuple(one for block in wire_blocks(output) if (one := _shown(block, Role.ASSISTANT)) is not None)
    return ForeignResult(content=shown or (Text(text="(no output)"),), is_error=failed)


def _count(found: list[ForeignMessage], payload: Mapping[str, Any]) -> None:
    """Add what a request used to the last words of the model."""
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) else None
    at = next((at for at in range(len(found) - 1, -1, -1) if found[at].role is Role.ASSISTANT), None)
    if not isinstance(last, dict) or at is None or found[at].usage != Usage():
        return
    cached = count_in(last.get("cached_input_tokens"))
    used = Usage(
        input_tokens=max(0, count_in(last.get("input_tokens")) - cached),
        output_tokens=count_in(last.get("output_tokens")),
        cache_read_tokens=cached,
    )
    found[at] = replace(found[at], usage=used)


def _take_back(found: list[ForeignMessage], turns: int) -> None:
    """Leave out the last turns, each from what the user said on."""
    for _ in range(min(turns, len(found))):
        prompts = [at for at, one in enumerate(found) if one.role is Role.USER and one.content]
        del found[prompts[-1] if prompts else len(found) :]


def _folder_in(items: list[tuple[int, Mapping[str, Any]]]) -> str:
    for _, item in items:
        for block in wire_blocks(item.get("content")) if item.get("type") == "message" else ():
            if found := _FOLDER.search(text_in(block.get("text"))):
                return found[1]
    return ""
