"""Reading a session folder of Cline's command line (3 and later): `ID.json` and `ID.messages.json`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from treadle.app.importing.foreign_blocks import (
    LARGEST_FILE,
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
from treadle.app.importing.imported_log import ForeignMessage, ForeignSession, merged
from treadle.protocol.messages import Role, Text
from treadle.protocol.patterns import regex
from treadle.protocol.usage import Usage

CLINE_MESSAGES = ".messages.json"
"""How the file with the messages of a session ends."""

_NOTICE = regex(r"<mode_notice\b[^>]*>.*?</mode_notice>|<environment_details>.*?</environment_details>", re.DOTALL)
_WRAPPED = regex(r"</?(?:user_input|user_command)\b[^>]*>")


def messages_file(folder: Path, names: list[str]) -> Path | None:
    """Find the messages of the session that a folder is; None where it is none."""
    own = f"{folder.name}{CLINE_MESSAGES}"
    return folder / own if own in names else None


def read_session(file: Path) -> ForeignSession:
    """Read a session; what is broken or missing is named. Raises `OSError` where nothing can be read."""
    problems: list[str] = []
    name = file.name.removesuffix(CLINE_MESSAGES)
    meta = _table(file.with_name(f"{name}.json"), problems)
    entries = json_list(file, problems, "messages")
    models = [info for one in entries if isinstance(info := one.get("modelInfo"), dict)]
    last = models[-1] if models else {"id": meta.get("model"), "provider": meta.get("provider")}
    provider, model = text_in(last.get("provider")), text_in(last.get("id"))
    metadata = meta.get("metadata")
    return ForeignSession(
        origin="cline-cli",
        id=text_in(meta.get("session_id")) or name,
        messages=merged(_messages(entries, time_in(meta.get("started_at")))),
        title=text_in(metadata.get("title")) if isinstance(metadata, dict) else "",
        workspace=text_in(meta.get("cwd")) or text_in(meta.get("workspace_root")),
        model=f"{provider}/{model}" if provider and model else "",
        problems=tuple(problems),
    )


def _table(file: Path, problems: list[str]) -> Mapping[str, Any]:
    try:
        value = parsed(file.read_bytes()) if file.stat().st_size <= LARGEST_FILE else None
    except OSError:
        value = None
    if not isinstance(value, dict):
        problems.append(f"{file.name} cannot be read; the folder and the model are not known.")
        return {}
    return value


def _messages(entries: list[Mapping[str, Any]], begun: int) -> Iterator[ForeignMessage]:
    for entry in entries:
        role = Role.ASSISTANT if entry.get("role") == "assistant" else Role.USER
        blocks = wire_blocks(entry.get("content"))
        calls = [one for one in blocks if role is Role.ASSISTANT and one.get("type") == "tool_use"]
        results = [one for one in blocks if role is Role.USER and one.get("type") == "tool_result"]
        others = [one for one in blocks if one not in calls and one not in results]
        shown = [shown_block(one if role is Role.ASSISTANT else _asked(one)) for one in others]
        found = entry.get("metrics")
        used = found if isinstance(found, dict) else {}
        cost, read = used.get("cost"), count_in(used.get("cacheReadTokens"))
        yield ForeignMessage(
            role=role,
            at=_time(entry.get("ts")) or begun,
            content=tuple(one for one in shown if one is not None and (not isinstance(one, Text) or one.text.strip())),
            calls=tuple(map(wire_call, calls)),
            results=dict(map(wire_result, results)),
            usage=Usage(
                input_tokens=count_in(used.get("inputTokens")),
                output_tokens=count_in(used.get("outputTokens")),
                cache_read_tokens=read,
                cache_write_tokens=count_in(used.get("cacheWriteTokens")),
            ),
            cost=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0 else None,
        )


def _asked(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a block of the user's without what Cline put around the words."""
    if block.get("type") != "text":
        return block
    return {**block, "text": _WRAPPED.sub("", _NOTICE.sub("", text_in(block.get("text")))).strip()}


def _time(value: Any) -> int:
    """Read a time; one in seconds is one too."""
    at = time_in(value)
    return at * 1000 if 0 < at < 10**11 else at
