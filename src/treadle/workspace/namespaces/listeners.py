"""The servers that a session's commands run: which ports they listen on, and ways to them from outside."""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from treadle.workspace.commands.meter import inner_number, process_name
from treadle.workspace.namespaces.openings import NotYetError, http_name
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.network.checked_addresses import is_this_machine

_LISTENS = "0A"
"""The state of a socket that listens, as the kernel writes it."""
_ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_CHUNK = 64 * 1024
_FIRST_FREE_PORT = 1024
_HTTP = re.compile(rb"[A-Z]{1,20} [^\r\n]{0,8192}(\Z| HTTP/1)")
_NOT_FOR_US = (
    b"HTTP/1.1 421 Misdirected Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
    b"Open it as localhost or 127.0.0.1.\n"
)


class Listening(Struct, frozen=True, order=True):
    """A port that is listened on, and by which process, as it is numbered inside; 0 and empty where that is unknown."""

    port: int
    pid: int = 0
    program: str = ""

    def __str__(self) -> str:
        return f"{self.port} ({self.program}, {self.pid})" if self.program else str(self.port)


class CommandServers:
    """Looks for the servers of a session; `namespaces` gives what its commands share now, None where nothing is."""

    def __init__(self, namespaces: Callable[[], SessionNamespaces | None]) -> None:
        self._namespaces = namespaces

    def ports(self) -> frozenset[int]:
        """Give the ports that something listens on; reads two files of the kernel."""
        return frozenset(port for port, _ in self._listening())

    def sockets(self, port: int) -> frozenset[str]:
        """Give the numbers of the sockets that listen on a port: a server that comes after another has others."""
        return frozenset(inode for found, inode in self._listening() if found == port)

    def holders(self, port: int) -> frozenset[int]:
        """Give the processes, as this machine numbers them, that have such a socket; looks at each process."""
        wanted = self.sockets(port)
        return frozenset(pid for pid in _all_processes() if wanted and not wanted.isdisjoint(_sockets_of(pid)))

    def answer(self, host: str, port: int) -> bool:
        """Whether one of them listens at a place now."""
        return is_this_machine(host) and port in self.ports()

    def listening(self, processes: Iterable[int] | None = None) -> tuple[Listening, ...]:
        """Name each port with its process: those of some `processes`, or all, for which it looks at each process."""
        ours = frozenset(_sockets_of(os.getpid()))  # which lead to servers of this machine
        wanted = {inode: port for port, inode in self._listening() if inode not in ours}
        found = {} if processes is not None else {port: Listening(port) for port in wanted.values()}
        for pid in (_all_processes() if processes is None else processes) if wanted else ():
            for inode in _sockets_of(pid):
                if (port := wanted.get(inode)) is not None and (port not in found or not found[port].program):
                    found[port] = Listening(port, inner_number(pid), process_name(pid))
        return tuple(sorted(found.values()))

    def _listening(self) -> list[tuple[int, str]]:
        """Give the ports with the numbers of their sockets: below 1024 no command can listen, and Treadle does."""
        found = self._sockets("tcp", "tcp6", state=_LISTENS)
        return [entry for entry in found if entry[0] >= _FIRST_FREE_PORT]

    def _sockets(self, *kinds: str, state: str = "") -> list[tuple[int, str]]:
        shared = self._namespaces()
        holder = None if shared is None else shared.living()
        if holder is None:
            return []
        files = (Path(f"/proc/{holder.pid}/net/{kind}") for kind in kinds)
        return [entry for file in files for entry in _entries(file, state)]

    def asker(self, port: int) -> int:
        """Find the process that has a port of UDP, as looking up names takes one; 0 where that cannot be seen."""
        wanted = {inode for found, inode in self._sockets("udp", "udp6") if found == port}
        return next((pid for pid in _all_processes() if wanted and not wanted.isdisjoint(_sockets_of(pid))), 0)

    async def connect(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of the session's loopback. Raises `OSError`."""
        shared = self._namespaces()
        if shared is None:
            raise OSError("the session has no network of its own")
        loop = asyncio.get_running_loop()
        for family, address in _ADDRESSES:
            sock = await asyncio.to_thread(shared.socket, family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                await loop.sock_connect(sock, (address, port))
                return await asyncio.open_connection(sock=sock)
            except OSError:
                sock.close()
        raise ConnectionRefusedError(f"nothing listens on port {port} of the session any more")

    @asynccontextmanager
    async def relayed(self, port: int, at: int = 0, *, meant: Callable[[], bool] = lambda: True) -> AsyncIterator[int]:
        """Relay a port of this machine's loopback to one of the session's; `at` 0 takes a free one. Gives its number.

        A connection is relayed while the server is the one that is `meant`, which is looked up in a thread. A request
        of HTTP is relayed only where it names this machine: pages of the web reach loopback by other names. Raises
        `OSError`.
        """
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._relay(port, reader, writer, meant))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", at)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, meant: Callable[[], bool]
    ) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            if not await asyncio.to_thread(meant):
                return
            inner_reader, inner_writer = await self.connect(port)
            with contextlib.closing(inner_writer):
                async with asyncio.TaskGroup() as group:
                    answering = group.create_task(_pump(inner_reader, writer))  # some servers speak first
                    start = await _first_request(reader)
                    if start is None:
                        answering.cancel()
                        writer.write(_NOT_FOR_US)
                        await writer.drain()
                        return
                    inner_writer.write(start)
                    await _pump(reader, inner_writer)


async def _first_request(reader: asyncio.StreamReader) -> bytes | None:
    """Read how a connection begins; None where it is a request of HTTP that does not name this machine."""
    start = b""
    while part := await reader.read(_CHUNK):
        start += part
        if not _HTTP.match(start):
            return start
        try:
            return start if is_this_machine(http_name(start)) else None
        except NotYetError:
            continue
    return start


async def carry(ways: tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], ...]) -> None:
    """Hand on bytes each way until their end, or until the other side has gone."""
    async with asyncio.TaskGroup() as group:
        for reader, writer in ways:
            group.create_task(_pump(reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on bytes until their end or until the other side has gone, and pass the end on."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()


def machine_ports() -> frozenset[int]:
    """Give the ports that programs of this machine listen on; none where the kernel does not say."""
    files = (Path(f"/proc/self/net/{name}") for name in ("tcp", "tcp6"))
    return frozenset(port for file in files for port, _ in _entries(file, _LISTENS))


def _entries(file: Path, state: str) -> Iterator[tuple[int, str]]:
    """Read the ports of sockets in a state, or in any, with the numbers of the sockets."""
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines()[1:]:
            fields = line.split()
            if state in ("", fields[3]):
                yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _all_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - by far the quickest


def _sockets_of(pid: int) -> Iterator[str]:
    """Give the numbers of the sockets that a process has open; none where they cannot be seen."""
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - as above
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 - as above
                if target.startswith("socket:["):
                    yield target[8:-1]
