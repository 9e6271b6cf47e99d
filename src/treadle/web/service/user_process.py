"""The process of a user, as the front sees it: started when it is needed, asked for turns, ended."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import msgspec

from treadle.door.program import write_log
from treadle.protocol.errors import SessionError
from treadle.web.service.service_users import ServiceUser
from treadle.web.service.service_words import Began, FromFront, FromPage, PageReady, PageUse, wire_line
from treadle.web.service.user_confinement import UserPlace, confined_command, user_variables

STARTS_WITHIN = 60.0
"""Seconds in which the page of a user has to be there."""

_ENDS_WITHIN = 10.0
"""Seconds that sessions have to close; a process that takes longer is killed."""

_MOST_LINES = 200
"""Lines a second that are taken from one process: the others wait, and keep no other user waiting."""

_LONGEST_LINE = 64 * 1024
_MOST_UNHEARD = 1024 * 1024
"""Bytes that a process may leave unread before it is ended."""

_READER = msgspec.json.Decoder(FromPage)
_SILENCE = 120.0


class UserProcess:
    """A page for one user. `hears` takes what it says besides its readiness, `ended` that it is gone."""

    def __init__(
        self,
        user: ServiceUser,
        place: UserPlace,
        sockets: Path,
        *,
        hears: Callable[[str, FromPage], None],
        ended: Callable[["UserProcess"], None],
    ) -> None:
        self.user = user
        self.place = place
        self.use = PageUse(sessions=0, cost=0.0)
        self.page = PageReady(token="", base="")
        self.requests = 0
        self.used_at = time.monotonic()
        self._socket = sockets / f"{os.urandom(8).hex()}.sock"
        self._hears = hears
        self._ended = ended
        self._ready: asyncio.Future[PageReady] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(self._socket), limits=httpx2.Limits(max_connections=None)),
            base_url="http://page",
            timeout=httpx2.Timeout(_SILENCE, connect=10.0),
            trust_env=False,
        )

    @property
    def pid(self) -> int:
        """Its number; 0 before it was started."""
        return 0 if self._process is None else self._process.pid

    async def start(self, began: Began, passed: Sequence[str]) -> None:
        """Start it, and wait until its page is there. Raises `ConfigError` and `SessionError`."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self._socket))
            listening.listen(512)
            ours, theirs = socket.socketpair()
            with theirs:
                descriptors = (listening.fileno(), theirs.fileno())
                numbers = ",".join(map(str, descriptors))
                command = (sys.executable, "-P", "-m", "treadle", "serve", "--user-page", numbers)
                account = self.place.account
                self._process = await asyncio.create_subprocess_exec(
                    *confined_command(self.place, command),
                    pass_fds=descriptors,
                    env=user_variables(self.place, passed),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                    user=None if account is None else account[0],
                    group=None if account is None else account[1],
                    extra_groups=None if account is None else [],
                )
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_LINE)
        self.say(began)
        self._tasks = [
            asyncio.create_task(self._read(reader), name="what a user's page says"),
            asyncio.create_task(self._watch(), name="the end of a user's page"),
        ]
        try:
            async with asyncio.timeout(STARTS_WITHIN):
                self.page = await asyncio.shield(self._ready)
        except SessionError:
            await self.end()
            raise
        except TimeoutError:
            await self.end()
            raise self._not_there(f"It was not there within {STARTS_WITHIN:.0f} s.", b"") from None

    def _not_there(self, why: str, wrote: bytes) -> SessionError:
        write_log(f"The page of {self.user.name} did not start: {why} {wrote[-2_000:].decode(errors='replace')}")
        return SessionError(
            "service-page",
            "Your page cannot be started.",
            why=why,
            fix="Try again. The log of whoever runs this service says more.",
        )

    def say(self, said: FromFront) -> None:
        """Say something to it; a process that does not listen is not waited for."""
        if self._writer is None or self._writer.is_closing():
            return
        self._writer.write(wire_line(said))
        if self._writer.transport.get_write_buffer_size() > _MOST_UNHEARD:
            self.kill()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        taken, began = 0, time.monotonic()
        try:
            while line := await reader.readline():
                said = _READER.decode(line)
                match said:
                    case PageReady():
                        if not self._ready.done():
                            self._ready.set_result(said)
                    case PageUse():
                        self.use = said
                    case _:
                        self._hears(self.user.name, said)
                taken += 1
                if taken >= _MOST_LINES:
                    await asyncio.sleep(max(0.0, began + 1 - time.monotonic()))
                    taken, began = 0, time.monotonic()
        except (msgspec.MsgspecError, ValueError, OSError) as error:
            write_log(f"The page of {self.user.name} said what it should not, and is ended: {error}")
            self.kill()

    async def _watch(self) -> None:
        assert self._process is not None  # noqa: S101 - it was started
        code = await self._process.wait()
        if not self._ready.done():
            assert self._process.stderr is not None  # noqa: S101 - it is a pipe
            wrote = await self._process.stderr.read(_LONGEST_LINE)
            self._ready.set_exception(self._not_there(f"Its process ended with {code}.", wrote))
        self._ended(self)

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Note that a request is on its way."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.used_at = time.monotonic()

    def idle(self, seconds: float) -> bool:
        """Whether nobody has needed it for so long, and no session is open."""
        return not (self.requests or self.use.sessions) and time.monotonic() - self.used_at > seconds

    async def end(self) -> None:
        """Let it close its sessions, then end it."""
        if self._writer is not None:
            self._writer.close()  # it ends when the front is gone
        if self._process is not None:
            try:
                async with asyncio.timeout(_ENDS_WITHIN):
                    await self._process.wait()
            except TimeoutError:
                self.kill()
                await self._process.wait()
        await self._close()

    async def _close(self) -> None:
        tasks: Sequence[Awaitable[None]] = self._tasks
        for task in self._tasks:
            if not task.get_name().startswith("the end"):
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.aclose()
        self._socket.unlink(missing_ok=True)

    def kill(self) -> None:
        """End it at once; its sessions go on from their logs."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
