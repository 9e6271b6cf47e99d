"""One tool of a server, as the loop and the model see it."""

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.mcp.states import DeclaredTool, PinState, ServerPlan
from treadle.parsing.native import one_object
from treadle.protocol.errors import ToolError
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.protocol.tools import (
    CallResult,
    Origin,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.workspace.files.text import visible

RunServerTool = Callable[["ServerTool", dict[str, Any], Output], Awaitable[CallResult]]


class ServerSaidError(ToolError):
    """What went wrong, in the words of a server."""

    @property
    def result(self) -> CallResult:
        """The result of the call, which is from outside as every word of a server."""
        return replace(result_text(Outcome.FAILED, self.text), origin=Origin.SERVER)


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool under the name that the model calls it by. `pinned` says how it stands to what was approved."""

    spec: ToolSpec
    plan: ServerPlan
    declared: DeclaredTool
    pinned: PinState
    call: RunServerTool

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the call, and before its first use all that the tool says of itself, which a yes approves.

        Its server is asked nothing before the call was judged.
        """
        given = dict(arguments)

        async def run(output: Output) -> CallResult:
            return await self.call(self, given, output)

        shown = msgspec.json.format(msgspec.json.encode(given), indent=2).decode()
        if self.pinned is PinState.NEW and (said := self.declared.said):
            shown = f"{shown}\n\nThe tool says of itself:\n{said}"
        title = f"MCP server {visible(self.plan.server.name)}: {visible(self.declared.name)}"
        return Prepared(accesses=(), preview=Preview(title=title, text=visible(shown)), run=run)


def server_tool(
    name: str, plan: ServerPlan, declared: DeclaredTool, pinned: PinState, *, call: RunServerTool
) -> ServerTool:
    """Make the tool that a server declares."""
    believed = plan.server.trusted and pinned is PinState.APPROVED
    effect = ToolEffect.ONCE
    if believed and declared.read_only:
        effect = ToolEffect.PURE
    elif believed and declared.idempotent:
        effect = ToolEffect.IDEMPOTENT
    spec = ToolSpec(
        name=name,
        description=declared.description or f"The tool {declared.name} of the MCP server {plan.server.name}.",
        parameters=declared.parameters,
        traits=ToolTraits(kind=ToolKind.OTHER, effect=effect),
        risk=risk_of(plan.server, declared),
    )
    return ServerTool(spec=spec, plan=plan, declared=declared, pinned=pinned, call=call)


def risk_of(server: McpServer, declared: DeclaredTool) -> Risk:
    """Say how risky a call is. Nothing that a server says of itself makes it less, unless the user trusts it.

    A tool that reaches beyond this machine may not run without asking after text from outside was read, unless the user
    allowed it by name.
    """
    if server.trusted and declared.read_only and not declared.destructive:
        return Risk.READ
    if {declared.name, "*"} & set(server.allowed):
        return Risk.EXECUTE
    beyond = declared.destructive and not declared.read_only
    return Risk.REMOTE if beyond or declared.open_world or _is_far(server) else Risk.EXECUTE


def _is_far(server: McpServer) -> bool:
    """Whether a server is not on this machine."""
    if server.transport not in (ServerTransport.HTTP, ServerTransport.SSE):
        return False
    host = urlsplit(server.url).hostname or ""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def parsed_arguments(text: object) -> dict[str, Any]:
    """Read arguments that are written as JSON, as those of native calls are read; raises `ToolError`."""
    if isinstance(text, dict):
        return text
    written = str(text).strip() or "{}"
    found = one_object(written, [])
    if found is not None:
        return found
    try:
        msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ToolError(f"`arguments` is not valid JSON: {error}. Write one JSON object.", invalid=True) from error
    raise ToolError("`arguments` is something else. Write one JSON object with each name once.", invalid=True)
