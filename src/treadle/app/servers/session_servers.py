"""The servers as one session has them: which tools are offered, how calls are judged, and what is said of servers."""

import asyncio
from collections import Counter
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from treadle.app.servers.denied import DeniedTools, left_out_line
from treadle.app.servers.server_prompts import filled_arguments, wanted_argument
from treadle.engine.ports import Tool
from treadle.mcp.fixed_tools import (
    RESOURCE,
    SEARCH,
    STARTING,
    USE,
    AccessResource,
    SearchTools,
    UseTool,
    completed_argument,
    declared_size,
    named_tool,
    names_listing,
    resource_spec,
    schema_arguments,
    search_spec,
    spec_size,
    use_spec,
    why_unusable,
    written_prompt,
)
from treadle.mcp.hub import McpHub
from treadle.mcp.server_tool import ServerTool
from treadle.mcp.states import PinState, ServerHealth, ServerPlan, ServerState
from treadle.present.words import counted
from treadle.protocol.attach import ServersAnswer
from treadle.protocol.errors import ToolError
from treadle.protocol.events import Noted
from treadle.protocol.permissions import Allowance
from treadle.protocol.sealed import Passage, PassageKind, PromptPart
from treadle.protocol.tools import ToolSpec
from treadle.tools.images import served_image_of
from treadle.workspace.files.text import visible
from treadle.workspace.untrusted import mark_untrusted

FIRST_WAIT = 10.0
"""Seconds that the first request waits at most for servers that a client names and whose tools nobody knows yet."""

_MOST_DIRECT = 19
"""Tools that are offered as they are; of more the model is told by a search."""

_MOST_TOKENS = 15_000
_MOST_UNLOADED = 1_500 * 3
"""Characters that a request has of all servers until a tool of them is loaded: names have three in a token."""

_MOST_UNLOADED_INSTRUCTIONS = 1_000
_MOST_INSTRUCTIONS = 20_000
"""Characters of what all servers say about their use."""

_COMPLETES_WITHIN = 3.0
"""Seconds; nobody waits for a list of words any longer."""

_GONE = (ServerState.FAILED, ServerState.CLOSED, ServerState.RECONNECTING)
_WINDOW = 200_000
_CHARACTERS_PER_TOKEN = 3.6


