"""The MCP servers that a host names: programs and addresses, and those in the host itself, reached over the channel."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.hosts import claude_part
from treadle.door.mcp import ServerOrigin, read_servers
from treadle.headless.channel import Channel, Frame, HostError
from treadle.headless.host_start import HostStart
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.protocol.tools import ToolCall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from treadle.door.open_session import LiveSession

_INSIDE = "sdk"
_LONGEST_CALL = 86_400.0
_STATUS = {"connected": "connected", "disabled": "disabled", "failed": "failed", "closed": "failed"}


class HostServers(Struct, frozen=True, kw_only=True):
    """What a host names; `inside` are its own. `notes` say what cannot be used."""

    servers: tuple[McpServer, ...] = ()
    inside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def exchanges(self, channel: Channel) -> "Mapping[str, Callable[[Frame], Awaitable[Frame | None]]]":
        """Give how messages reach the host's own servers."""
        return {name: _exchange(channel, name) for name in self.inside}


def host_servers(said: Sequence[str], allowed: Sequence[str], start: HostStart) -> HostServers:
    """Read `--mcp-config`, JSON or files, and what was said at the start; `allowed` tools run without a question.

    Raises `ConfigError`.
    """
    servers: dict[str, McpServer] = {}
    notes: list[str] = []
    inside = list(start.servers)
    servers |= {name: _of_host(name, start) for name in inside}
    for text in said:
        table = _table(text)
        own = [name for name, one in table.items() if isinstance(one, dict) and one.get("type") == _INSIDE]
        inside += own
        servers |= {name: _of_host(name, start) for name in own}
        others = {name: one for name, one in table.items() if name not in own}
        try:
            found = read_servers(json.dumps({"mcpServers": others}).encode(), ServerOrigin.CLIENT)
        except ValueError as error:
            raise _wrong(str(error)) from error
        servers |= {one.server.name: one.server for one in found if not one.problem}
        notes += [f"The MCP server {one.server.name} is not used: {one.problem}." for one in found if one.problem]
    return HostServers(
        servers=tuple(replace(one, allowed=tuple(_allowed(one.name, allowed))) for one in servers.values()),
        inside=tuple(inside),
        notes=tuple(notes),
    )


def _of_host(name: str, start: HostStart) -> McpServer:
    base = McpServer(name=name, transport=ServerTransport.INSIDE)
    return replace(base, call_seconds=min(start.seconds.get(name, base.call_seconds), _LONGEST_CALL))


def _table(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, RuntimeError) as error:  # RuntimeError: no home for ~NAME
            raise _wrong(str(error)) from error
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"It is not JSON ({error}).") from error
    table = said.get("mcpServers") if isinstance(said, dict) else None
    if not isinstance(table, dict):
        raise _wrong('It has no table "mcpServers".')
    return table


def _allowed(name: str, allowed: Sequence[str]) -> Iterator[str]:
    own = f"mcp__{claude_part(name)}"
    for one in allowed:
        if one == own:
            yield "*"
        elif one.startswith(f"{own}__"):
            yield one.removeprefix(f"{own}__")


def _exchange(channel: Channel, name: str) -> "Callable[[Frame], Awaitable[Frame | None]]":
    async def exchange(message: Frame) -> Frame | None:
        request = {"subtype": "mcp_message", "server_name": name, "message": message}
        try:
            said = await channel.ask(request)
        except HostError as error:
            failed = {"code": -32603, "message": str(error)}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": failed} if "id" in message else None
        answer = said.get("mcp_response")
        return answer if "id" in message and isinstance(answer, dict) else None

    return exchange


def server_of_call(live: "LiveSession", call: ToolCall) -> str:
    """Name the server that a call goes to; empty for another call."""
    tool = None if live.servers is None else live.servers.hub.tools().get(call.name)
    return str(call.arguments.get("server_name") or "") if tool is None else tool.plan.server.name


def server_status(live: "LiveSession") -> list[Frame]:
    """Say how the servers of a session are doing."""
    if live.servers is None:
        return []
    return [
        {
            "name": one.name,
            "status": _STATUS.get(one.state.value, "pending"),
            "tools": [{"name": tool} for tool in one.tools],
            **({"serverInfo": {"name": one.name, "version": one.version}} if one.version else {}),
            **({"error": one.why} if one.why else {}),
        }
        for one in live.servers.hub.health()
    ]


def _wrong(why: str) -> ConfigError:
    return ConfigError("host-flag", "The flag --mcp-config cannot be used as it was given.", why=why, fix="Correct it.")
