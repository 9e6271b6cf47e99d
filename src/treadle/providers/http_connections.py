"""Connections to a model's server: what sending needs of them, what can go wrong, and how long is waited for it.

A plain connection is one of the library below the HTTP library, which loads in half the time; what that does not know
(proxies, user names and international names in addresses) goes through the HTTP library.
"""

import asyncio
import string
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from treadle.providers.endpoint import split_url

KEPT_SECONDS = 60.0
"""How long a connection that is not used stays open."""

_IN_PLACE = frozenset(f"{string.ascii_letters}{string.digits}.-:[]")
_IN_PATH = frozenset(f"{string.ascii_letters}{string.digits}._~%!$&'()*+,;=:@/-")
_DOTS = ("/./", "/../")


class Trouble(Enum):
    """What went wrong between here and the server."""

    CONNECT_TIMEOUT = auto()
    UNREACHED = auto()
    PROXY = auto()
    PROTOCOL = auto()
    STALLED = auto()
    ADDRESS = auto()
    HEADER = auto()
    COMPRESSION = auto()
    NETWORK = auto()


class ConnectionFailedError(Exception):
    """A request that did not arrive, or a reply that did not come whole; `from` what the library raised."""

    def __init__(self, trouble: Trouble, cause: Exception) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.trouble = trouble


def never_arrived(error: Exception) -> bool:
    """Whether there was no connection, so that nothing reached the server; a proxy may have been asked for one."""
    return isinstance(error, ConnectionFailedError) and error.trouble in _NO_CONNECTION


_NO_CONNECTION = (Trouble.CONNECT_TIMEOUT, Trouble.UNREACHED, Trouble.PROXY)


class SocksError(ValueError):
    """A proxy that speaks SOCKS."""


class UnansweredError(Exception):
    """A request that left, and of which no reply began: the server may work on it. `cause` is what went wrong."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


Troubles = tuple[tuple[type[Exception], Trouble], ...]
"""What a library raises, the special before the general, and what is wrong then."""


@contextmanager
def named(troubles: Troubles) -> Iterator[None]:
    """Raise `ConnectionFailedError` for what a library raises."""
    try:
        yield
    except tuple(kind for kind, _ in troubles) as error:
        trouble = next(trouble for kind, trouble in troubles if isinstance(error, kind))
        raise ConnectionFailedError(trouble, error) from error


HTTP_ERRORS = (ConnectionFailedError, OSError)
"""Everything a call or its body can raise; `TimeoutError` is an `OSError`."""


class Response(Protocol):
    """What came back: the names of its headers are in lower case."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; one that came several times has its values joined by commas."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, unpacked. Raises `ConnectionFailedError`."""
        ...

    async def close(self) -> None:
        """Let go of it; what was not read of the body is lost."""
        ...


Sent = Callable[[], None]
"""Is called when a request has left: from there until the response begins there is time for other things."""


def nothing() -> None:
    """Do nothing in that time."""


class Connections(Protocol):
    """Open connections, which are used again."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, sent: Sent) -> Response:
        """Send a request, and give the response as soon as it begins. Raises `ConnectionFailedError`."""
        ...

    async def close(self) -> None:
        """Give them back."""
        ...


def is_plain_url(url: str) -> bool:
    """Whether an address is one that every library reads the same way, as it is."""
    parts = split_url(url)
    try:
        known = (
            url.startswith(("http://", "https://"))
            and bool(parts.hostname)
            and parts.port != 0
            and parts.netloc[-1] != ":"
        )
    except ValueError:
        return False
    places = _IN_PLACE.issuperset(parts.netloc) and _IN_PATH.issuperset(parts.path + parts.query)
    return known and places and not parts.fragment and not any(dots in f"{parts.path}/" for dots in _DOTS)


def trace_of(sent: Sent) -> Callable[[str, Mapping[str, Any]], Awaitable[None]]:
    """Give what both libraries tell of each thing that they do; what asks a proxy for a connection is no request."""
    asks_proxy = False

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        nonlocal asks_proxy
        if event.endswith("send_request_headers.started"):
            asks_proxy = info["request"].method == b"CONNECT"
        elif event.endswith("send_request_body.complete") and not asks_proxy:
            sent()

    return trace


_T = TypeVar("_T")

_OVERSLEPT = 1.0
"""Seconds; a timer that is so late tells that the process was stopped, as by Ctrl-Z."""

_LOOKS = 8
"""Passes of the event loop in which what is in the socket reaches whoever waits for it, through TLS, too."""


class RunningClock:
    """The time of the event loop (seconds) without waits in which the process was stopped: these begin anew."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.stopped = 0.0

    def __call__(self) -> float:
        """Give the time."""
        return self._loop.time() - self.stopped


class Deadline:
    """Waits for one thing after the other, each until its own moment; one timer of the event loop serves them all.

    Once the moment has passed it looks whether what is waited for has come: a process that is late finds it in its
    socket. It is for one task, which has to `close` it.
    """

    def __init__(self, clock: RunningClock | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or RunningClock()
        self._began = self._until = 0.0
        self._looks = 0
        self._waiting: asyncio.Task[object] | None = None
        self._late = False
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, doing: Awaitable[_T], until: float) -> _T:
        """Wait for something until a moment of its clock (seconds); raises `TimeoutError` after it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it waits
        if until != self._until:  # of one moment the looks are few, however many waits end in time after it
            self._looks = _LOOKS
        self._began, self._until, self._waiting = self._clock(), until, task
        if self._timer is None or self._due < self._timer.when():
            self._set_timer()
        cancelling = task.cancelling()
        try:
            return await doing
        except asyncio.CancelledError as cancelled:
            if self._late and task.cancelling() - 1 <= cancelling:
                raise TimeoutError from cancelled
            raise
        finally:
            self._waiting = None
            if self._late:
                self._late = False
                task.uncancel()

    def close(self) -> None:
        """Give the timer back."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _due(self) -> float:
        return self._until + self._clock.stopped

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        """End the wait, unless its moment has moved on since the timer was set, or what it waits for is coming in."""
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() - self._due > _OVERSLEPT:
            self._clock.stopped += self._clock() - self._began
        if self._loop.time() < self._due:
            self._set_timer()
        elif self._looks:
            self._looks -= 1
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._late = True
            self._waiting.cancel()
