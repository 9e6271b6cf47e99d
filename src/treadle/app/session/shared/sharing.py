"""A live session that further surfaces attach to, through a socket of the user's own."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.session.shared.remote_servers import NO_SERVERS
from treadle.app.session.shared.session_wire import (
    MOST_MESSAGE_BYTES,
    WIRE_VERSION,
    Address,
    receive,
    same_key,
    send_message,
)
from treadle.engine.runtime.running_session import Attachment, Session
from treadle.present.escape import printable
from treadle.present.words import clip_text
from treadle.protocol.attach import (
    AskServers,
    Attach,
    Attached,
    Behind,
    Closed,
    ListedAgent,
    Notified,
    Post,
    Refused,
    ServersAnswer,
    ServersSaid,
    SessionStatus,
    StopSession,
    Taken,
    ToSession,
)
from treadle.protocol.codec import decoder_of
from treadle.protocol.errors import RefusedError, SessionClosedError, TreadleError
from treadle.protocol.events import EditQueued, Interrupt, Op, Source
from treadle.protocol.notifications import CallChanged, CallDelta, CallOutput, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from treadle.app.session.live import LiveSession
    from treadle.app.session.shared.access import PortsAccess, ServersAccess

_HELLO = 10.0
"""Seconds that a client has to say who it is."""

_PAGE = "web"
_KINDS = frozenset({"tui", "mcp", "acp", "library", "headless", _PAGE})
"""The surfaces that attach from another process."""

_STATUS_STAYS = (TextDelta, ThinkingDelta, CallDelta, CallOutput, CallChanged)
"""Notifications after which a session's status is what it was."""

_decoder: msgspec.json.Decoder[ToSession] = decoder_of(ToSession)


class Attendance:
    """Who is attached to a session that has no terminal, and whether it is to be stopped; `changed` is set by either.

    `listening` says that surfaces can attach, or raises the `OSError` for which they cannot. Needs an event loop.
    A session of the page is not in the `background`: it is listed as open.
    """

    def __init__(self, *, background: bool = True) -> None:
        self.background = background
        self.listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()
        self.surfaces = 0
        self.stopped = False

    def count(self, change: int) -> None:
        """A surface has come, or gone."""
        self.surfaces += change
        self.changed.set()

    def stop(self) -> None:
        """Somebody wants the session to be closed."""
        self.stopped = True
        self.changed.set()


class Shared(Struct, frozen=True, kw_only=True):
    """What further surfaces need of a session. `run` names this process's numbering of notifications.

    `servers` are its MCP servers, `ports` those of its commands; both are asked in a thread. `attendance` is that of a
    session that has no terminal. `count` takes 1 for a surface that has come, -1 for one that has gone.
    """

    session_id: str
    workspace: str
    roots: tuple[str, ...]
    agents: tuple[ListedAgent, ...]
    run: str
    status: Callable[[], SessionStatus]
    attach: Callable[[int | None], Attachment]
    post: Callable[[Op, Source], Awaitable[None]]
    servers: "ServersAccess | None" = None
    ports: "Callable[[], PortsAccess] | None" = None
    attendance: Attendance | None = None
    count: Callable[[int], None] = lambda _: None


async def share_session(live: "LiveSession", engine: Session) -> None:
    """Let surfaces attach to a session until this is cancelled; where no socket can be had, none can."""
    attendance = live.attendance

    def count_others(change: int) -> None:
        live.others += change
        if attendance is not None:
            attendance.count(change)

    session = Shared(
        session_id=live.id,
        workspace=str(live.workspace),
        roots=live.roots,
        agents=live.agents,
        run=uuid.uuid4().hex,
        status=lambda: live.status,
        attach=engine.attach,
        post=live.post,
        servers=live.servers,
        ports=live.ports,
        attendance=attendance,
        count=count_others,
    )
    try:
        await share(session)
    except OSError as error:
        if attendance is not None and not attendance.listening.done():
            attendance.listening.set_exception(error)


async def share(session: Shared) -> None:
    """Let surfaces attach until this is cancelled. Raises `OSError` where no socket can be had."""
    address = Address(session.session_id)
    attendance = session.attendance
    listening, key = address.listen(background=attendance is not None and attendance.background)
    numbers = count(2)
    clients: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                await _Client(session, reader, writer).serve(key, numbers)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.create_task(serve(reader, writer))
        clients.add(client)
        client.add_done_callback(clients.discard)

    try:
        server = await asyncio.start_unix_server(welcome, sock=listening, limit=MOST_MESSAGE_BYTES)
        try:
            if attendance is not None:
                attendance.listening.set_result(None)
            await server.serve_forever()
        finally:
            server.close()
    finally:
        listening.close()
        address.remove()
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


