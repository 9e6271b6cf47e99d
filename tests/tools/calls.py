"""Preparing and running a tool as the loop does."""

from typing import Any

from treadle.engine.ports import Output, Prepared
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.commands.confinement import OPEN
from treadle.workspace.workspace import Workspace


async def prepare(workspace: Workspace, name: str, **arguments: Any) -> Prepared:
    """Prepare a call of one of the built-in tools."""
    (tool,) = (tool for tool in builtin_tools(workspace) if tool.spec.name == name)
    return await tool.prepare(arguments)


async def call(workspace: Workspace, name: str, **arguments: Any) -> CallResult:
    """Prepare a call and run it."""
    return await run(await prepare(workspace, name, **arguments))


async def run(prepared: Prepared, output: Output = lambda _: None) -> CallResult:
    """Run a prepared call; a command runs as it is."""
    return await (prepared if prepared.confined is None else prepared.confined(OPEN)).run(output)


async def text(workspace: Workspace, name: str, **arguments: Any) -> str:
    """Run a call and give its text."""
    result = await call(workspace, name, **arguments)
    return "".join(block.text for block in result.content if isinstance(block, Text))
