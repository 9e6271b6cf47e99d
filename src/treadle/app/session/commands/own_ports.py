"""Ports on which commands of a session listen, and those that a person opens on this machine to look at them."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack

from treadle.protocol.attach import ListeningPort, ServersAnswer
from treadle.workspace.files.text import visible
from treadle.workspace.namespaces.listeners import CommandServers, Listening

_USAGE = "Write /ports, /ports NUMBER to open one on this machine, or /ports close NUMBER."
_SECONDS = 10.0
_DIGITS = 5


class OwnPorts:
    """Those of one session, which runs in a loop; what a person opened is closed with its server, or the session."""

    def __init__(self, servers: Callable[[], CommandServers], loop: asyncio.AbstractEventLoop) -> None:
        self._servers = servers
        self._loop = loop
        self._open: dict[int, tuple[int, AsyncExitStack]] = {}

    def command(self, argument: str) -> ServersAnswer:
        """Do what `/ports` says with this argument. To be called in a thread."""
        doing = asyncio.run_coroutine_threadsafe(self._command(argument.split()), self._loop)
        return doing.result(_SECONDS)

    async def _command(self, words: list[str]) -> ServersAnswer:
        listening = {one.port: one for one in await asyncio.to_thread(self._servers().listening)}
        for gone in self._open.keys() - listening.keys():
            await self._close(gone)
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
        """Open a port, at the same number where that is free."""
        if port not in self._open:
            stack = AsyncExitStack()
            try:
                at = await stack.enter_async_context(self._servers().relayed(port, port))
            except OSError:
                at = await stack.enter_async_context(self._servers().relayed(port))
            self._open[port] = at, stack
        return ServersAnswer(text=f"Open it: {_address(self._open[port][0])} (until its server or the session ends)")

    def _where(self, port: int) -> str:
        return f"  {_address(self._open[port][0])}" if port in self._open else ""

    async def _close(self, port: int) -> None:
        _, stack = self._open.pop(port)
        await stack.aclose()

    async def close(self) -> None:
        """Close what is open."""
        for port in list(self._open):
            await self._close(port)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"
