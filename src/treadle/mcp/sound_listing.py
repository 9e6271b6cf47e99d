"""Lists of tools as their servers should have sent them: one odd tool does not take the others with it."""

from collections.abc import Mapping
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from treadle.mcp.transports import Streams


class SoundMessages:
    """The messages that are read of a server, with what is missing in its tools put in."""

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


def with_sound_tools(streams: Streams) -> Streams:
    """Give the streams of a server; the SDK refuses a whole list for one tool that it does not understand."""
    read, write = streams
    return SoundMessages(read), write


def _sound(item: Any) -> Any:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
        tools = item.message.result.get("tools")
        if isinstance(tools, list):
            item.message.result["tools"] = [sound_tool(tool) for tool in tools if _has_name(tool)]
    return item


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
