"""Reading what other programs keep: JSON that may be broken in any way, and content blocks as the wire has them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from treadle.app.importing.imported_log import LATEST, ForeignCall, ForeignResult, as_json
from treadle.protocol.messages import Document, Image, Text, Thinking
from treadle.protocol.usage import Usage

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is left out."""

LARGEST_FILE = 512 * 1024 * 1024
"""Bytes of a file that is one JSON value."""

_MOST_NAMED = 10


def parsed(raw: bytes) -> Any:
    """Parse JSON, with or without a mark of its encoding before it; None where it is none."""
    try:
        return msgspec.json.decode(raw.decode("utf-8-sig", errors="replace"))
    except (msgspec.MsgspecError, RecursionError):
        return None


def numbered_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Give the lines of a file that are not blank with their numbers; None for one that is too long."""
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        if not whole:
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        if line.strip():
            yield number, line if whole else None


def json_entries(path: Path) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Read a file of JSON lines; gives also the numbers of those that are no objects. Raises `OSError`."""
    entries: list[Mapping[str, Any]] = []
    broken: list[int] = []
    with path.open("rb") as stream:
        for number, line in numbered_lines(stream):
            entry = None if line is None else parsed(line)
            if isinstance(entry, dict):
                entries.append(entry)
            else:
                broken.append(number)
    if not entries and (whole := parsed(path.read_bytes()) if path.stat().st_size <= LARGEST_FILE else None):
        return ([whole], []) if isinstance(whole, dict) else ([], broken)
    return entries, broken


def broken_lines(broken: Sequence[int]) -> tuple[str, ...]:
    """Say which lines of a file were left out; nothing where none was."""
    numbers = ", ".join(map(str, broken[:_MOST_NAMED])) + (", …" if len(broken) > _MOST_NAMED else "")
    return (f"{len(broken)} lines are broken and were left out: {numbers}.",) if broken else ()


def json_list(path: Path, problems: list[str], key: str = "") -> list[Mapping[str, Any]]:
    """Read a file that is a list of objects, or has one under a key; of a cut one, those before the cut.

    Raises `OSError`.
    """
    if path.stat().st_size > LARGEST_FILE:
        problems.append(f"{path.name} is too large.")
        return []
    raw = path.read_bytes()
    value = parsed(raw)
    if key and isinstance(value, dict):
        value = value.get(key)
    elif value is None:
        text = raw.decode(errors="replace")
        begin = re.search(rf'"{key}"\s*:\s*(?=\[)', text) if key else None
        value = list_before_cut(text[begin.end() :] if begin else text)
        problems.append(f"{path.name} is broken; its first {len(value)} {key or 'entries'} were read.")
    if not isinstance(value, list):
        problems.append(f"{path.name} has no list of {key}." if key else f"{path.name} is not a list.")
        return []
    kept: list[Mapping[str, Any]] = [one for one in value if isinstance(one, dict)]
    if len(kept) < len(value):
        problems.append(f"{path.name}: {len(value) - len(kept)} {key or 'entries'} are no objects and were left out.")
    return kept


def list_before_cut(text: str) -> list[Any]:
    """Give the values of a list in JSON up to where it was cut or is broken."""
    return list(_before_cut(text))


def _before_cut(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), text.find("[") + 1
    while at:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


def text_in(value: Any) -> str:
    """Give a text; nothing for any other value."""
    return value if isinstance(value, str) else ""


def wire_blocks(content: Any) -> list[Mapping[str, Any]]:
    """Give the blocks of a message, which may be a text alone; what is none of both is kept as text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    return [one if isinstance(one, dict) else {"type": "text", "text": as_text(one)} for one in parts]


def as_text(value: Any) -> str:
    """Write what is not known as text."""
    return value if isinstance(value, str) else as_json(value)


def shown_block(block: Mapping[str, Any]) -> Text | Image | Document | Thinking | None:
    """Give a block of words, a picture or a document; any other, but for calls and results, as text; None if empty."""
    source = block.get("source")
    match block.get("type"):
        case "text":
            text = as_text(block.get("text", ""))
            return Text(text=text) if text.strip() else None
        case "thinking":
            thought = text_in(block.get("thinking"))
            return Thinking(text=thought) if thought.strip() else None
        case "redacted_thinking":
            return None
        case "image" | "document" as kind if isinstance(source, dict) and source.get("type") == "base64":
            make = Image if kind == "image" else Document
            return make(media_type=text_in(source.get("media_type")), data=text_in(source.get("data")))
        case _:
            return Text(text=as_text(dict(block)))


def wire_call(block: Mapping[str, Any]) -> ForeignCall:
    """Read a block that is a call."""
    given = block.get("input")
    arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
    return ForeignCall(id=text_in(block.get("id")), name=text_in(block.get("name")), arguments=arguments)


def wire_result(block: Mapping[str, Any]) -> tuple[str, ForeignResult]:
    """Read a block that is a result, with the id of its call."""
    shown = (shown_block(one) for one in wire_blocks(block.get("content")))
    content = tuple(one for one in shown if one is not None and not isinstance(one, Thinking))
    result = ForeignResult(content=content or (Text(text="(no output)"),), is_error=block.get("is_error") is True)
    return text_in(block.get("tool_use_id")), result


def usage_in(value: Any) -> Usage:
    """Read what a reply used, as the Messages API says it."""
    given = value if isinstance(value, dict) else {}
    return Usage(
        input_tokens=count_in(given.get("input_tokens")),
        output_tokens=count_in(given.get("output_tokens")),
        cache_read_tokens=count_in(given.get("cache_read_input_tokens")),
        cache_write_tokens=count_in(given.get("cache_creation_input_tokens")),
    )


def count_in(value: Any) -> int:
    """Read a number of tokens."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 10**12 else 0


def time_in(value: Any) -> int:
    """Read a time as milliseconds since 1970, from such a number or an ISO date; 0 where it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if 0 <= value <= LATEST else 0
    try:
        at = datetime.fromisoformat(text_in(value)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0
    return int(at * 1000) if 0 <= at * 1000 <= LATEST else 0
