"""The tools of all servers as the model calls them, and how each stands to what was approved."""

import asyncio
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from treadle.mcp.declaring import tool_name
from treadle.mcp.hub_ports import HubPorts
from treadle.mcp.server_tool import RunServerTool, ServerTool, server_tool
from treadle.mcp.states import Declared, DeclaredTool, PinState, ServerPlan
from treadle.protocol.errors import StoreError
from treadle.workspace.text import visible

_MOST_TOLD = 3
"""Changes of one tool that the person is told of."""


class ToolTable:
    """Changed in the servers' loop, read anywhere; `changes` counts how often `tools` was replaced."""

    def __init__(
        self, plans: Sequence[ServerPlan], ports: HubPorts, tell: Callable[[str], None], call: RunServerTool
    ) -> None:
        self.tools: Mapping[str, ServerTool] = MappingProxyType({})
        self.changes = 0
        self._plans = plans
        self._ports = ports
        self._tell = tell
        self._call = call
        self._declared: dict[str, Declared] = {}
        self._pins: dict[str, dict[str, str]] = {}
        self._vouched: dict[str, dict[str, str]] = {}
        self._told_changed: dict[tuple[str, str], list[str]] = {}

    def learn(self, plan: ServerPlan, declared: Declared) -> None:
        """Take what a server has now; who vouches for it has approved what it first has."""
        with suppress(OSError):
            self._ports.keep_prompts(plan, declared.prompts)
        known = dict((self._ports.pins.read(plan.identity) if plan.kept else None) or {})
        known |= self._vouched.get(plan.slug, {})
        new = [one for one in declared.tools if plan.vouched and one.name not in known]
        if new:
            self._keep(plan, new, others=True)
        self._declared[plan.slug] = declared
        self._pins[plan.slug] = known | self._vouch(plan, new)
        self._rebuild()

    async def pin(self, plan: ServerPlan, tools: Sequence[DeclaredTool], *, others: bool = True) -> None:
        """Take a yes to these tools; with `others` those that were approved before stay so."""
        await asyncio.to_thread(self._keep, plan, tools, others=others)
        self._pins.setdefault(plan.slug, {}).update(self._vouch(plan, tools))
        self._rebuild()

    def _vouch(self, plan: ServerPlan, tools: Sequence[DeclaredTool]) -> dict[str, str]:
        digests = {one.name: one.digest for one in tools}
        self._vouched.setdefault(plan.slug, {}).update(digests)
        return digests

    def _keep(self, plan: ServerPlan, tools: Sequence[DeclaredTool], *, others: bool) -> None:
        """Keep a yes for other sessions; where that fails it applies to this one."""
        if plan.kept:
            try:
                self._ports.pins.pin(plan.server.name, plan.identity, tools, others=others)
            except StoreError as error:
                self._tell(f"{error.what} {error.why} It applies to this session only.")

    def _rebuild(self) -> None:
        """Put the tools of all servers together; those that are as before stay the same objects."""
        found: dict[str, ServerTool] = {}
        taken = ChainMap(found, dict(self._ports.taken))
        for plan in self._plans:
            for declared in self._declared.get(plan.slug, Declared()).tools:
                name = tool_name(plan.slug, declared.name, taken)
                made = server_tool(name, plan, declared, _pin_state(self._pins[plan.slug], declared), call=self._call)
                before = self.tools.get(name)
                found[name] = before if before is not None and _same(before, made) else made
                self._tell_changed(made)
        self.tools = MappingProxyType(found)
        self.changes += 1

    def _tell_changed(self, tool: ServerTool) -> None:
        """Say that a tool is not what was approved any more."""
        if tool.pinned is not PinState.CHANGED:
            return
        told = self._told_changed.setdefault((tool.plan.slug, tool.declared.name), [])
        if tool.declared.digest not in told and len(told) < _MOST_TOLD:
            told.append(tool.declared.digest)
            name = visible(tool.plan.server.name)
            self._tell(
                f"The MCP server {name} changed its tool {visible(tool.declared.name)} since you approved it. It is "
                f"not used. `treadle mcp tools {name}` shows it; /mcp approve {name} accepts it."
            )


def _pin_state(pins: Mapping[str, str], declared: DeclaredTool) -> PinState:
    pinned = pins.get(declared.name)
    if pinned is None:
        return PinState.NEW
    return PinState.APPROVED if pinned == declared.digest else PinState.CHANGED


def _same(one: ServerTool, other: ServerTool) -> bool:
    return (one.spec, one.declared, one.pinned) == (other.spec, other.declared, other.pinned)
