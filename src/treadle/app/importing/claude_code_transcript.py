"""Reading a transcript of Claude Code: JSON lines, each a message or a note beside the conversation."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.app.importing.foreign_blocks import (
    broken_lines,
    json_entries,
    shown_block,
    text_in,
    time_in,
    usage_in,
    wire_blocks,
    wire_call,
    wire_result,
)
from treadle.app.importing.imported_log import ForeignMessage, ForeignSession, merged
from treadle.protocol.messages import Role
from treadle.protocol.usage import Usage

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Lines that name the session, the strongest first, and where in them the name is."""


def read_transcript(path: Path) -> ForeignSession:
    """Read a transcript; lines that are broken are left out and named. Raises `OSError`."""
    entries, broken = json_entries(path)
    spoken = [one for one in entries if text_in(one.get("type")) in _ROLES and one.get("isSidechain") is not True]
    kept = _on_last_branch([one for one in spoken if one.get("isMeta") is not True])
    titles = {kind: text_in(one.get(_TITLES[kind])) for one in entries if (kind := text_in(one.get("type"))) in _TITLES}
    messages = list(_messages(kept))
    models = [name for one in kept if (name := text_in(_message(one).get("model"))) and not name.startswith("<")]
    return ForeignSession(
        origin="claude-code",
        id=next((name for one in kept if (name := text_in(one.get("sessionId")))), path.stem),
        messages=merged(messages),
        title=next((titles[kind] for kind in _TITLES if titles.get(kind)), ""),
        workspace=next((folder for one in kept if (folder := text_in(one.get("cwd")))), ""),
        model=f"anthropic/{models[-1]}" if models else "",
        problems=broken_lines(broken),
    )


def _message(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    message = entry.get("message")
    return message if isinstance(message, dict) else {"content": message}


def _on_last_branch(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out what was said before the user went back: of prompts with one parent only the last goes on."""
    last: dict[str, str] = {}
    for one in entries:
        if _is_prompt(one) and text_in(one.get("parentUuid")) and text_in(one.get("uuid")):
            last[text_in(one.get("parentUuid"))] = text_in(one.get("uuid"))
    left: set[str] = set()
    kept = []
    for one in entries:
        own, parent = text_in(one.get("uuid")), text_in(one.get("parentUuid"))
        if parent in left or (_is_prompt(one) and parent and own and last.get(parent) != own):
            left.add(own)
        else:
            kept.append(one)
    return kept


def _is_prompt(entry: Mapping[str, Any]) -> bool:
    if entry.get("type") != "user":
        return False
    return all(block.get("type") != "tool_result" for block in wire_blocks(_message(entry).get("content")))


def _messages(entries: Sequence[Mapping[str, Any]]) -> Iterator[ForeignMessage]:
    counted: set[str] = set()
    for entry in entries:
        message, role = _message(entry), _ROLES[entry["type"]]
        blocks = wire_blocks(message.get("content"))
        calls = [one for one in blocks if role is Role.ASSISTANT and one.get("type") == "tool_use"]
        results = [one for one in blocks if role is Role.USER and one.get("type") == "tool_result"]
        shown = [shown_block(one) for one in blocks if one not in calls and one not in results]
        name = text_in(message.get("id"))
        usage = usage_in(message.get("usage")) if role is Role.ASSISTANT and name not in counted else Usage()
        counted.update([name] if name else [])  # each block of a reply is a line of its own, with the usage of all
        yield ForeignMessage(
            role=role,
            at=time_in(entry.get("timestamp")),
            content=tuple(one for one in shown if one is not None),
            calls=tuple(map(wire_call, calls)),
            results=dict(map(wire_result, results)),
            usage=usage,
        )
