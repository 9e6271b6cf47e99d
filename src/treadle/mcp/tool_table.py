"""The tools of all servers as the model calls them, and how each stands to what was approved."""

import asyncio
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from treadle.mcp.declaring import kept_tools, tool_name
from treadle.mcp.hub_ports import HubPorts
from treadle.mcp.pins import Approved, approved_by
from treadle.mcp.server_tool import RunServerTool, ServerTool, server_tool
from treadle.mcp.states import Declared, DeclaredTool, PinState, ServerPlan
from treadle.protocol.errors import StoreError, ToolError
from treadle.workspace.files.text import visible

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
        self._approved: dict[str, Approved] = {}
        self._said_yes: dict[str, Approved] = {}
        self._told_changed: dict[tuple[str, str], list[str]] = {}
        self._expected: set[str] = set()

    def expect(self, plans: Sequence[ServerPlan]) -> None:
        """Take what was approved of servers for what they have, until they are connected and say it themselves."""
        for plan in plans:
            self._look_up(plan)
            approved = self._approved[plan.slug]
            tools = tuple(kept_tools(approved))
            if tools:
                self._declared[plan.slug] = Declared(
                    tools=tools, instructions=approved.instructions, resources=approved.resources
                )
                self._expected.add(plan.slug)
        if self._expected:
            self._rebuild()

    def is_expected(self, plan: ServerPlan) -> bool:
        """Whether the tools of a server are those that were approved, as it has not said yet what it has."""
        return plan.slug in self._expected

    def check(self, tool: ServerTool) -> None:
        """Raise `ToolError` where a tool is not what was approved, or not what it was when a call of it was checked."""
        now = self.tools.get(tool.spec.name)
        if tool.pinned is PinState.CHANGED:
            raise ToolError("Not run: its declaration changed since it was approved. Continue without it.")
        if now is None or now.declared.digest != tool.declared.digest:
            raise ToolError(
                f"Not run: {tool.spec.name} is not what it was when this call was checked. Look at the tools that you "
                "have now, or continue without it."
            )

    def learn(self, plan: ServerPlan, declared: Declared) -> None:
        """Take what a server has now; who vouches for it has approved what it first has."""
        with suppress(OSError):
            self._ports.keep_prompts(plan, declared.prompts)
        self._expected.discard(plan.slug)
        self._declared[plan.slug] = declared
        self._look_up(plan)
        if plan.vouched:
            approved = self._approved[plan.slug]
            tools = [one for one in declared.tools if one.name not in approved.tools]
            instructions = "" if approved.instructions else declared.instructions
            if tools or instructions:
                self._say_yes(plan, Declared(tools=tools, instructions=instructions, resources=declared.resources))
        self._rebuild()

    def forget(self, plan: ServerPlan) -> None:
        """Drop what a server has, which is turned off; what was approved of it stays approved."""
        self._declared.pop(plan.slug, None)
        self._expected.discard(plan.slug)
        self._rebuild()

    async def approve(self, plan: ServerPlan, declared: Declared, *, only: bool = False) -> None:
        """Take a yes to what a server declares; with `only` nothing else stays approved."""
        await asyncio.to_thread(self._say_yes, plan, declared, only=only)
        self._rebuild()

    def _look_up(self, plan: ServerPlan) -> None:
        """Find out what was approved of a server, in other sessions and in this one."""
        kept = self._ports.pins.read(plan.identity) if plan.kept else Approved()
        self._approved[plan.slug] = kept.with_those(self._said_yes.get(plan.slug, Approved()))

    def _say_yes(self, plan: ServerPlan, declared: Declared, *, only: bool = False) -> None:
        """Keep a yes for other sessions, too; where that fails it applies to this one."""
        if plan.kept:
            try:
                self._ports.pins.pin(plan.server.name, plan.identity, declared, only=only)
            except StoreError as error:
                self._tell(f"{error.what} {error.why} It applies to this session only.")
        self._said_yes[plan.slug] = self._said_yes.get(plan.slug, Approved()).with_those(approved_by(declared))
        self._look_up(plan)

    def declared_by(self, plan: ServerPlan) -> Declared:
        """Give what a server has now."""
        return self._declared.get(plan.slug, Declared())

    def instructions_of(self, plan: ServerPlan) -> tuple[str, str]:
        """Give what a server says about its use, and how that stands to what was approved; both empty without it."""
        text, approved = self.declared_by(plan).instructions, self._approved.get(plan.slug, Approved()).instructions
        if not text:
            return "", ""
        if plan.server.trusted or text == approved:
            return text, PinState.APPROVED
        return text, PinState.CHANGED if approved else PinState.NEW

    def _rebuild(self) -> None:
        """Put the tools of all servers together; those that are as before stay the same objects."""
        found: dict[str, ServerTool] = {}
        taken = ChainMap(found, dict(self._ports.taken))
        for plan in self._plans:
            for declared in self.declared_by(plan).tools:
                name = tool_name(plan.slug, declared.name, taken)
                made = server_tool(
                    name, plan, declared, _pin_state(self._approved[plan.slug].tools, declared), call=self._call
                )
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
