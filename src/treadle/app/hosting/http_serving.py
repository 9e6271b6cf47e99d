"""What serving HTTP takes, whoever serves: a socket, a server that leaves signals alone, and an end at a signal."""

import asyncio
import errno
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from ipaddress import ip_address

from uvicorn import Config, Server
from uvicorn.server import ServerState

from treadle.app.errors.exits import Exit
from treadle.protocol.errors import ConfigError

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)
_OTHER_PORT = "Choose another port with --port, or leave it out to get a free one."


class _DatedState(ServerState):
    """What the connections of a server share: what each reply has is dated when it is asked for."""

    _usual: list[tuple[bytes, bytes]]

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of a reply that begins now."""
        return [(b"date", formatdate(usegmt=True).encode()), *self._usual]

    @default_headers.setter
    def default_headers(self, usual: list[tuple[bytes, bytes]]) -> None:
        self._usual = usual


class HttpServer(Server):
    """Leaves the signals alone, as whoever serves takes them, and wakes for nothing, not even to know the time."""

    def __init__(self, config: Config) -> None:
        config.date_header = False
        super().__init__(config)
        self.server_state = _DatedState()
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Have it take no more, and end when what is open has ended."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Wait for the end."""
        await self.on_tick(0)  # it sets the headers of replies
        await self._ending.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Open a socket at an address, IPv4 or IPv6; raises `ConfigError` for one that cannot be used, or its port."""
    try:
        return _opened(host, port)
    except (OSError, OverflowError) as error:
        why, fix = _why_not(error)
        raise ConfigError(
            "port-unusable", f"Treadle cannot listen on port {port} of {host}.", why=why, fix=fix
        ) from error


def _opened(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.family is socket.AF_INET6:
            # Else whoever comes by IPv4 would have another address here than everywhere else.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError):
        listening.close()
        raise
    return listening


def _why_not(error: OSError | OverflowError) -> tuple[str, str]:
    """Say why an address cannot be used, and what to do: it is the port, or the host."""
    if not isinstance(error, OSError):
        return "A port is a number from 0 to 65535.", _OTHER_PORT
    why = f"{error.strerror or error}."
    if isinstance(error, socket.gaierror) or error.errno in _NOT_HERE:
        return why, "Use --host with an address that this computer has, or leave it out."
    return why, _OTHER_PORT


def url_host(address: str) -> str:
    """Write an address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address


def is_loopback(address: str) -> bool:
    """Whether an address can be reached from this computer alone."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


async def until_signal(serve: Callable[[], Awaitable[None]], *, hang_up: bool = True) -> int:
    """Serve until that ends by itself, or SIGINT or SIGTERM end it; returns the exit code.

    With `hang_up` SIGHUP ends it, too; without, it goes on when its terminal is closed.
    """
    loop = asyncio.get_running_loop()
    code = Exit.DONE
    serving = asyncio.ensure_future(serve())

    def end(number: signal.Signals) -> None:
        nonlocal code
        code = Exit(128 + number)
        serving.cancel()

    wanted = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hang_up else []))
    heeded = [one for one in wanted if signal.getsignal(one) != signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, end, number)
    if not hang_up:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await asyncio.wait({serving})
    for number in heeded:
        loop.remove_signal_handler(number)
    if code is Exit.DONE:
        serving.result()
    elif not serving.cancelled():
        serving.exception()  # of no interest: the wire was cut in the middle
    return code
