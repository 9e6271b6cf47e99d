"""All servers of a session: they live in a thread of their own, so that nothing that they send holds the session up."""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Asked, AskPerson, Output, PersonReply, ask_person
from treadle.mcp.hub_ports import HubPorts
from treadle.mcp.server_health import first_state, server_health, write_server_log
from treadle.mcp.server_program import ProgramStart, ServerProgram, start_program
from treadle.mcp.server_tool import ServerSaidError, ServerTool
from treadle.mcp.states import GONE, Declared, DeclaredPrompt, Exchange, PinState, ServerHealth, ServerPlan, ServerState
from treadle.mcp.tool_table import ToolTable
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

    from treadle.mcp.callbacks import SampleAsked
    from treadle.mcp.server_connection import ServerConnection

_T = TypeVar("_T")

STARTED_AT_ONCE = 8
"""Servers that are started side by side."""

_HEAD_START = 0.15
"""Seconds for the first paint, and for the programs to start: loading the SDK takes the processor from both."""

_LONGEST_CLOSE = 5.0
_LONGEST_URI = 300
_OF_URIS = ":/?#[]@!$&'()*+,;=%~"
_MOST_SHOWN = 200
"""Lines of one call that are shown live."""


class _Running(Struct):
    """A call that runs: where its live lines go, how many there were, and how it asks the person."""

    output: Output
    ask: AskPerson
    shown: int = 0


