"""A proxy on loopback for one browser: each connection goes to an address that was checked, or nowhere.

A browser resolves names by itself, follows redirects by itself and loads whatever a page names; only what carries its
connections sees all of that.
"""

import asyncio
import contextlib
from collections.abc import Collection
from urllib.parse import urlsplit

from treadle.protocol.errors import ToolError
from treadle.workspace.namespaces.listeners import CommandServers, carry
from treadle.workspace.network.checked_addresses import HostPort, Resolver, connect_checked, resolve_host

REFUSED_HEADER = "treadle-refused"
"""The header by which an answer of the gateway itself is known."""

_HEAD_BYTES = 64 * 1024
_MOST_REFUSALS = 20
_DROPPED = (b"proxy-", b"connection:", b"keep-alive:")


class Gateway:
    """Carries connections to the open network, and to the private places that were allowed one by one."""

    def __init__(
        self,
        resolver: Resolver = resolve_host,
        *,
        closed: Collection[str] = (),
        servers: CommandServers | None = None,
    ) -> None:
        """`closed` are hosts that are refused without a word, `servers` the session's own, before the machine's."""
        self._resolver = resolver
        self._servers = servers
        self.opens_own = False
        """Whether the servers of the session can be reached: not by a page of the web."""
        self._closed = closed
        self._allowed: set[HostPort] = set()
        self._refusals: list[str] = []
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on a free port of loopback and give the proxy's URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def allow(self, place: HostPort) -> None:
        """Let connections to a private place through, since the policy allowed its URL."""
        self._allowed.add(place)

    def take_refusals(self) -> tuple[str, ...]:
        """Give why connections were refused since the last time."""
        refusals, self._refusals = tuple(dict.fromkeys(self._refusals)), []
        return refusals

    async def close(self) -> None:
        """End every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._carry(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a connection that ends or makes no sense has no other consequence than its end
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        method, target, version = first.split(b" ")
        place = _place(target, tunnel=method == b"CONNECT")
        if place.host in self._closed:
            return
        try:
            there, back = await self._connect(place)
        except ToolError as refusal:
            if len(self._refusals) < _MOST_REFUSALS:
                self._refusals.append(refusal.text)
            writer.write(_refused(refusal.text))
            await writer.drain()
            return
        try:
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                kept = [line for line in lines if line and not line.lower().startswith(_DROPPED)]
                back.write(b"\r\n".join([_own_form(method, target, version), *kept, b"connection: close", b"", b""]))
            await carry(((reader, back), (there, writer)))
        finally:
            back.close()

    async def _connect(self, place: HostPort) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.opens_own and self._servers is not None and self._servers.answer(place.host, place.port):
            with contextlib.suppress(OSError):
                return await self._servers.connect(place.port)
        return await connect_checked(place, self._resolver, private=place in self._allowed)


def _place(target: bytes, *, tunnel: bool) -> HostPort:
    """Read where a request wants to go; raises `ValueError` when that is nowhere."""
    parts = urlsplit(f"//{target.decode('ascii')}" if tunnel else target.decode("ascii"))
    if not parts.hostname or (not tunnel and parts.scheme != "http"):
        raise ValueError("no host")
    return HostPort(parts.hostname.lower().rstrip("."), parts.port or 80)


def _own_form(method: bytes, target: bytes, version: bytes) -> bytes:
    parts = urlsplit(target.decode("ascii"))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return b" ".join((method, path.encode("ascii"), version))


def _refused(why: str) -> bytes:
    body = f"Refused by Treadle: {why}\n".encode()
    head = (
        f"HTTP/1.1 403 Forbidden\r\n{REFUSED_HEADER}: 1\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
    )
    return f"{head}connection: close\r\n\r\n".encode() + body