class _Client:
    """One surface in another process."""

    def __init__(self, session: Shared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._session = session
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self._asking: asyncio.Task[None] | None = None

    async def serve(self, key: str, numbers: "count[int]") -> None:
        """Attach it, and pass on what both sides say until one leaves. Raises `OSError`."""
        try:
            async with asyncio.timeout(_HELLO):
                hello = await receive(self._reader, _decoder)
        except TimeoutError:
            return
        if not isinstance(hello, Attach) or not same_key(hello.key, key):
            await self._send(_refusal("attach-key", "This is not the key of the session.", "Attach again."))
            return
        if hello.version != WIRE_VERSION:
            await self._send(_refusal("attach-version", "The session runs in another version of Treadle.", ""))
            return
        if hello.kind not in _KINDS:
            await self._send(
                _refusal("attach-kind", f"A surface of kind {clip_text(hello.kind, 40)!r} is unknown.", "")
            )
            return
        source = Source(kind=hello.kind, id=f"{printable(clip_text(hello.name, 40)) or 'terminal'} {next(numbers)}")
        cursor = hello.cursor
        after = cursor.number if cursor is not None and cursor.run == self._session.run else None
        attachment = self._session.attach(after)
        # The page shows every session, whether or not somebody looks.
        counts = hello.kind != _PAGE
        if counts:
            self._session.count(1)
        try:
            await self._send(
                Attached(
                    session_id=self._session.session_id,
                    workspace=self._session.workspace,
                    roots=self._session.roots,
                    agents=self._session.agents,
                    source=source,
                    run=self._session.run,
                    number=attachment.number,
                    status=self._session.status(),
                    snapshot=attachment.snapshot,
                )
            )
            await self._talk(attachment, source)
        finally:
            attachment.feed.leave()
            if counts:
                self._session.count(-1)

    async def _talk(self, attachment: Attachment, source: Source) -> None:
        delivering = asyncio.create_task(self._deliver(attachment))
        taking = asyncio.create_task(self._take(source))
        try:
            done, _ = await asyncio.wait({delivering, taking}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            tasks = [task for task in (delivering, taking, self._asking) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, attachment: Attachment) -> None:
        feed = attachment.feed
        async for one in feed.stamped():
            status = None if isinstance(one.notification, _STATUS_STAYS) else self._session.status()
            await self._send(
                Notified(number=one.number, notification=one.notification, status=status, seq=one.seq, at=one.at)
            )
        await self._send(Behind() if feed.behind else Closed())

    async def _take(self, source: Source) -> None:
        while (message := await receive(self._reader, _decoder)) is not None:
            match message:
                case Post():
                    await self._send(await self._post(message, source))
                case AskServers():
                    await self._ask(message)
                case StopSession():
                    await self._stop(message, source)
                case Attach():
                    pass

    async def _post(self, message: Post, source: Source) -> Taken | Refused:
        if message.name and source.kind == _PAGE:
            source = replace(source, id=printable(clip_text(message.name, 40)))
        try:
            await self._session.post(message.op, source)
        except TreadleError as error:
            return _failure(message.number, error)
        return Taken(number=message.number, status=self._session.status())

    async def _ask(self, message: AskServers) -> None:
        """Ask the servers beside what the client says next: those that are starting may take a while."""
        if self._asking is not None and not self._asking.done():
            busy = ServersAnswer(text="The servers are being asked already. Wait for that answer.", warning=True)
            await self._send(ServersSaid(number=message.number, answer=busy))
            return
        self._asking = asyncio.create_task(self._asked(message), name="servers asked")

    async def _asked(self, message: AskServers) -> None:
        servers, answer, prompt = self._session.servers, NO_SERVERS, message.prompt
        try:
            if message.ports:
                ports = self._session.ports
                answer = (
                    ServersAnswer() if ports is None else await asyncio.to_thread(ports().command, message.argument)
                )
            elif servers is not None and prompt is not None:
                words = await asyncio.to_thread(servers.complete, prompt, message.argument)
                answer = ServersAnswer(values=tuple(words))
            elif servers is not None:
                answer = await asyncio.to_thread(servers.command, message.argument)
        except TreadleError as error:
            answer = ServersAnswer(text=" ".join(filter(None, (error.what, error.why, error.fix))), warning=True)
        with suppress(OSError):  # whoever asked has left
            await self._send(ServersSaid(number=message.number, answer=answer))

    async def _stop(self, message: StopSession, source: Source) -> None:
        """Drop the queue, end what goes on, and have a session closed that has no terminal: then `Closed` answers."""
        queue = self._session.status().queue
        ops: list[Op] = [*(EditQueued(prompt_id=prompt.id) for prompt in queue), Interrupt()]
        try:
            for op in ops:
                with suppress(RefusedError):  # it went to the model by now, or nothing goes on
                    await self._session.post(op, source)
        except TreadleError as error:
            await self._send(_failure(message.number, error))
            return
        if self._session.attendance is None:
            await self._send(Taken(number=message.number))
        else:
            self._session.attendance.stop()

    async def _send(self, message: object) -> None:
        async with self._sending:
            await send_message(self._writer, message)


def _failure(number: int, error: TreadleError) -> Refused:
    refused = "closed" if isinstance(error, SessionClosedError) else "refused"
    kind = refused if isinstance(error, RefusedError) else "failed"
    return Refused(number=number, kind=kind, code=error.code, what=error.what, why=error.why, fix=error.fix)


def _refusal(code: str, what: str, fix: str) -> Refused:
    return Refused(number=0, kind="attach", code=code, what=what, fix=fix or "Use the same version on both sides.")
