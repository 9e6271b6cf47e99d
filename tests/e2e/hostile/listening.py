"""Something that listens where a hostile command may try to reach: it notes every contact.

On Unix sockets only a contact that sends something: other programs of the machine try whether sockets are alive.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Listener:
    """The port that is listened on, and what came."""

    port: int
    contacts: list[str] = field(default_factory=list)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, contacts: list[str], name: str) -> None:
        self.contacts = contacts
        self.name = name

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.contacts.append(f"{self.name}: {data[:80]!r} from {addr}")


@asynccontextmanager
async def listening(path: Path, token: str) -> AsyncIterator[Listener]:
    """Listen on loopback (TCP and UDP), on a Unix socket with this path, and on an abstract one named by the token."""
    listener = Listener(0)

    def noting(name: str) -> "asyncio.streams._ClientConnectedCallback":
        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if name == "tcp" or await reader.read(1):
                listener.contacts.append(name)
            writer.close()

        return note

    tcp = await asyncio.start_server(noting("tcp"), "127.0.0.1", 0)
    listener.port = tcp.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(
        lambda: _Datagrams(listener.contacts, "udp"), local_addr=("127.0.0.1", listener.port)
    )
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0hostile-{token}")
    servers = [
        tcp,
        await asyncio.start_unix_server(noting("unix socket"), path),
        await asyncio.start_unix_server(noting("abstract socket"), sock=abstract),
    ]
    try:
        yield listener
    finally:
        udp.close()
        for server in servers:
            server.close()
            await server.wait_closed()
