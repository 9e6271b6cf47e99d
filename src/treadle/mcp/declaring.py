"""What servers declare, made harmless: text that shows what it holds, schemas of bounded size, names models take."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from treadle.mcp.pins import Approved, declaration_digest
from treadle.mcp.states import DeclaredTool
from treadle.workspace.files.text import visible

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 4_000
_LARGEST_SCHEMA = 64 * 1024
_DEEPEST = 40
_LONGEST_TEXT = 16 * 1024
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")
_TASKS = "it only runs as a task, which Treadle does not support"


def slug_of(name: str, taken: Mapping[str, Any], longest: int = 24) -> str:
    """Write a name with the characters that every provider takes; of two that become the same one gets a digest."""
    plain = _NOT_ALLOWED.sub("_", name).strip("_") or "server"
    if len(plain) <= longest and plain not in taken:
        return plain
    return f"{plain[: longest - 7]}_{sha256(name.encode(errors='replace')).hexdigest()[:6]}"


def tool_name(slug: str, tool: str, taken: Mapping[str, Any]) -> str:
    """Name a tool of a server for the model: `mcp__server__tool`, unlike those that are `taken`."""
    plain = f"mcp__{slug}__{_NOT_ALLOWED.sub('_', tool) or 'tool'}"
    if len(plain) <= _LONGEST_NAME and plain not in taken:
        return plain
    return f"{plain[: _LONGEST_NAME - 7]}_{sha256(tool.encode(errors='replace')).hexdigest()[:6]}"


def cut_text(text: str, most: int) -> str:
    """Give the beginning of a text that is longer than so many characters."""
    return text if len(text) <= most else f"{text[:most]} [cut]"


def declared_tool(declared: Mapping[str, Any]) -> DeclaredTool:
    """Read the declaration of a tool, as its server sent it."""
    hints = declared.get("annotations") or {}
    schema = harmless_data(declared.get("inputSchema") or {})
    hidden = ""
    if (declared.get("execution") or {}).get("taskSupport") == "required":
        hidden = _TASKS
    elif len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA:
        schema, hidden = {}, f"the schema of its arguments has more than {_LARGEST_SCHEMA // 1024} KiB"
    described = visible(str(declared.get("description") or declared.get("title") or "")).strip()
    return DeclaredTool(
        name=str(declared["name"]),
        description=cut_text(described, _LONGEST_DESCRIPTION),
        parameters=_as_object(schema),
        digest=declaration_digest(declared),
        text=_shown(declared),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
        open_world=hints.get("openWorldHint"),
        hidden=hidden,
    )


def kept_tools(approved: Approved) -> Iterator[DeclaredTool]:
    """Read the tools whose whole declaration was kept; others had what cannot be shown as it is, or were too long."""
    for name, text in approved.texts.items():
        try:
            declared = declared_tool(msgspec.json.decode(text, type=dict))
        except (msgspec.MsgspecError, KeyError, AttributeError, RecursionError):
            continue
        if declared.digest == approved.tools.get(name):
            yield declared


def _shown(declared: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in declared.items() if key not in ("icons", "_meta")}
    text = visible(msgspec.json.format(msgspec.json.encode(kept, order="sorted"), indent=2).decode())
    return cut_text(text, _LONGEST_TEXT)


def harmless_data(data: Any, depth: int = 0) -> Any:
    """Make every text in JSON show what it holds; what is nested too deep is left out."""
    if depth > _DEEPEST:
        return None
    match data:
        case str():
            return visible(data)
        case dict():
            return {visible(str(key)): harmless_data(value, depth + 1) for key, value in data.items()}
        case list() | tuple():
            return [harmless_data(value, depth + 1) for value in data]
        case _:
            return data


def _as_object(schema: Any) -> dict[str, Any]:
    """Give a schema of an object, as providers want it."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    properties = schema.get("properties")
    return {
        **{key: value for key, value in schema.items() if key != "$schema"},
        "type": "object",
        "properties": properties if isinstance(properties, dict) else {},
    }
