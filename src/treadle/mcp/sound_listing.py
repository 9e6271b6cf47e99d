"""What servers list and answer as they should have sent it: one odd part does not take the others with it."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from treadle.mcp.transports import Streams

_LARGEST_UNKNOWN = 4_000
"""Characters of JSON up to which a part of an unknown type is shown as it came."""


class SoundMessages:
    """The messages that are read of a server, with what is missing in its lists and answers put in."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    async def __aenter__(self) -> Self:
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *why: object) -> None:
        await self._read.__aexit__(*why)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _sound(await self._read.__anext__())

    async def receive(self) -> Any:
        """Give the next message."""
        return _sound(await self._read.receive())


def with_sound_answers(streams: Streams) -> Streams:
    """Give the streams of a server; the SDK refuses a whole answer for one part that it does not understand."""
    read, write = streams
    return SoundMessages(read), write


def _sound(item: Any) -> Any:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        if "structuredContent" in result or isinstance(result.get("content"), str | dict):
            result["content"] = _listed(result.get("content"))
        for name, sound in _PARTS.items():
            parts = result.get(name)
            if isinstance(parts, list):
                result[name] = [one for part in parts for one in sound(part)]
    return item


def _listed(content: Any) -> list[Any]:
    """Give the parts of a content that may be missing, one part or a text."""
    return content if isinstance(content, list) else [] if content is None else [content]


def _sound_tools(tool: Any) -> Iterator[dict[str, Any]]:
    if _has_name(tool):
        yield sound_tool(tool)


def _sound_blocks(block: Any) -> Iterator[dict[str, Any]]:
    """Give a part of a content: as it came, with what it has to have alone, or as text that says what it is."""
    if isinstance(block, str):
        yield {"type": "text", "text": block}
        return
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield {"type": "text", "text": _as_text(block)}
        return
    for one in (block, _bare_block(block)):
        if _is_valid(types.CallToolResult, {"content": [one]}):
            yield one
            return
    text = block.get("text")
    yield {"type": "text", "text": text if isinstance(text, str) else _as_text(block)}


def _bare_block(block: Mapping[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    if isinstance(source, dict):  # an image as Claude's API has it
        block = {"mimeType": source.get("media_type"), "data": source.get("data"), **block}
    bare = {name: block[name] for name in _NEEDED.get(block["type"], ()) if name in block}
    if block["type"] in ("image", "audio") and not isinstance(bare.get("mimeType"), str):
        bare["mimeType"] = "application/octet-stream"
    if block["type"] == "resource_link" and not isinstance(bare.get("name"), str):
        bare["name"] = bare.get("uri")
    if block["type"] == "resource":
        bare["resource"] = next(_sound_contents(block.get("resource")))
    if block["type"] == "text" and "text" in bare and not isinstance(bare["text"], str):
        bare["text"] = _as_text(bare["text"])
    return {"type": block["type"], **bare}


def _sound_contents(contents: Any) -> Iterator[dict[str, Any]]:
    """Give what a resource has: as it came, with what it has to have alone, or as text."""
    if _is_valid(types.ReadResourceResult, {"contents": [contents]}):
        yield contents
        return
    part = contents if isinstance(contents, dict) else {"text": contents}
    named = {"uri": part["uri"] if isinstance(part.get("uri"), str) else "unnamed:"}
    if isinstance(part.get("mimeType"), str):
        named["mimeType"] = part["mimeType"]
    if isinstance(part.get("blob"), str):
        yield {**named, "blob": part["blob"]}
    else:
        yield {**named, "text": _as_text(part.get("text", part))}


def _sound_messages(message: Any) -> Iterator[dict[str, Any]]:
    """Give a message of a prompt, one for each part where it has several."""
    part = message if isinstance(message, dict) else {"content": message}
    role = part.get("role") if part.get("role") in ("user", "assistant") else "user"
    for content in _listed(part.get("content")):
        yield from ({"role": role, "content": block} for block in _sound_blocks(content))


def _sound_entries(kind: type[Any], list_name: str, *needed: str) -> Callable[[Any], Iterator[dict[str, Any]]]:
    """Make what leaves of an entry of a list what it has to have, and leaves out one that lacks it."""

    def sound(entry: Any) -> Iterator[dict[str, Any]]:
        if not isinstance(entry, dict):
            return
        bare = {name: entry.get(name, entry.get(needed[0])) for name in needed}
        for one in (entry, bare):
            if _is_valid(kind, {list_name: [one]}):
                yield one
                return

    return sound


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _LARGEST_UNKNOWN:
        return text
    kind = value.get("type") if isinstance(value, dict) else None
    return f"[content{f' of the type {kind}' if isinstance(kind, str) else ''}, {len(text):,} characters: left out]"


def _is_valid(kind: type[Any], result: dict[str, Any]) -> bool:
    try:
        kind.model_validate(result)
    except ValueError:
        return False
    return True


def _has_name(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and bool(tool["name"])


def sound_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Give a declaration that can be read: a schema of an object, and no part of another type than it should have."""
    schema = tool.get("inputSchema")
    sound: dict[str, Any] = {key: value for key, value in tool.items() if isinstance(value, _TYPES.get(key, object))}
    sound["inputSchema"] = {**schema, "type": "object"} if isinstance(schema, dict) else {"type": "object"}
    output = sound.get("outputSchema")
    if output is not None and output.get("type") != "object":
        del sound["outputSchema"]
    for part in ("properties", "required"):
        if not isinstance(sound["inputSchema"].get(part, _EMPTY[part]), type(_EMPTY[part])):
            del sound["inputSchema"][part]
    return sound


_EMPTY: Mapping[str, Any] = {"properties": {}, "required": []}
_TYPES: Mapping[str, type] = {
    "title": str,
    "description": str,
    "outputSchema": dict,
    "annotations": dict,
    "execution": dict,
    "icons": list,
    "_meta": dict,
}

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}
_PARTS: Mapping[str, Callable[[Any], Iterator[dict[str, Any]]]] = {
    "tools": _sound_tools,
    "content": _sound_blocks,
    "contents": _sound_contents,
    "messages": _sound_messages,
    "prompts": _sound_entries(types.ListPromptsResult, "prompts", "name"),
    "resources": _sound_entries(types.ListResourcesResult, "resources", "uri", "name"),
    "resourceTemplates": _sound_entries(types.ListResourceTemplatesResult, "resourceTemplates", "uriTemplate", "name"),
}
