"""Ports on which commands of a session listen, and those that a person opens on this machine to look at them."""

import asyncio
from collections.abc import Callable, Collection, Container
from contextlib import AsyncExitStack

from treadle.protocol.attach import ListeningPort, ServersAnswer
from treadle.workspace.files.text import visible
from treadle.workspace.namespaces.listeners import CommandServers, Listening

_USAGE = "Write /ports, /ports NUMBER to open one on this machine, or /ports close NUMBER."
_SECONDS = 10.0
_DIGITS = 5
_LOOK = 1.0
"""Seconds between two looks whether the servers of open ports have ended."""


class _OpenPort:
    """A port that a person opened: for one server, whatever else listens on its number later."""

    def __init__(self, servers: CommandServers, port: int) -> None:
        self.at = 0
        self.stack = AsyncExitStack()
        self._servers = servers
        self._port = port
        self._sockets = servers.sockets(port)
        self._holders = servers.holders(port)

    async def open(self) -> None:
        """Open it, at the same number where that is free. Raises `OSError`."""
        try:
            relayed = self._servers.relayed(self._port, self._port, meant=self.is_there)
            self.at = await self.stack.enter_async_context(relayed)
        except OSError:
            self.at = await self.stack.enter_async_context(self._servers.relayed(self._port, meant=self.is_there))

    def is_there(self) -> bool:
        """Whether its server listens still: with a socket of before, or one of its processes with another one."""
        now = self._servers.sockets(self._port)
        if now.isdisjoint(self._sockets) and self._holders.isdisjoint(self._servers.holders(self._port)):
            now = frozenset()
        self._sockets = now
        return bool(now)


class OwnPorts:
    """Those of one session, which runs in a loop; what a person opened is closed with its server, or the session."""

    def __init__(self, servers: Callable[[], CommandServers], loop: asyncio.AbstractEventLoop) -> None:
        self._servers = servers
        self._loop = loop
        self._open: dict[int, _OpenPort] = {}
        self._watching: asyncio.Task[None] | None = None

    def command(self, argument: str) -> ServersAnswer:
        """Do what `/ports` says with this argument. To be called in a thread."""
        doing = asyncio.run_coroutine_threadsafe(self._command(argument.split()), self._loop)
        return doing.result(_SECONDS)

    async def _command(self, words: list[str]) -> ServersAnswer:
        listening = {one.port: one for one in await asyncio.to_thread(self._servers().listening)}
        await self._close_gone(listening)
        match words:
            case []:
                return self._listed(listening.values())
            case [number] if number.isdecimal() and len(number) <= _DIGITS and int(number) in listening:
                return await self._show(int(number))
            case ["close", number] if number.isdecimal() and len(number) <= _DIGITS and int(number) in self._open:
                await self._close(int(number))
                return ServersAnswer(text=f"Port {number} is closed on this machine.")
            case [*_, number] if number.isdecimal() and len(number) <= _DIGITS:
                return ServersAnswer(text=f"No command of this session listens on port {number}.", warning=True)
            case _:
                return ServersAnswer(text=_USAGE, warning=True)

    def _listed(self, listening: Collection[Listening]) -> ServersAnswer:
        rows = [f"{visible(str(one))}{self._where(one.port)}" for one in listening]
        text = "\n".join([*rows, _USAGE]) if rows else "No command of this session listens on a port."
        ports = [
            ListeningPort(
                port=one.port, program=visible(one.program), pid=one.pid, address=self._where(one.port).strip()
            )
            for one in listening
        ]
        return ServersAnswer(text=text, ports=tuple(ports))

    async def _show(self, port: int) -> ServersAnswer:
        if port not in self._open:
            opened = await asyncio.to_thread(_OpenPort, self._servers(), port)
            await opened.open()
            self._open[port] = opened
            if self._watching is None:
                self._watching = asyncio.create_task(self._watch(), name="servers of ports that are open")
        return ServersAnswer(text=f"Open it: {_address(self._open[port].at)} (until its server or the session ends)")

    async def _watch(self) -> None:
        """Close the ports whose servers have ended, also where nobody looks."""
        while True:
            await asyncio.sleep(_LOOK)
            await self._close_gone(self._open)

    async def _close_gone(self, listening: Container[int]) -> None:
        for port, opened in tuple(self._open.items()):
            if port not in listening or not await asyncio.to_thread(opened.is_there):
                await self._close(port)

    def _where(self, port: int) -> str:
        return f"  {_address(self._open[port].at)}" if port in self._open else ""

    async def _close(self, port: int) -> None:
        opened = self._open.pop(port, None)
        if opened is not None:
            await opened.stack.aclose()

    async def close(self) -> None:
        """Close what is open."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        for port in list(self._open):
            await self._close(port)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"