class SessionServers:
    """The servers of one session. `native` says how calls are written now, `window` gives the model's tokens.

    `sent` gives the tools of the last request: those of servers among them stay loaded, also where a session goes on.
    """

    def __init__(
        self,
        hub: McpHub,
        *,
        native: Callable[[], bool],
        window: Callable[[], int | None],
        sent: Callable[[], Sequence[ToolSpec]] = tuple,
    ) -> None:
        self.hub = hub
        self.found: set[str] = set()
        self._native = native
        self._window = window
        self._sent = sent
        self._waited = False
        self._key: tuple[Any, ...] = ()
        self._left: Mapping[str, str] = {}
        self._denied: DeniedTools | None = None
        self._said_denied = frozenset[str]()
        self._said_unapproved = frozenset[str]()
        self._many = False
        self._in_use: frozenset[str] = frozenset()
        self._search = SearchTools(hub, self.found, search_spec(), self.denied, self._awaited, native)
        fixed: tuple[Tool, ...] = (
            self._search,
            UseTool(hub, use_spec()),
            AccessResource(hub, served_image_of, resource_spec()),
        )
        self.fixed: Mapping[str, Tool] = {tool.spec.name: tool for tool in fixed}

    def tools(self, own: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """Give a session's tools with those of the servers, as they are whenever it is looked at."""
        return _LiveTools({**own, **self.fixed}, self)

    def ask_policy(self, denied: DeniedTools) -> None:
        """Leave out from now on what nobody is here to say yes to."""
        self._denied = denied

    def denied(self) -> frozenset[str]:
        """Name the tools whose every call would be denied now, since nobody is here to say yes."""
        if self._denied is None:
            return frozenset()
        tools = self.hub.tools()
        specs = [*(tool.spec for tool in tools.values()), self.fixed[RESOURCE].spec]
        return self._denied.names(specs, self.hub.table.changes)

    def left_out(self) -> Mapping[str, str]:
        """Give the tools that the model is not told of now, each with the reason; without one, calls are judged."""
        self._refresh()
        return self._left

    def search(self) -> SearchTools:
        """Give the search, which names the tools that there are now."""
        self._refresh()
        return self._search

    def _refresh(self) -> None:
        """Find out what is offered now, where something has changed since the last time."""
        states = tuple(self.hub.state_of(plan) for plan in self.hub.plans)
        denied, loaded = self.denied(), self._loaded()
        key = (self.hub.table.changes, loaded, self._native(), self._window(), states, denied)
        if key == self._key:
            return
        self._key, native = key, self._native()
        every = self.hub.tools()
        usable = {name: tool for name, tool in every.items() if name not in denied and not why_unusable(self.hub, tool)}
        self._many = native and (len(usable) > _MOST_DIRECT or sum(map(declared_size, usable.values())) > self._bound())
        self._in_use = frozenset(usable[name].plan.slug for name in loaded & usable.keys())
        self._left = dict(self._reasons(every, usable, denied, loaded))
        listing = names_listing(tuple(usable.values()), self._room()) if self._many else ""
        self._search = replace(self._search, spec=search_spec(listing))

    def _reasons(
        self,
        every: Mapping[str, ServerTool],
        usable: Mapping[str, ServerTool],
        denied: frozenset[str],
        loaded: frozenset[str],
    ) -> Iterator[tuple[str, str]]:
        """Give the reasons; without one a tool is not told of, but read where it is called by its right name."""
        native = self._native()
        for name, tool in every.items():
            if name not in usable:
                yield name, why_unusable(self.hub, tool)
            elif not native or (self._many and name not in loaded):
                yield name, ""
        if native or not usable:
            yield USE, ""
        if not (self._awaited() or (usable if not native else self._many)):
            yield SEARCH, "" if denied else "all tools of the MCP servers are offered already"
        if RESOURCE in denied:
            yield RESOURCE, ""
        elif not self.hub.resources_of():
            yield RESOURCE, "no MCP server here has resources"

    def _loaded(self) -> frozenset[str]:
        """Name the tools of servers that stay offered: those that a search found, and those that were sent before."""
        return frozenset((*self.found, *(spec.name for spec in self._sent() if spec.name.startswith("mcp__"))))

    def _awaited(self) -> Sequence[ServerPlan]:
        """Give the servers that are still starting and whose tools could be called once they are up."""
        return [plan for plan in self._starting() if plan.vouched or not self._nobody()]

    def _starting(self) -> Iterator[ServerPlan]:
        """Give the servers that are still starting and whose tools nobody knows yet."""
        for plan in self.hub.plans:
            if self.hub.state_of(plan) in STARTING and not self.hub.table.is_expected(plan):
                yield plan

    def _nobody(self) -> bool:
        return self._denied is not None and self._denied.nobody_is_here()

    def _room(self) -> int:
        """Say how many characters the names of tools may have in a request."""
        fixed = [search_spec(), *([self.fixed[RESOURCE].spec] if self.hub.resources_of() else [])]
        said = any(part.tools == () and part.instructions for part in map(self.hub.table.declared_by, self.hub.plans))
        return _MOST_UNLOADED - sum(map(spec_size, fixed)) - said * _MOST_UNLOADED_INSTRUCTIONS

    def _bound(self) -> float:
        return min(_MOST_TOKENS, (self._window() or _WINDOW) / 10) * _CHARACTERS_PER_TOKEN

    def meant(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[ToolSpec, Mapping[str, Any]]:
        """Give what a call is judged as: one through `use_mcp_tool` as that of the tool itself. Raises `ToolError`."""
        if spec.name != USE:
            return spec, arguments
        tool = named_tool(self.hub, arguments)
        return tool.spec, schema_arguments(tool, arguments)

    def unapproved(self) -> frozenset[str]:
        """Name the tools that nobody has said yes to as they are."""
        return frozenset(name for name, one in self.hub.tools().items() if one.pinned is not PinState.APPROVED)

    def allowances(self) -> Sequence[Allowance]:
        """Give what the user lets run without a question, each pinned to the declaration that was approved."""
        from treadle.policy.decide import tool_digest  # loaded with the first call that is judged

        allowed = [
            tool
            for tool in self.hub.tools().values()
            if tool.pinned is PinState.APPROVED and {tool.declared.name, "*"} & set(tool.plan.server.allowed)
        ]
        return [
            Allowance(id=f"allowed-{tool.spec.name}", tool=tool.spec.name, tool_digest=tool_digest(tool.spec))
            for tool in allowed
        ]

    async def before_step(self) -> Noted | None:
        """Say which servers are missing at the first step, and later what became of them.

        What is still starting is not waited for, but where a client names it and nobody knows what it has.
        """
        if not self._waited:
            self._waited = True
            if unknown := [plan for plan in self._starting() if plan.vouched]:
                await self.hub.settled(FIRST_WAIT, unknown)
            self.hub.news.clear()  # before it is asked which are missing: one that connects now is news
            said = "\n".join(filter(None, self._missing()))
        else:
            news = [self.hub.news.popleft() for _ in range(len(self.hub.news))]
            said = f"MCP servers: {'; '.join(news)}." if news else ""
        said = "\n".join(filter(None, [said, self._say_denied()]))
        return _note(said) if said else None

    def _missing(self) -> Iterator[str]:
        """Say which servers are not there, and which are still starting."""
        starting = ", ".join(plan.slug for plan in self._awaited())
        if starting:
            yield (
                f"MCP servers that are still starting: {starting}. You get their tools when they are connected; "
                f"{SEARCH} waits for them."
            )
        failed = [plan.slug for plan in self.hub.plans if self.hub.state_of(plan) in _GONE]
        if failed:
            yield f"MCP servers that are not connected, so that their tools are missing: {', '.join(failed)}."

    def _say_denied(self) -> str:
        """Say once of the tools that are left out as nobody is here, to the model and to whoever started the run."""
        tools = {name: tool for name, tool in self.hub.tools().items() if name in self.denied()}
        usable = {
            name: tool
            for name, tool in tools.items()
            if not why_unusable(self.hub, tool)
            and not (tool.pinned is PinState.NEW and tool.plan.server.name in self._said_unapproved)
        }
        unapproved = {plan.server.name for plan in self._starting() if not plan.vouched} if self._nobody() else set()
        if usable.keys() <= self._said_denied and unapproved <= self._said_unapproved:
            return ""
        self._said_denied |= usable.keys()
        found = Counter(tool.plan.server.name for tool in usable.values())
        new = Counter(tool.plan.server.name for tool in usable.values() if tool.pinned is PinState.NEW)
        rest = sorted(unapproved - self._said_unapproved - found.keys())
        self._said_unapproved |= unapproved
        line = left_out_line(
            (*((name, count, new[name]) for name, count in found.items()), *((name, 0, 1) for name in rest))
        )
        self.hub.tell(line)
        return line

    def prompt_parts(self) -> tuple[PromptPart, ...]:
        """Give what approved servers say about their use, for the system prompt, up to a bound."""
        parts: list[PromptPart] = []
        self._refresh()
        room = {False: _MOST_INSTRUCTIONS, True: _MOST_UNLOADED_INSTRUCTIONS}
        for plan in self.hub.plans:
            text, state = self.hub.table.instructions_of(plan)
            gone = self.hub.state_of(plan) in (ServerState.FAILED, ServerState.CLOSED)
            waits = self._many and plan.slug not in self._in_use
            if state != PinState.APPROVED or gone or len(text) > room[waits]:
                continue
            if waits and self.hub.table.declared_by(plan).tools:
                continue  # it is about the use of tools that the model has not loaded
            room[waits] -= len(text)
            who = f"MCP server {visible(plan.server.name)}"
            heading = f"# {who}\n\nWhat the server says about the use of its tools and resources:\n\n"
            parts.append(PromptPart(name=f"server {plan.slug}", text=heading + mark_untrusted(text, who), origin=who))
        return tuple(parts)

    def complete(self, prompt: tuple[str, str], said: str) -> tuple[str, ...]:
        """Say what the last word of what follows a prompt can be, within seconds. To be called in a thread."""
        self.hub.wait(_COMPLETES_WITHIN)
        found = (one for plan, one in self.hub.prompts() if (plan.server.name, one.name) == prompt)
        declared = next(found, None)
        wanted = None if declared is None else wanted_argument(declared, said)
        if wanted is None:
            return ()
        ask = partial(completed_argument, prompt[1], wanted)
        with suppress(ToolError, TimeoutError):
            return asyncio.run(asyncio.wait_for(self.hub.request(prompt[0], ask), _COMPLETES_WITHIN))
        return ()

    async def prompt(self, server: str, name: str, said: str) -> str:
        """Have a server write a prompt out, with what the person said after its name. Raises `ToolError`."""
        await self.hub.settled(FIRST_WAIT)
        for plan, prompt in self.hub.prompts():
            if plan.server.name == server and prompt.name == name:
                return await self.hub.request(server, partial(written_prompt, name, filled_arguments(prompt, said)))
        raise ToolError(f"The MCP server {visible(server)} has no prompt {visible(name)} now. Continue without it.")

    def health(self) -> tuple[ServerHealth, ...]:
        """Say how each server is doing."""
        return self.hub.health()

    def command(self, argument: str) -> ServersAnswer:
        """Do what `/mcp` says with this argument. To be called in a thread."""
        verb, _, name = argument.strip().partition(" ")
        self.hub.wait(FIRST_WAIT)
        if not verb:
            return ServersAnswer(text="\n".join(health_lines(self.health())))
        if verb not in ("approve", "reconnect") or not name:
            return ServersAnswer(text="Write /mcp, /mcp approve NAME or /mcp reconnect NAME.", warning=True)
        try:
            if verb == "reconnect":
                self.hub.reconnect(name.strip())
                return ServersAnswer(text=f"Connecting to {visible(name.strip())} again. /mcp shows how it is.")
            names = self.hub.approve(name.strip())
        except ToolError as error:
            return ServersAnswer(text=error.text, warning=True)
        return ServersAnswer(text=f"Approved as they are now: {', '.join(map(visible, names))}")


def _note(text: str) -> Noted:
    return Noted(notes=(Passage(kind=PassageKind.NOTE, text=text),))


def health_lines(servers: Sequence[ServerHealth]) -> Iterator[str]:
    """Write how servers are doing: a line for each, and one for what is not as usual."""
    for one in servers:
        facts = [counted(len(one.tools), "tool")] if one.tools or one.state is ServerState.CONNECTED else []
        facts += [counted(len(one.prompts), "prompt")] if one.prompts else []
        facts += ["resources"] if one.resources else []
        facts += [f"protocol {one.protocol}"] if one.protocol else []
        facts += [f"restarted {counted(one.restarts, 'time')}"] if one.restarts else []
        facts += [f"{one.garbage} lines that are no message"] if one.garbage else []
        about = f"  {', '.join(facts)}" if facts else ""
        yield visible(f"{one.name}  {one.state}  ({one.transport}, {one.target}, of the {one.origin}){about}")
        if one.why:
            yield visible(f"  {one.why}")
        for state in (PinState.NEW, PinState.CHANGED):
            names = [name for name, said in one.tools.items() if said == state]
            if names:
                how = "asks at its first use" if state is PinState.NEW else "not used until you approve it"
                yield visible(f"  {state} ({how}): {', '.join(names)}")
        if one.instructions in (PinState.NEW, PinState.CHANGED):
            yield visible(f"  its instructions for the model are {one.instructions}: not used until you approve it")
        for name, said in one.tools.items():
            if said.startswith("not used"):
                yield visible(f"  {name}: {said}")


class _LiveTools(Mapping[str, Tool]):
    """Tools that stay, and those that the servers have when it is looked at."""

    def __init__(self, own: Mapping[str, Tool], servers: SessionServers) -> None:
        self._own = own
        self._servers = servers
        self._hub = servers.hub

    def __getitem__(self, name: str) -> Tool:
        if name == SEARCH:
            return self._servers.search()
        own = self._own.get(name)
        return own if own is not None else self._hub.tools()[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._own, *self._hub.tools()))

    def __len__(self) -> int:
        return len(self._own) + len(self._hub.tools())

    # Tools come and go at any time: who looks at all of them sees those of one moment.

    def items(self) -> ItemsView[str, Tool]:
        return self._now().items()

    def values(self) -> ValuesView[Tool]:
        return self._now().values()

    def _now(self) -> dict[str, Tool]:
        return {**self._own, SEARCH: self._servers.search(), **self._hub.tools()}
