"""A server without a handshake, which tells over its stream of changes when a resource changed."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("modern")


@server.resource("demo://1")
def one() -> str:
    return "This is demo://1"


@server.tool()
async def touch(context: Context) -> str:
    """Change the resource."""
    await context.notify_resource_updated("demo://1")
    return "touched"


server.run()
