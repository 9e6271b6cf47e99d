"""The way of a session's commands to the network: each name that they look up is decided on when they look it up.

Inside, Treadle answers every look-up with an address of its own, and carries what connects there to the name that it
stands for. The answer waits until it is decided, so that no program has begun to wait for a server by then. Outside a
name is looked up only after a yes. Only names of the open network are served, on the ports of SSH, HTTP and HTTPS.

Whatever asks from inside is hostile. What begins a connection must name the name that was asked for; TLS stays whole
from end to end, so that neither what is sent nor what host a server behind a name serves is seen here.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence

from treadle.protocol.errors import ToolError
from treadle.workspace.namespaces.dns_names import (
    LookUp,
    LookUpEnd,
    NameTable,
    is_public_name,
    read_query,
    write_answer,
)
from treadle.workspace.namespaces.listeners import carry
from treadle.workspace.namespaces.openings import MOST_HEAD, NotYetError, http_name, tls_name
from treadle.workspace.namespaces.session_space import SessionNamespaces

_DNS = 53
_SSH, _HTTP, _HTTPS = 22, 80, 443
SERVED = (_SSH, _HTTP, _HTTPS)
"""The ports that are carried."""

_MOST_CONNECTIONS = 256
_MOST_WAITING = 64  # look-ups that are not answered yet
_OPENING_SECONDS = 20.0  # for the first bytes, which say what a connection is for
_RESET = struct.pack("ii", 1, 0)

CarriedConnection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Decide = Callable[[str, int], Awaitable[bool]]
"""Decides whether a name may be reached that the program asks for which has this port of UDP; takes as long as it
takes."""

Dial = Callable[[str, int], Awaitable[CarriedConnection]]
"""Connects to a port of a name outside. Raises `OSError` and `ToolError`."""

TellWhy = Callable[[str, str], None]
"""Is told why a connection for a name was ended."""


def _stays_open(name: str) -> bool:  # noqa: ARG001 - what was decided holds
    return True


class NetworkBroker:
    """Serves the network of some namespaces."""

    def __init__(
        self,
        namespaces: SessionNamespaces,
        decide: Decide,
        dial: Dial,
        *,
        tell: TellWhy,
        is_open: Callable[[str], bool] = _stays_open,
        machine_ports: Sequence[int] = (),
    ) -> None:
        """`is_open` says whether a name that was opened still may be reached.

        `machine_ports` are of this machine's loopback, and are reached by the same numbers inside.
        """
        self._namespaces = namespaces
        self._machine_ports = machine_ports
        self._decide = decide
        self._dial = dial
        self._tell = tell
        self._is_open = is_open
        self._table = NameTable()
        self._open: set[str] = set()
        self._deciding: dict[str, asyncio.Task[bool]] = {}
        self._servers: list[asyncio.Server] = []
        self._lookups: asyncio.DatagramTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._holder: object = None
        self._opening = asyncio.Lock()

    async def open(self) -> bool:
        """Serve the namespaces as they are now, which takes a few milliseconds once; tells whether that is possible."""
        async with self._opening:  # several commands may begin at once
            holder = await asyncio.to_thread(self._namespaces.holder)
            if holder is None or (holder == self._holder and self.serves):
                return holder is not None
            await self.close()
            try:
                await self._listen()
            except OSError:
                await self.close()
                return False
            self._holder = holder
            return True

    @property
    def serves(self) -> bool:
        """Whether it serves the namespaces now."""
        return self._holder is not None and self._lookups is not None and not self._lookups.is_closing()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        lookups = await self._bound(socket.SOCK_DGRAM, "127.0.0.1", _DNS)
        self._lookups, _ = await loop.create_datagram_endpoint(lambda: _Lookups(self._look_up), sock=lookups)
        for port in SERVED:
            listening = await self._bound(socket.SOCK_STREAM, "0.0.0.0", port)  # noqa: S104 - of the session's loopback
            self._servers.append(await asyncio.start_server(self._accept, sock=listening, limit=MOST_HEAD))
        for port in self._machine_ports:
            with contextlib.suppress(OSError):  # a command listens there already
                listening = await self._bound(socket.SOCK_STREAM, "127.0.0.1", port)
                self._servers.append(await asyncio.start_server(self._accept_for_machine, sock=listening))

    async def _bound(self, kind: int, address: str, port: int) -> socket.socket:
        made = await asyncio.to_thread(self._namespaces.socket, socket.AF_INET, kind)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, port))
            made.setblocking(False)
        except OSError:
            made.close()
            raise
        return made

    async def close(self) -> None:
        """Serve nothing more, and end what is carried."""
        self._holder = None
        if self._lookups is not None:
            self._lookups.close()
            self._lookups = None
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        waiting = [*self._tasks, *self._deciding.values()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _look_up(self, packet: bytes, sender: tuple[str, int]) -> None:
        """Take a look-up; one that makes no sense, or comes when too many wait, gets no answer."""
        query = read_query(packet)
        if query is not None and len(self._tasks) < _MOST_WAITING + _MOST_CONNECTIONS:
            self._begin(self._answer(query, sender))

    async def _answer(self, query: LookUp, sender: tuple[str, int]) -> None:
        code, address = LookUpEnd.NO_SUCH_NAME, None
        if is_public_name(query.name) and await self._allows(query.name, sender[1]):
            address = self._table.address_of(query.name)
            code = LookUpEnd.REFUSED if address is None else LookUpEnd.FOUND
        if self._lookups is not None:
            self._lookups.sendto(write_answer(query, code, address if query.wants_address else None), sender)

    async def _allows(self, name: str, port: int) -> bool:
        """Decide on a name, once for all that ask for it meanwhile."""
        deciding = self._deciding.get(name)
        if deciding is None:
            if len(self._deciding) >= _MOST_WAITING:
                return False
            deciding = self._deciding[name] = asyncio.ensure_future(self._decide(name, port))
            deciding.add_done_callback(lambda _: self._deciding.pop(name, None))
        if await asyncio.shield(deciding):
            self._open.add(name)
            return True
        return False

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) < _MOST_WAITING + _MOST_CONNECTIONS:
            self._begin(self._serve(reader, writer))
        else:
            _reset(writer)

    def _accept_for_machine(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) < _MOST_WAITING + _MOST_CONNECTIONS:
            self._begin(self._serve_machine(reader, writer))
        else:
            _reset(writer)

    async def _serve_machine(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", writer.get_extra_info("sockname")[1])
            with contextlib.closing(back):
                await carry(((reader, back), (there, writer)))
        except OSError:
            _reset(writer)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._carry(reader, writer)
        except (OSError, TimeoutError, ToolError):
            _reset(writer)
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, port = writer.get_extra_info("sockname")
        name = self._table.name_of(address)
        if name not in self._open or not self._is_open(name):
            _reset(writer)
            return
        start = b""
        if port != _SSH:
            async with asyncio.timeout(_OPENING_SECONDS):
                start = await _opening(reader, tls_name if port == _HTTPS else http_name, name)
            if not start:
                self._tell(name, f"a connection to {name}:{port} was for another host, or did not say for which one.")
                _reset(writer)
                return
        there, back = await self._dial(name, port)
        with contextlib.closing(back):
            back.write(start)
            await carry(((reader, back), (there, writer)))


async def _opening(reader: asyncio.StreamReader, named_in: Callable[[bytes], str], name: str) -> bytes:
    """Read how a connection begins; nothing where that is not for a name."""
    start = b""
    while part := await reader.read(MOST_HEAD):
        start += part
        try:
            return start if named_in(start) == name else b""
        except NotYetError:
            continue
    return b""


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that its program sees an error, and not the end of an empty answer."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class _Lookups(asyncio.DatagramProtocol):
    def __init__(self, take: Callable[[bytes, tuple[str, int]], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._take(data, addr)
