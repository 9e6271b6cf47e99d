"""The MCP servers that a client names, as Treadle opens them."""

from treadle.acp.rpc import INVALID_PARAMS, RpcError
from treadle.acp.shapes import ClientServer, NameValue
from treadle.present.escape import printable
from treadle.protocol.servers import McpServer, ServerTransport


def server_of(named: ClientServer) -> McpServer:
    """Take a server over; raises `RpcError` for one that cannot be reached."""
    match named.type:
        case "" | "stdio" if named.command:
            return McpServer(name=named.name, command=named.command, args=named.args, env=_pairs(named.env))
        case "http" | "sse" if named.url:
            transport = ServerTransport(named.type)
            return McpServer(name=named.name, transport=transport, url=named.url, headers=_pairs(named.headers))
        case kind:
            about = f"The MCP server {named.name} cannot be used: its type {kind or 'stdio'}"
            raise RpcError(INVALID_PARAMS, printable(f"{about} is not supported, or it has no command or URL."))


def _pairs(values: tuple[NameValue, ...]) -> dict[str, str]:
    return {one.name: one.value for one in values}
