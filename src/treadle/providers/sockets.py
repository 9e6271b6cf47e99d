"""The network below HTTP, straight on the event loop: each piece of a streamed reply wakes one task, once."""

import asyncio
import select
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar, cast

import httpcore2

_NEXT_ADDRESS = 0.25
"""Seconds after which a host's next address is tried beside the one before (RFC 8305)."""

_MOST_WAITING = 256 * 1024
"""Bytes that may wait to be read before no more are taken from the network."""

_STREAK, _DENSE, _REST, _SMALL = 8, 0.07, 0.04, 4096
"""After so many pieces in a row, each so soon after the one before (seconds), each is followed by a rest in which
nothing is taken from the network, unless it has so many bytes: taking each piece of a fast reply by itself costs
more than all else that is done with it."""

_Wrong = Mapping[type[Exception], type[Exception]]
_CONNECTING: _Wrong = {TimeoutError: httpcore2.ConnectTimeout, OSError: httpcore2.ConnectError}
_READING: _Wrong = {TimeoutError: httpcore2.ReadTimeout, OSError: httpcore2.ReadError}
_WRITING: _Wrong = {TimeoutError: httpcore2.WriteTimeout, OSError: httpcore2.WriteError}
"""What the system raises, the special before the general, and what HTTP calls it; errors of TLS are `OSError`s."""

_INFORMATION = {"ssl_object": "ssl_object", "client_addr": "sockname", "server_addr": "peername", "socket": "socket"}
_T = TypeVar("_T")


_Connected: TypeAlias = "tuple[asyncio.Transport, SocketStream]"


class LoopBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections for the pool of `httpcore2`."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> "SocketStream":
        """Connect to a host by the first of its addresses that answers."""
        local = None if local_address is None else (local_address, 0)
        transport, stream = await _within(timeout, _connect(host, port, local), _CONNECTING)
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        """Wait before another attempt."""
        await asyncio.sleep(seconds)


class SocketStream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection: to the event loop its protocol, to the pool its stream."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting = bytearray()
        self._held = False
        self._resting: asyncio.TimerHandle | None = None
        self._came, self._streak = 0.0, 0
        self._ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep what came for whoever reads."""
        self._waiting += data
        if len(self._waiting) > _MOST_WAITING and not self._held:
            self._held = True
            self._open.pause_reading()
        elif self._resting is None and self._is_fast(len(data)):
            self._open.pause_reading()
            self._resting = asyncio.get_running_loop().call_later(_REST, self._go_on)
        _wake(self._reader)

    def _is_fast(self, size: int) -> bool:
        before, self._came = self._came, asyncio.get_running_loop().time()
        self._streak = self._streak + 1 if self._came - before < _DENSE else 0
        return self._streak >= _STREAK and size < _SMALL

    def _go_on(self) -> None:
        """Take from the network again, unless too much waits to be read."""
        self._resting = None
        if not self._held and not self._open.is_closing():
            self._open.resume_reading()

    def eof_received(self) -> None:
        """Note that the other side is done; the connection closes by itself."""
        self._ended = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing comes or goes any more, and why."""
        self._ended, self._error = True, exc
        if self._resting is not None:
            self._resting.cancel()
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """Let writers wait until the network has taken what was written."""
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Let them go on."""
        _wake(self._writer)
        self._writer = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Give what has come as soon as there is anything, none at the end."""
        if not self._waiting and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await (self._reader if timeout is None else _within(timeout, self._reader, _READING))
            finally:
                self._reader = None
        if not self._waiting and self._error is not None:
            raise httpcore2.ReadError(str(self._error)) from self._error
        data = bytes(self._waiting[:max_bytes])
        del self._waiting[:max_bytes]
        if self._held and len(self._waiting) <= _MOST_WAITING // 2:
            self._held = False
            if self._resting is None:
                self._open.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; waits while the network takes no more."""
        if self._ended:
            raise httpcore2.WriteError(str(self._error or "The connection was closed.")) from self._error
        self._streak = 0  # what comes now answers this
        self._open.write(buffer)
        if self._writer is not None:
            await _within(timeout, asyncio.shield(self._writer), _WRITING)

    async def aclose(self) -> None:
        """Close it at once."""
        self._open.abort()
        await asyncio.sleep(0)  # the loop takes it back

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "SocketStream":
        """Go on encrypted."""
        loop = asyncio.get_running_loop()
        upgrading = loop.start_tls(self._open, self, ssl_context, server_hostname=server_hostname)
        try:
            transport = await _within(timeout, upgrading, _CONNECTING)
        except Exception:
            await self.aclose()
            raise
        if transport is None:
            raise httpcore2.ConnectError(str(self._error or "The connection was closed."))
        self._transport = transport
        return self

    def get_extra_info(self, info: str) -> Any:
        """Give what the pool asks for; `is_readable` of a connection that is not used means that it has ended."""
        if info == "is_readable":
            return bool(self._waiting) or self._ended or self._open.is_closing() or self._is_heard_from()
        return self._open.get_extra_info(_INFORMATION[info]) if info in _INFORMATION else None

    def _is_heard_from(self) -> bool:
        """Whether something came that the event loop has not seen yet."""
        poll = select.poll()
        poll.register(self._open.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    @property
    def _open(self) -> asyncio.Transport:
        assert self._transport is not None  # noqa: S101 - nobody has the stream before it is connected
        return self._transport


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


async def _connect(host: str, port: int, local: tuple[str, int] | None) -> _Connected:
    """Connect to the first address of a host that answers; the next one is tried when one fails or takes long.

    The event loop can do that, too, but leaves a socket open where it is cancelled once it is connected.
    """
    loop = asyncio.get_running_loop()

    async def connect(address: str) -> _Connected:
        return await loop.create_connection(SocketStream, address, port, local_addr=local)

    found = [] if _is_address(host) else await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    left = deque(_families_in_turn([(family, str(place[0])) for family, _, _, _, place in found]))
    if len(left) < 2:
        return await connect(host)
    trying: set[asyncio.Task[_Connected]] = set()
    try:
        while True:
            if left:
                trying.add(loop.create_task(connect(left.popleft())))
            ended, _ = await asyncio.wait(
                trying, timeout=_NEXT_ADDRESS if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for one in ended:
                if one.exception() is None or not (left or trying - {one}):
                    trying.discard(one)
                    return one.result()
                trying.discard(one)
    finally:
        for one in trying:
            one.add_done_callback(_close_late)
            one.cancel()


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            return bool(socket.inet_pton(family, host))
    return False


def _families_in_turn(found: Sequence[tuple[int, str]]) -> list[str]:
    """Put addresses of both families in turn, the system's first one first (RFC 8305)."""
    before = [sum(family == one for one, _ in found[:at]) for at, (family, _) in enumerate(found)]
    return [found[at][1] for at in sorted(range(len(found)), key=before.__getitem__)]


def _close_late(connected: "asyncio.Task[_Connected]") -> None:
    if not connected.cancelled() and connected.exception() is None:
        connected.result()[0].close()


async def _within(timeout: float | None, doing: Awaitable[_T], wrong: _Wrong) -> _T:
    """Wait for something; raises the errors of HTTP in place of the system's."""
    try:
        async with asyncio.timeout(timeout):
            return await doing
    except tuple(wrong) as error:
        raise next(kind for known, kind in wrong.items() if isinstance(error, known))(str(error)) from error
