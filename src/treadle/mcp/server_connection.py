"""One server: the task that owns its connection from the start to the end, and what everyone may ask of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError

from treadle.mcp.callbacks import Callbacks, ServerHost
from treadle.mcp.list_changes import ServerChanges
from treadle.mcp.server_lists import listed_by
from treadle.mcp.server_program import ServerProgram, start_program
from treadle.mcp.server_tool import ServerSaidError
from treadle.mcp.sound_listing import with_sound_answers
from treadle.mcp.states import Declared, ServerPlan, ServerState, way_to_sign_in
from treadle.mcp.transports import (
    BoundedTransport,
    Noise,
    Streams,
    error_reason,
    inside_transport,
    network_reason,
    network_transport,
    program_transport,
)
from treadle.protocol.errors import ToolError
from treadle.protocol.servers import ServerEra, ServerTransport
from treadle.workspace.files.text import visible
from treadle.workspace.unreached import connect_seconds, proxy_of
from treadle.workspace.untrusted import mark_untrusted

_T = TypeVar("_T")

_RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each attempt to connect again."""

_STEADY = 60.0
"""Seconds after which a connection is taken for a good one, and attempts are counted from the first again."""

_LONGEST_SAID = 2_000
_RECONNECT_PATIENCE = 10.0
_RELIST_PAUSE = 0.2
"""Seconds between two looks at what a server has: some announce each of their tools alone, and some never stop."""

_ENDED = (types.CONNECTION_CLOSED, "Connection closed")
_FORGOTTEN = (types.INVALID_REQUEST, "Session terminated")
"""What the SDK says by itself; its codes are also those of servers."""


_WRONG = (RuntimeError, ValueError, LookupError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError)


