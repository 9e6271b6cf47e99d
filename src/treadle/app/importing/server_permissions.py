"""Tools of MCP servers as Claude Code names them in permissions, `mcp__SERVER__TOOL`: which ones here are meant."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from treadle.mcp.declaring import slug_of, tool_name
from treadle.policy.decide import SERVER_TOOLS
from treadle.protocol.tools import ToolSpec

if TYPE_CHECKING:
    from treadle.app.servers.approved import ApprovedServer


def approved_tools(entry: str, servers: Sequence["ApprovedServer"]) -> tuple[ToolSpec, ...]:
    """Give the tools that an entry means for sure: one, or all of a server; none where it may mean those of two."""
    name = entry.removeprefix(SERVER_TOOLS)
    meant = [tuple(one.tools.values()) for one in servers if name in (one.name, f"{one.name}__*")]
    for server, tool in _splits(name):
        meant += [(one.tools[tool],) for one in servers if one.name == server and tool in one.tools]
    return meant[0] if len(meant) == 1 else ()


def tool_globs(entry: str, servers: Sequence["ApprovedServer"]) -> tuple[str, ...]:
    """Give the names here of all that an entry may mean, as globs."""
    slugs = {one.name: one.slug for one in servers}

    def slug(server: str) -> str:
        return server if "*" in server else slugs.get(server) or slug_of(server, {})

    def named(server: str, tool: str) -> str:
        known = [one.tools[tool].name for one in servers if one.name == server and tool in one.tools]
        plain = (
            f"{SERVER_TOOLS}{slug(server)}__{tool}" if "*" in f"{server}{tool}" else tool_name(slug(server), tool, {})
        )
        return known[0] if known else plain

    name = entry.removeprefix(SERVER_TOOLS)
    whole = () if name.endswith("*") and "__" in name else (f"{SERVER_TOOLS}{slug(name)}__*",)
    return tuple(dict.fromkeys((*(named(server, tool) for server, tool in _splits(name)), *whole)))


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Part a name into those of a server and a tool wherever that may be: both may hold the sign between them."""
    parts = name.split("__")
    for at in range(1, len(parts)):
        server, tool = "__".join(parts[:at]), "__".join(parts[at:])
        if server and tool:
            yield server, tool