class McpHub:
    """The servers of a session. Its methods are called in the session's loop, but for those of `ServerHost`."""

    def __init__(self, plans: Sequence[ServerPlan], ports: HubPorts) -> None:
        self.plans: Sequence[ServerPlan] = plans
        self.version = ports.version
        self.table = ToolTable(plans, ports, self.tell, self.call_tool)
        self.news: deque[str] = deque(maxlen=50)
        self._ports = ports
        self._main: asyncio.AbstractEventLoop | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_thread, name="mcp", daemon=True)
        self._connections: Mapping[str, ServerConnection] = MappingProxyType({})
        self._owners: list[asyncio.Task[None]] = []
        self._places = asyncio.Semaphore(STARTED_AT_ONCE)
        self._running: dict[str, list[_Running]] = {}
        self._ready = threading.Event()
        self._told_asking: set[str] = set()
        self.table.expect([plan for plan in plans if plan.server.enabled and not plan.problem])

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

    async def settled(self, seconds: float, plans: Sequence[ServerPlan] | None = None) -> None:
        """Wait until these servers, or all, are connected or failed, for so many seconds once the SDK is loaded."""
        await self._until_ready()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._there(lambda: self._settled(plans))

    def wait(self, seconds: float) -> None:
        """Wait as `settled` does. To be called in a thread."""
        if self.started and self._ready.wait(seconds) and not self._loop.is_closed():
            settling = asyncio.run_coroutine_threadsafe(self._settled(), self._loop)
            try:
                settling.result(seconds)
            except TimeoutError:
                settling.cancel()

    def tools(self) -> Mapping[str, ServerTool]:
        """Give the tools of all servers by their names, as they are now; the same ones are the same objects."""
        return self.table.tools

    def find(self, server: str, tool: str) -> ServerTool | None:
        """Find a tool by the names that its server and it have themselves, or have for the model."""
        known = (one for one in self.tools().values() if server in (one.plan.server.name, one.plan.slug))
        return next((one for one in known if tool in (one.declared.name, one.spec.name)), None)

    def state_of(self, plan: ServerPlan) -> ServerState:
        """Say how a server is doing."""
        connection = self._connections.get(plan.slug)
        return first_state(plan) if connection is None else connection.state

    def health(self) -> tuple[ServerHealth, ...]:
        """Say how each server is doing."""
        return tuple(map(self._health_of, self.plans))

    def _health_of(self, plan: ServerPlan) -> ServerHealth:
        found = server_health(plan, self._connections.get(plan.slug), self.table)
        return replace(found, why=self._ports.redact(found.why)) if found.why else found

    def resources_of(self) -> tuple[str, ...]:
        """Name the servers that have resources."""
        there = (plan for plan in self.plans if self.state_of(plan) not in GONE)
        return tuple(plan.server.name for plan in there if self.table.declared_by(plan).resources)

    def prompts(self) -> tuple[tuple[ServerPlan, DeclaredPrompt], ...]:
        """Give the prompts of all servers."""
        return tuple((one.plan, prompt) for one in self._connections.values() for prompt in one.declared.prompts)

    async def call_tool(self, tool: ServerTool, arguments: dict[str, Any], output: Output) -> CallResult:
        """Call a tool. That it runs means that somebody said yes to it, if it was new. Raises `ToolError`."""
        self.table.check(tool)
        if tool.pinned is PinState.NEW:
            await self._there(lambda: self.table.approve(tool.plan, Declared(tools=(tool.declared,))))
        running = _Running(output, ask_person.get())
        calls = self._running.setdefault(tool.plan.slug, [])
        calls.append(running)
        try:
            return await self._there(lambda: self._call(tool, arguments, running))
        finally:
            calls.remove(running)

    def approve(self, name: str) -> tuple[str, ...]:
        """Take a yes to all that a server declares now; gives the names of its tools. To be called in a thread.

        Raises `ToolError`, also where it is not connected: the yes would be to nothing, and take earlier ones back.
        """
        connection = self._named(name)
        declared = connection.declared
        if connection.state is not ServerState.CONNECTED:
            starts = connection.state in (ServerState.WAITING, ServerState.CONNECTING)
            why = "it is still starting" if starts else self._ports.redact(connection.why) or "it is not connected"
            raise ToolError(
                f"Nothing of the MCP server {visible(name)} was approved: {why}. Use /mcp to see how it is."
            )
        asyncio.run_coroutine_threadsafe(self.table.approve(connection.plan, declared, only=True), self._loop).result()
        return tuple(one.name for one in declared.tools)

    async def request(self, name: str, ask: Callable[["ServerConnection"], Awaitable[_T]]) -> _T:
        """Ask a server something, in the servers' loop. Raises `ToolError`."""
        await self._until_ready()
        connection = self._named(name)

        async def asked() -> _T:
            return await ask(connection)

        return await self._there(asked)

    def reconnect(self, name: str) -> None:
        """Connect to a server once more, whether it is connected now or was given up. Raises `ToolError`."""
        self._loop.call_soon_threadsafe(self._named(name).again)

    async def turn(self, name: str, *, on: bool) -> ServerHealth:
        """Turn a server on or off for this session, and wait until that is done. Raises `ToolError`."""
        await self._until_ready()
        plan = next((plan for plan in self.plans if name in (plan.server.name, plan.slug)), None)
        if plan is None or plan.problem:
            why = "there is none of this name" if plan is None else plan.problem
            raise ToolError(f"The MCP server {visible(name)} is not usable: {why}. Correct that, or use another one.")

        async def turned() -> None:
            if on and plan.slug not in self._connections:
                self._connect([plan], {})
            connection = self._connections.get(plan.slug)
            if connection is not None:
                connection.turn(on=on)
                await connection.settled.wait()

        await self._there(turned)
        return self._health_of(plan)

    def _named(self, name: str) -> "ServerConnection":
        for one in self._connections.values():
            if name in (one.plan.server.name, one.plan.slug) and one.state is not ServerState.DISABLED:
                return one
        for plan in self.plans:
            if name in (plan.server.name, plan.slug):
                state = self.state_of(plan)
                why = plan.problem or ("it is disabled" if state is ServerState.DISABLED else "it is still starting")
                raise ToolError(f"The MCP server {visible(name)} cannot be used: {visible(why)}. Continue without it.")
        known = ", ".join(visible(plan.server.name) for plan in self.plans)
        raise ToolError(f"There is no MCP server {visible(name)!r}. Use one of: {known}.", invalid=True)

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
        beginning = self._loop.create_task(self._begin())  # which a close that does not wait for it may leave
        beginning.add_done_callback(lambda _: self._ready.set())
        beginning.add_done_callback(asyncio.Task.result)  # which shows an error
        try:
            self._loop.run_forever()
        finally:
            # What did not end in time is left as it is, and nobody wants to read where it stood.
            self._loop.set_exception_handler(lambda _loop, _context: None)
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._ready.set()  # nobody waits for what was left

    async def _begin(self) -> None:
        """Start the first programs, and load the SDK while they start."""
        wanted = [plan for plan in self.plans if plan.server.enabled and not plan.problem]
        first = {plan.slug: plan.program for plan in wanted[:STARTED_AT_ONCE] if plan.program is not None}
        started = await asyncio.gather(*map(_started, first.values()), return_exceptions=True)
        early = dict(zip(first, started, strict=True))  # with errors, which their owners take care of
        await asyncio.sleep(_HEAD_START)
        try:
            self._connect(wanted, early)
        except ImportError as error:
            why = f"the extra 'mcp' cannot be loaded: {error}"
            self.plans = [replace(plan, problem=plan.problem or why) for plan in self.plans]
            self.tell(f"MCP servers are not used: {why}. Run what this prints: treadle update --with mcp")
            await asyncio.gather(*(one.close() for one in early.values() if isinstance(one, ServerProgram)))

    def _connect(self, plans: Sequence[ServerPlan], early: Mapping[str, ServerProgram | BaseException]) -> None:
        from treadle.mcp.server_connection import ServerConnection

        made = {plan.slug: ServerConnection(plan, self, early.get(plan.slug)) for plan in plans}
        self._connections = MappingProxyType({**self._connections, **made})
        for slug, one in made.items():
            self._owners.append(self._loop.create_task(one.own(self._places), name=f"mcp {slug}"))

    async def _settled(self, plans: Sequence[ServerPlan] | None = None) -> None:
        wanted = self._connections.keys() if plans is None else {plan.slug for plan in plans}
        await asyncio.gather(*(one.settled.wait() for slug, one in self._connections.items() if slug in wanted))

    async def _end(self) -> None:
        for one in self._connections.values():
            one.end()
        if self._owners:
            await asyncio.wait(self._owners, timeout=_LONGEST_CLOSE - 0.5)

    async def _call(self, tool: ServerTool, arguments: dict[str, Any], running: _Running) -> CallResult:
        from treadle.mcp.tool_results import tool_result, with_moved

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            of = "" if total is None else f"/{total:g}"
            self._show(running, f"{progress:g}{of} {visible(message or '')}".strip())

        async def asked(client: "Client") -> Any:
            self.table.check(tool)
            return await client.call_tool(tool.declared.name, arguments, progress_callback=progressed)

        connection = self._named(tool.plan.slug)
        if not connection.settled.is_set():
            self._show(running, "The server is still starting.")
        try:
            said = await connection.ask(asked)
            result = await asyncio.to_thread(tool_result, said, tool.plan.server.name, self._ports.read_image)
        except ServerSaidError as error:
            result = error.result
        return with_moved(result, await connection.moved())

    def _show(self, running: _Running, text: str) -> None:
        if self._main is not None and running.shown < _MOST_SHOWN:
            running.shown += 1
            with suppress(RuntimeError):
                self._main.call_soon_threadsafe(running.output, f"{text}\n")

    def tell(self, text: str) -> None:
        """Show the person a sentence; in either loop."""
        if self._main is not None:
            with suppress(RuntimeError):
                self._main.call_soon_threadsafe(self._ports.tell, self._ports.redact(text))

    # What connections tell, in the thread

    def log(self, plan: ServerPlan, text: str) -> None:
        """Write a line into the server's log, which is bounded."""
        write_server_log(plan.log, self._ports.redact(text))

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
                self.tell(f"The MCP server {name} is not connected: {why}")
            case ServerState.RECONNECTING:
                what = "ended" if before is ServerState.CONNECTED else "is not connected"
                self.tell(f"The MCP server {name} {what} ({why}). Connecting again.")
            case ServerState.DISABLED:
                self.news.append(f"{connection.plan.slug} is turned off")
                self.table.forget(connection.plan)
            case ServerState.CONNECTED:
                if before is ServerState.RECONNECTING or not self.table.is_expected(connection.plan):
                    self.news.append(f"{connection.plan.slug} is connected")
                self.table.learn(connection.plan, connection.declared)
                if before is ServerState.RECONNECTING:
                    self.tell(f"The MCP server {name} is connected again.")
            case _:
                pass

    def relisted(self, connection: "ServerConnection") -> None:
        """Take note that a server has other tools or prompts."""
        self.log(connection.plan, "its tools or prompts changed")
        self.table.learn(connection.plan, connection.declared)

    def updated(self, plan: ServerPlan, uri: str) -> None:
        """Take note that a resource, which the model read, changed."""
        self.news.append(
            f"the resource {quote(uri[:_LONGEST_URI], safe=_OF_URIS)} of {plan.slug} changed since it was read"
        )

    def exchanging(self, exchange: Exchange) -> Exchange:
        """Give the exchange as it can be called in the servers' loop."""
        return lambda message: self._back(exchange(message))

    def sign_in(self, plan: ServerPlan) -> "httpx2.Auth | None":
        """Give what signs requests in."""
        return self._ports.sign_in(plan)

    async def ask(self, plan: ServerPlan, asked: Asked) -> PersonReply:
        """Ask the person, by way of the call of this server that runs; without one nobody is asked."""
        calls = tuple(self._running.get(plan.slug, ()))
        if not calls:
            if plan.slug not in self._told_asking:
                self._told_asking.add(plan.slug)
                self.tell(f"{asked.who} asked something while none of its tools ran: {asked.text}")
            return PersonReply()
        return await self._back(calls[-1].ask(asked))

    async def sample(self, plan: ServerPlan, asked: "SampleAsked") -> tuple[str, str] | None:
        """Ask the model, if the person agrees."""
        if self._ports.sample is None:
            return None
        said = await self.ask(plan, Asked(who=asked.who, text=asked.question()))
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


async def _started(program: Callable[[], ProgramStart]) -> ServerProgram:
    return await start_program(program())