class ServerConnection:
    """A server, connected or not. Everything here runs in the one loop that its owner runs in."""

    def __init__(self, plan: ServerPlan, host: ServerHost, early: ServerProgram | BaseException | None = None) -> None:
        """`early` is the program where it was started already, or why it could not be."""
        self.plan = plan
        self._early = early
        self._running: ServerProgram | None = None
        self._network: BoundedTransport | None = None
        self._connecting: asyncio.Timeout | None = None
        self.declared = Declared()
        self.state = ServerState.WAITING
        self.why = ""
        self.protocol = ""
        self.version = ""
        self.restarts = 0
        self.noise = Noise(lambda text: host.log(self.plan, text))
        self.settled = asyncio.Event()
        self._host = host
        self._client: Client | None = None
        self._changes = ServerChanges(partial(host.updated, plan), seconds=plan.server.call_seconds)
        self._broken = asyncio.Event()
        self._ending = asyncio.Event()
        self._again = asyncio.Event()
        self._off = asyncio.Event()
        self._had_connection = False
        self._clocks: set[asyncio.Timeout] = set()
        self._callbacks = Callbacks(plan, host, self.paused)

    async def own(self, places: asyncio.Semaphore) -> None:
        """Connect, and again when the connection breaks, until `end`; the task that runs this is never cancelled."""
        attempts: Iterator[float] = iter(_RETRIES)
        while not self._ending.is_set():
            if self._off.is_set():
                await self._rest()
                attempts = iter(_RETRIES)
                continue
            began = time.monotonic()
            why = await self._serve(places)
            self._client = None
            if self._ending.is_set():
                break
            if self._off.is_set():
                continue
            if time.monotonic() - began > _STEADY and self.settled.is_set():
                attempts = iter(_RETRIES)
            pause = next(attempts, None) if self._had_connection or self._may_pass() else None
            self.settled.set()
            if pause is None:
                self._set(ServerState.FAILED, why)
                attempts = iter(_RETRIES)
            else:
                self.restarts += 1
                self._set(ServerState.RECONNECTING, why)
            await _first_of(self._ending, self._again, seconds=pause)
            self._again.clear()
        if isinstance(self._early, ServerProgram):
            await self._early.close()
        self._set(ServerState.CLOSED, "")
        self.settled.set()

    async def _rest(self) -> None:
        """Have nothing, until somebody wants the server again."""
        self.declared = Declared()
        self._had_connection = False
        self._set(ServerState.DISABLED, "")
        self.settled.set()
        while self._off.is_set() and not self._ending.is_set():
            self._again.clear()
            await _first_of(self._ending, self._again)

    def turn(self, *, on: bool) -> None:
        """Turn it on or off; `settled` says when that is done. One that was given up is tried once more."""
        if on == self._off.is_set() or (on and self.state is ServerState.FAILED):
            self.settled.clear()
            self._again.set()
        if on:
            self._off.clear()
        elif not self._off.is_set():
            self._off.set()
            self._break_off()

    def end(self) -> None:
        """Let the owner close the connection."""
        self._ending.set()
        self._break_off()

    def _break_off(self) -> None:
        self._broken.set()
        if self._connecting is not None and not self._connecting.expired():
            self._connecting.reschedule(0)

    def _set(self, state: ServerState, why: str) -> None:
        before, self.state, self.why = self.state, state, why
        if before is not state:
            self._host.changed(self, before)

    async def _serve(self, places: asyncio.Semaphore) -> str:
        """Connect once and stay so until that ends; gives why it ended."""
        self._broken.clear()
        self._changes.begin()
        program: ServerProgram | None = None
        why = "the connection ended"
        try:
            async with AsyncExitStack() as stack:
                async with places:
                    if self._ending.is_set() or self._off.is_set():
                        return ""
                    if self.state is not ServerState.RECONNECTING:
                        self._set(ServerState.CONNECTING, "")
                    async with asyncio.timeout(self.plan.server.connect_seconds) as limit:
                        self._connecting = limit
                        program = await self._program()
                        if program is not None:
                            program.tell_through(self._host.tell, visible(self.plan.server.name))
                            self._running = program
                            stack.push_async_callback(self._left, program)
                        client = await stack.enter_async_context(self._new_client(program))
                        self._check_era(client)
                        self.declared = await listed_by(client)
                        limit.reschedule(None)
                        self._connecting = None
                    self._connected(client)
                await self._until_end(client)
        except ToolError as error:
            why = error.text
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - the task owner
            why = self._reason(error)
        finally:
            self._connecting = None
        if self._network is not None and self._network.refused:
            why += f" (HTTP {self._network.refused}). {way_to_sign_in(self.plan.server.name)}"
        if program is not None and not self._ending.is_set():
            why = f"{why}. {visible(program.errors(served=self._had_connection))}"
        return why

    async def _left(self, program: ServerProgram) -> None:
        await program.close()
        self._running = None

    async def moved(self) -> tuple[str, ...]:
        """Say of the control files that its program may have made since the last time that they were moved."""
        return () if self._running is None else await self._running.moved()

    @property
    def signs_in(self) -> bool:
        """Whether the server refused as nobody has signed in, and no header was to prove who asks."""
        proof = any(name.lower() == "authorization" for name in self.plan.server.headers)
        return self._network is not None and self._network.refused == httpx2.codes.UNAUTHORIZED and not proof

    def _reason(self, error: BaseException) -> str:
        if self.plan.server.url:
            return network_reason(error, self.plan.server)
        if isinstance(error, TimeoutError):
            return f"it did not answer within {self.plan.server.connect_seconds:g} s"
        return error_reason(error)

    async def _program(self) -> ServerProgram | None:
        """Give the program, started now if it was not before. Raises whatever keeps it from starting."""
        early, self._early = self._early, None
        if isinstance(early, BaseException):
            raise early
        if early is not None or self.plan.program is None:
            return early
        return await start_program(self.plan.program())

    def _check_era(self, client: Client) -> None:
        wanted = self.plan.server.era
        if wanted is ServerEra.MODERN and client.protocol_version != wanted:
            raise ToolError(f"It speaks {client.protocol_version}, not {wanted}. Use another era for it.")

    def _connected(self, client: Client) -> None:
        self._client, self._had_connection = client, True
        if self._network is not None:
            self._network.refused = 0
        self.protocol = client.protocol_version
        info = client.server_info
        self.version = "" if info is None else visible(f"{info.name} {info.version}")
        self._again.clear()
        self._set(ServerState.CONNECTED, "")
        self.settled.set()

    def _new_client(self, program: ServerProgram | None) -> Client:
        server = self.plan.server
        return Client(
            self._transport(program),
            mode="legacy" if server.era is ServerEra.LEGACY else "auto",
            sampling_callback=self._callbacks.sampling if server.sampling else None,
            elicitation_callback=self._callbacks.elicit,
            list_roots_callback=self._callbacks.roots,
            logging_callback=self._callbacks.logged,
            log_level="info",
            message_handler=self._noticed,
            client_info=types.Implementation(name="treadle", version=self._host.version),
        )

    @asynccontextmanager
    async def _transport(self, program: ServerProgram | None) -> AsyncIterator[Streams]:
        server = self.plan.server
        async with AsyncExitStack() as stack:
            if program is not None:
                streams = await stack.enter_async_context(program_transport(program, self.noise, self._broken))
            elif self.plan.exchange is not None:
                streams = await stack.enter_async_context(inside_transport(self._host.exchanging(self.plan.exchange)))
            else:
                connect = min(server.connect_seconds, connect_seconds(server.url))
                timeout = httpx2.Timeout(server.connect_seconds, read=None, connect=connect)
                self._network = BoundedTransport(proxy=proxy_of(server.url) or None)
                client = httpx2.AsyncClient(
                    headers={"Accept-Encoding": "identity", **server.headers},
                    timeout=timeout,
                    transport=self._network,
                    auth=self._host.sign_in(self.plan),
                )
                events = server.transport is ServerTransport.SSE
                if not events:  # there the transport enters the client
                    await stack.enter_async_context(client)
                streams = await stack.enter_async_context(network_transport(server.url, client, events=events))
            yield with_sound_answers(streams)

    async def _noticed(self, message: Any) -> None:
        self._changes.noticed(message)
        if isinstance(message, Exception):
            self._host.log(self.plan, f"trouble: {error_reason(message)}")

    async def _until_end(self, client: Client) -> None:
        """Stay connected; list again what changed."""
        changes = self._changes
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(changes.listen(client))
            while not (self._ending.is_set() or self._broken.is_set()):
                await _first_of(self._ending, self._broken, changes.arrived)
                changes.arrived.clear()
                if changes.rewatch:
                    changes.rewatch = False
                    listening.cancel()
                    listening = tasks.create_task(changes.listen(client))
                if changes.stale and not self._broken.is_set():
                    changes.stale = False
                    with suppress(MCPError, TimeoutError):
                        async with asyncio.timeout(self.plan.server.connect_seconds):
                            self.declared = await listed_by(client)
                        self._host.relisted(self)
                    await _first_of(self._ending, self._broken, seconds=_RELIST_PAUSE)
            listening.cancel()

    def watch(self, uri: str) -> None:
        """Hear from now on when a resource changes, which was just read."""
        if self._client is not None:
            self._changes.watch(self._client, uri)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clocks of the calls while a person is asked."""
        now = asyncio.get_running_loop().time
        left = {one: when - now() for one in self._clocks if (when := one.when()) is not None and not one.expired()}
        for clock in left:
            clock.reschedule(None)
        try:
            yield
        finally:
            for clock, seconds in left.items():
                if clock in self._clocks and not clock.expired():
                    clock.reschedule(now() + max(seconds, 1.0))

    async def ask(self, request: Callable[[Client], Awaitable[_T]]) -> _T:
        """Ask the server something within its time limit; a session that has expired is begun again, once.

        Raises `ToolError` for everything that goes wrong.
        """
        for last in (False, True):
            client = await self._ready()
            clock = asyncio.timeout(self.plan.server.call_seconds)
            self._clocks.add(clock)
            try:
                async with clock:
                    return await request(client)
            except TimeoutError as error:
                raise ToolError(
                    f"{self._name} did not answer within {self.plan.server.call_seconds:g} s, and was "
                    "asked to stop. Continue without it."
                ) from error
            except MCPError as error:
                said = (error.code, error.message)
                if said == _FORGOTTEN:
                    self._client = None
                    self._broken.set()
                    if not last:
                        continue
                if said == _ENDED:
                    self._broken.set()
                    raise ToolError(
                        f"{self._name} ended during this call, and its effects are not known. It is being restarted. "
                        "Check what was done before you call it again."
                    ) from error
                raise self._said("refused", visible(error.message)) from error
            except _WRONG as error:
                raise self._said("gave a wrong answer", error_reason(error)) from error
            finally:
                self._clocks.discard(clock)
        raise ToolError(f"{self._name} ended the session twice. Continue without it.")

    def _said(self, what: str, text: str) -> ServerSaidError:
        """Make the error for what a server did, with its words marked as such."""
        marked = mark_untrusted(text[:_LONGEST_SAID], f"MCP server {self.plan.server.name}")
        return ServerSaidError(f"{self._name} {what}:\n{marked}\nCheck the arguments, or continue without it.")

    @property
    def _name(self) -> str:
        return f"The MCP server {visible(self.plan.server.name)}"

    async def _ready(self) -> Client:
        """Give the client, once the server is connected where it is about to be."""
        await self.settled.wait()  # how long a start may take is the connection's own bound
        end = time.monotonic() + _RECONNECT_PATIENCE
        while (self._client is None or self._broken.is_set()) and time.monotonic() < end:
            if self.state in (ServerState.FAILED, ServerState.CLOSED, ServerState.DISABLED):
                break
            await asyncio.sleep(0.05)
        if self._client is None or self._broken.is_set():
            raise ToolError(f"{self._name} is not connected ({self.state}). Continue without it.")
        return self._client

    def _may_pass(self) -> bool:
        """Whether a first attempt that failed may succeed by itself: an address may answer, a program will not."""
        return self._network is not None and not self._network.refused

    def again(self) -> None:
        """Connect anew: now where that was given up or is tried later, or after this connection."""
        (self._broken if self.state is ServerState.CONNECTED else self._again).set()


async def _first_of(*events: asyncio.Event, seconds: float | None = None) -> None:
    """Wait until one of them is set, for so many seconds at most."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
    finally:
        for wait in waits:
            wait.cancel()
