"""The tools of configured servers exactly as they were approved, without connecting to any."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from treadle.app.config.foreign_tools import claude_part
from treadle.app.security.trusting import SessionTrust
from treadle.app.servers.configured import configured_servers
from treadle.app.servers.identity import identity_of, pin_book
from treadle.mcp.declaring import kept_tools, slug_of, tool_name
from treadle.mcp.server_tool import server_tool
from treadle.mcp.states import PinState, ServerPlan
from treadle.protocol.tools import CallResult, ToolSpec


class ApprovedServer(Struct, frozen=True, kw_only=True):
    """A configured server under the `name` that Claude Code has for it; `tools` are the approved ones, by theirs."""

    name: str
    slug: str
    tools: Mapping[str, ToolSpec]


def approved_servers(trust: SessionTrust) -> tuple[ApprovedServer, ...]:
    """Give the servers of a folder and of the user, with the declarations of their tools as the model has them."""
    found: dict[str, ApprovedServer] = {}
    for one in configured_servers(trust).servers:
        slug = slug_of(one.server.name, found)
        identity = identity_of(one.server, one.origin, trust.workspace)
        plan = ServerPlan(server=one.server, slug=slug, identity=identity, origin=one.origin, log=Path())
        names: dict[str, str] = {}
        tools: dict[str, ToolSpec] = {}
        for declared in kept_tools(pin_book().read(identity)):
            name = tool_name(slug, declared.name, names)
            names[name] = declared.name
            made = server_tool(name, plan, declared, PinState.APPROVED, call=_never)
            tools.setdefault(claude_part(declared.name), made.spec)
        found[slug] = ApprovedServer(name=claude_part(one.server.name), slug=slug, tools=tools)
    return tuple(found.values())


async def _never(*_: object) -> CallResult:
    raise AssertionError("these are not called")
