"""How servers are doing, and the file in which it is kept what they log."""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from treadle.mcp.server_tool import ServerTool
from treadle.mcp.states import ServerHealth, ServerPlan, ServerState
from treadle.mcp.tool_table import ToolTable
from treadle.protocol.servers import ServerTransport
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from treadle.mcp.server_connection import ServerConnection

_LARGEST_LOG = 2 * 1024 * 1024


def server_health(plan: ServerPlan, connection: "ServerConnection | None", table: ToolTable) -> ServerHealth:
    """Say how a server is doing; `table` has the tools of all servers."""
    server = plan.server
    known = () if connection is None else connection.declared.prompts
    return ServerHealth(
        name=server.name,
        origin=plan.origin,
        transport=server.transport,
        target=_target(plan),
        state=first_state(plan) if connection is None else connection.state,
        why=plan.problem if connection is None else connection.why,
        protocol="" if connection is None else connection.protocol,
        version="" if connection is None else connection.version,
        tools={}
        if table.is_expected(plan)
        else {one.declared.name: _word(one) for one in table.tools.values() if one.plan.slug == plan.slug},
        prompts=tuple(prompt.name for prompt in known),
        resources=connection is not None and connection.declared.resources,
        instructions=table.instructions_of(plan)[1],
        restarts=0 if connection is None else connection.restarts,
        garbage=0 if connection is None else connection.noise.count,
        signs_in=connection is not None and connection.signs_in,
    )


def write_server_log(file: Path, text: str) -> None:
    """Write a line into the log of a server, of which there are two files of bounded size."""
    with suppress(OSError):
        make_private_folder(file.parent)
        if file.exists() and file.stat().st_size > _LARGEST_LOG:
            file.replace(file.with_suffix(".old"))
        with file.open("a", encoding="utf-8", errors="replace") as stream:
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {visible(text)}\n")


def first_state(plan: ServerPlan) -> ServerState:
    """Say how a server stands that nobody has connected to."""
    if not plan.server.enabled:
        return ServerState.DISABLED
    return ServerState.FAILED if plan.problem else ServerState.WAITING


def _word(tool: ServerTool) -> str:
    return f"not used: {tool.declared.hidden}" if tool.declared.hidden else tool.pinned


def _target(plan: ServerPlan) -> str:
    """Say what a server is, without what may be a secret in its arguments or its address."""
    server = plan.server
    if server.transport in (ServerTransport.HTTP, ServerTransport.SSE):
        address = urlsplit(server.url)
        return visible(f"{address.scheme}://{address.netloc.rpartition('@')[2]}")
    return visible(Path(server.command).name) if server.command else "inside"
