"""All servers of a session: they live in a thread of their own, so that nothing that they send holds the session up."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from treadle.engine.ports import Asked, Output, PersonReply, ask_person
from treadle.mcp.declaring import tool_name
from treadle.mcp.health import changed_words, first_state, server_health, write_server_log
from treadle.mcp.hub_ports import HubPorts
from treadle.mcp.program import started_early
from treadle.mcp.server_tool import RunningCall, ServerTool, pin_state, same_tool, server_tool
from treadle.mcp.states import (
    DeclaredPrompt,
    DeclaredTool,
    Exchange,
    PinState,
    ServerHealth,
    ServerPlan,
    ServerState,
)
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Origin, Outcome, result_text
from treadle.workspace.text import visible

if TYPE_CHECKING:
    import httpx2

    from treadle.mcp.callbacks import SampleAsked
    from treadle.mcp.connection import ServerConnection

_T = TypeVar("_T")

_AT_ONCE = 8
"""Servers that are started side by side."""

_HEAD_START = 0.15
"""Seconds for the first paint, and for the programs to start: loading the SDK takes the processor from both."""

_LONGEST_CLOSE = 5.0
_LONGEST_ASKED = 3_000
_MOST_SHOWN = 200
"""Lines of one call that are shown live."""


class McpHub:
    """The servers of a session. Its methods are called in the session's loop, but for those of `ServerHost`."""

    def __init__(self, plans: Sequence[ServerPlan], ports: HubPorts) -> None:
        self.plans = plans
        self.version = ports.version
        self.changes = 0
        self.news: deque[str] = deque(maxlen=50)
        self._ports = ports
        self._main: asyncio.AbstractEventLoop | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_thread, name="mcp", daemon=True)
        self._connections: dict[str, ServerConnection] = {}
        self._owners: list[asyncio.Task[None]] = []
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._tools: Mapping[str, ServerTool] = MappingProxyType({})
        self._vouched: dict[str, dict[str, str]] = {}
        self._running: dict[str, list[RunningCall]] = {}
        self._ready = threading.Event()
        self._shown_changed: set[tuple[str, str]] = set()

    # What the session does

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        return self._main is not None

    def start(self) -> None:
        """Begin to connect to every server; returns at once."""
        if not self.started:
            self._main = asyncio.get_running_loop()
            self._thread.start()

    async def close(self) -> None:
        """End every server, all at the same time, and the thread."""
        if not self.started:
            self._loop.close()
        if not self._thread.is_alive():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_CLOSE):
                await self._there(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 1.0)

    async def settled(self, seconds: float) -> tuple[ServerHealth, ...]:
        """Wait until every server is connected or has failed, for so many seconds; gives how those without are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._there(self._settled)
        return tuple(one for one in self.health() if one.state not in (ServerState.CONNECTED, ServerState.DISABLED))

    def wait(self, seconds: float) -> None:
        """Wait as `settled` does. To be called in a thread."""
        if self.started and self._ready.wait(seconds):
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._settled(), self._loop).result(seconds)

    def tools(self) -> Mapping[str, ServerTool]:
        """Give the tools of all servers by their names, as they are now; the same ones are the same objects."""
        return self._tools

    def find(self, server: str, tool: str) -> ServerTool | None:
        """Find a tool by the names that its server and it have themselves, or have for the model."""
        for one in self._tools.values():
            if server in (one.plan.server.name, one.plan.slug) and tool in (one.declared.name, one.spec.name):
                return one
        return self._tools.get(tool)

    def state_of(self, plan: ServerPlan) -> ServerState:
        """Say how a server is doing."""
        connection = self._connections.get(plan.slug)
        return first_state(plan) if connection is None else connection.state

    def health(self) -> tuple[ServerHealth, ...]:
        """Say how each server is doing."""
        return tuple(server_health(plan, self._connections.get(plan.slug), self._tools) for plan in self.plans)

    def resources_of(self) -> tuple[str, ...]:
        """Name the servers that have resources."""
        return tuple(one.plan.server.name for one in self._connections.values() if one.declared.resources)

    def prompts(self) -> tuple[tuple[ServerPlan, DeclaredPrompt], ...]:
        """Give the prompts of all servers."""
        return tuple((one.plan, prompt) for one in self._connections.values() for prompt in one.declared.prompts)

    async def call_tool(self, tool: ServerTool, arguments: dict[str, Any], output: Output) -> CallResult:
        """Call a tool. That it runs means that somebody said yes to it, if it was new. Raises `ToolError`."""
        if tool.pinned is PinState.CHANGED:
            raise ToolError("Not run: its declaration changed since it was approved. Continue without it.")
        if tool.pinned is PinState.NEW:
            await self._there(lambda: self._pin(tool.plan, (tool.declared,)))
        running = RunningCall(output, ask_person.get())
        calls = self._running.setdefault(tool.plan.slug, [])
        calls.append(running)
        try:
            return await self._there(lambda: self._call(tool, arguments, running))
        finally:
            calls.remove(running)

    def approve(self, name: str) -> tuple[str, ...]:
        """Take a person's yes to all tools that a server has now; gives their names. To be called in a thread.

        Raises `ToolError`, or `StoreError` when it cannot be kept.
        """
        connection = self._named(name)
        tools = connection.declared.tools
        asyncio.run_coroutine_threadsafe(self._pin(connection.plan, tools, others=False), self._loop).result()
        return tuple(one.name for one in tools)

    async def request(self, name: str, ask: Callable[["ServerConnection"], Awaitable[_T]]) -> _T:
        """Ask a server something, in the servers' loop. Raises `ToolError`."""
        connection = self._named(name)

        async def asked() -> _T:
            return await ask(connection)

        return await self._there(asked)

    def reconnect(self, name: str) -> None:
        """Try once more to connect to a server that was given up. Raises `ToolError`."""
        connection = self._named(name)
        self._loop.call_soon_threadsafe(connection.again)

    async def turn(self, name: str, *, on: bool) -> ServerHealth:
        """Turn a server on or off for this session, and wait until that is done. Raises `ToolError`."""
        plan = next((plan for plan in self.plans if name in (plan.server.name, plan.slug)), None)
        if plan is None or plan.problem:
            why = "there is none of this name" if plan is None else plan.problem
            raise ToolError(f"The MCP server {visible(name)} is not usable: {why}. Correct that, or use another one.")

        async def turned() -> None:
            connection = self._connections.get(plan.slug) or (self._connect(plan) if on else None)
            if connection is not None:
                connection.turn(on=on)
                await connection.settled.wait()

        await self._there(turned)
        return server_health(plan, self._connections.get(plan.slug), self._tools)

    def _named(self, name: str) -> "ServerConnection":
        for one in self._connections.values():
            if name in (one.plan.server.name, one.plan.slug):
                return one
        known = ", ".join(visible(plan.server.name) for plan in self.plans)
        raise ToolError(f"There is no MCP server {visible(name)!r} connected. Use one of: {known}.", invalid=True)

    async def _there(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run something in the servers' loop; a cancel goes along."""
        await self._until_ready()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self._loop))

    async def _until_ready(self) -> None:
        if not self._ready.is_set():
            await asyncio.to_thread(self._ready.wait, 30.0)

    # What runs in the thread

    def _run_thread(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._begin())
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _begin(self) -> None:
        """Start the first programs, and load the SDK while they start."""
        wanted = [plan for plan in self.plans if plan.server.enabled and not plan.problem]
        started = await asyncio.gather(*(started_early(plan) for plan in wanted[:_AT_ONCE]))
        early = dict(zip((plan.slug for plan in wanted), started, strict=False))
        await asyncio.sleep(_HEAD_START)
        for plan in wanted:
            self._connect(plan, early.get(plan.slug))

    def _connect(self, plan: ServerPlan, early: Any = None) -> "ServerConnection":
        from treadle.mcp.connection import ServerConnection

        connection = self._connections[plan.slug] = ServerConnection(plan, self, early)
        self._owners.append(self._loop.create_task(connection.own(self._places), name=f"mcp {plan.slug}"))
        return connection

    async def _settled(self) -> None:
        await asyncio.gather(*(one.settled.wait() for one in list(self._connections.values())))

    async def _end(self) -> None:
        for one in self._connections.values():
            one.end()
        if self._owners:
            await asyncio.wait(self._owners, timeout=_LONGEST_CLOSE - 0.5)

    async def _call(self, tool: ServerTool, arguments: dict[str, Any], running: RunningCall) -> CallResult:
        from treadle.mcp.connection import ServerSaidError
        from treadle.mcp.results import tool_result

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            of = "" if total is None else f"/{total:g}"
            self._show(running, f"{progress:g}{of} {visible(message or '')}".strip())

        connection = self._connections[tool.plan.slug]
        name = tool.declared.name
        try:
            result = await connection.ask(
                lambda client: client.call_tool(name, arguments, progress_callback=progressed)
            )
        except ServerSaidError as error:
            return replace(result_text(Outcome.FAILED, error.text), origin=Origin.SERVER)
        return await asyncio.to_thread(tool_result, result, tool.plan.server.name, self._ports.read_image)

    async def _pin(self, plan: ServerPlan, tools: Sequence[DeclaredTool], *, others: bool = True) -> None:
        if plan.kept:
            await asyncio.to_thread(self._ports.pins.pin, plan.server.name, plan.identity, tools, others=others)
        self._vouched.setdefault(plan.slug, {}).update({one.name: one.digest for one in tools})
        self._rebuild()

    def _pins_of(self, connection: "ServerConnection") -> Mapping[str, str]:
        """Read what was approved of a server; who vouches for it has approved what it first has."""
        plan = connection.plan
        known = dict((self._ports.pins.read(plan.identity) if plan.kept else None) or {})
        known |= self._vouched.get(plan.slug, {})
        new = [one for one in connection.declared.tools if one.name not in known]
        if plan.vouched and new:
            digests = {one.name: one.digest for one in new}
            self._vouched.setdefault(plan.slug, {}).update(digests)
            known |= digests
            if plan.kept:
                self._ports.pins.pin(plan.server.name, plan.identity, new)
        return known

    def _rebuild(self) -> None:
        """Put the tools of all servers together; those that are as before stay the same objects."""
        found: dict[str, ServerTool] = {}
        for plan in self.plans:
            connection = self._connections.get(plan.slug)
            if connection is None:
                continue
            with suppress(OSError):
                self._ports.keep_prompts(plan, connection.declared.prompts)
            pins = self._pins_of(connection)
            for declared in connection.declared.tools:
                name = tool_name(plan.slug, declared.name, {**self._ports.taken, **found})
                made = server_tool(name, plan, declared, pin_state(pins, declared), call=self.call_tool)
                before = self._tools.get(name)
                found[name] = before if before is not None and same_tool(before, made) else made
                self._tell_changed(made)
        self._tools = MappingProxyType(found)
        self.changes += 1

    def _tell_changed(self, tool: ServerTool) -> None:
        """Say once that a tool is not what was approved any more."""
        key = (tool.plan.slug, tool.declared.digest)
        if tool.pinned is PinState.CHANGED and key not in self._shown_changed:
            self._shown_changed.add(key)
            self._tell(changed_words(tool))

    def _show(self, running: RunningCall, text: str) -> None:
        if self._main is not None and running.shown < _MOST_SHOWN:
            running.shown += 1
            with suppress(RuntimeError):
                self._main.call_soon_threadsafe(running.output, f"{text}\n")

    def _tell(self, text: str) -> None:
        if self._main is not None:
            with suppress(RuntimeError):
                self._main.call_soon_threadsafe(self._ports.tell, text)

    # What connections tell, in the thread

    def log(self, plan: ServerPlan, text: str) -> None:
        """Write a line into the server's log, which is bounded."""
        write_server_log(plan.log, text)

    def live(self, plan: ServerPlan, text: str) -> None:
        """Show a line in the calls of a server that run."""
        for running in tuple(self._running.get(plan.slug, ())):
            self._show(running, text)

    def changed(self, connection: "ServerConnection", before: ServerState) -> None:
        """Take note that a server is in another state."""
        name, why = visible(connection.plan.server.name), connection.why
        self.log(connection.plan, f"{before} -> {connection.state} {why}".rstrip())
        match connection.state:
            case ServerState.FAILED:
                self.news.append(f"{connection.plan.slug} is not connected")
                self._tell(f"The MCP server {name} is not connected: {why}")
            case ServerState.RECONNECTING:
                self._tell(f"The MCP server {name} ended ({why}). It is connected again.")
            case ServerState.DISABLED:
                self.news.append(f"{connection.plan.slug} is turned off")
                self._rebuild()
            case ServerState.CONNECTED:
                self.news.append(f"{connection.plan.slug} is connected")
                self._rebuild()
            case _:
                pass

    def relisted(self, connection: "ServerConnection") -> None:
        """Take note that a server has other tools or prompts."""
        self.log(connection.plan, "its tools or prompts changed")
        self._rebuild()

    def exchanging(self, exchange: Exchange) -> Exchange:
        """Give the exchange as it can be called in the servers' loop."""

        async def exchanged(message: dict[str, Any]) -> dict[str, Any] | None:
            return await self._back(exchange(message))

        return exchanged

    def sign_in(self, plan: ServerPlan) -> "httpx2.Auth | None":
        """Give what signs requests in."""
        return self._ports.sign_in(plan)

    async def ask(self, plan: ServerPlan, asked: Asked) -> PersonReply:
        """Ask the person, by way of the call of this server that runs; without one nobody is asked."""
        calls = self._running.get(plan.slug)
        if not calls:
            self._tell(f"{asked.who} asked something while none of its tools ran: {asked.text}")
            return PersonReply()
        return await self._back(calls[-1].ask(asked))

    async def sample(self, plan: ServerPlan, asked: "SampleAsked") -> tuple[str, str] | None:
        """Ask the model, if the person agrees."""
        if self._ports.sample is None:
            return None
        shown = "\n".join(text for _, text in asked.texts)[-_LONGEST_ASKED:]
        question = f"It wants an answer of the model, which costs money. It asks:\n{visible(shown)}"
        said = await self.ask(plan, Asked(who=asked.who, text=question))
        return await self._back(self._ports.sample(asked)) if said.accepted else None

    async def _back(self, work: Awaitable[_T]) -> _T:
        """Wait for work of the session's loop."""
        if self._main is None:
            raise AssertionError("the hub was started")

        async def done() -> _T:
            return await work

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done(), self._main))

    def roots(self) -> tuple[str, ...]:
        """Name the folders of the workspace."""
        return tuple(self._ports.roots)
