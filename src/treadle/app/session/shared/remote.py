"""A session that runs in another process of this user: a terminal attaches to it, leaves it, and comes back."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from treadle.app.models.model_notes import as_now
from treadle.app.models.offered import OfferedModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.files.checklist_file import checklist_file
from treadle.app.session.model_finder import ModelFinder
from treadle.app.session.own_commands.own_shell import OwnShell
from treadle.app.session.shared.catching_up import caught_up
from treadle.app.session.shared.remote_servers import RemotePorts, RemoteServers
from treadle.app.session.shared.session_connection import SessionConnection
from treadle.context.notified import stamped_notifications
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import (
    AskServers,
    Attached,
    Behind,
    Closed,
    FeedCursor,
    Notified,
    Post,
    Refused,
    ServersAnswer,
    ServersSaid,
    SessionStatus,
    Snapshot,
    Stamped,
    Taken,
)
from treadle.protocol.errors import (
    ConfigError,
    KeptBackError,
    RefusedError,
    SessionClosedError,
    SessionError,
    TreadleError,
)
from treadle.protocol.events import Op, Prompt, SetModel, Source
from treadle.protocol.notifications import Notification, PromptDelivered, TurnEnded, TurnOutcome
from treadle.store.sqlite import Store

_AGAIN = 5
"""Times that a lost connection is made anew before the session is taken for closed."""

_PAUSE = 0.2
"""Seconds between them."""


class RemoteSession:
    """An async context manager: attached while it is entered. The session goes on when it is left.

    Where too much was missed for the session to remember it, surfaces are brought to where it stands now. One that
    shows everything that was does not want that: with `anew` this ends then, is `behind`, and is to be made anew.
    """

    continues = True

    def __init__(
        self,
        *,
        line: SessionConnection,
        attached: Attached,
        trust: SessionTrust,
        store: Store,
        models: ModelFinder,
        shell: OwnShell,
        anew: bool = False,
    ) -> None:
        self.id = attached.session_id
        self.workspace = Path(attached.workspace)
        self.roots = attached.roots
        self.agents = attached.agents
        self.trust = trust
        self.source = attached.source
        self.notices: Sequence[str] = (f"Attached as {attached.source.id}. The session continues when you leave.",)
        self.own_shell = shell
        self.checklist_file = checklist_file(attached.session_id)
        self.behind = False
        self._anew = anew
        self._line = line
        self._attached = attached
        self._status = attached.status
        self._cursor = FeedCursor(run=attached.run, number=attached.number)
        self._store = store
        self._models = models
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[ServersAnswer | None]] = {}
        self.servers = RemoteServers(self._ask_servers)
        self._ports = RemotePorts(self._ask_ports)
        self._first: Feed | None = Feed(left=self._leave)
        self._feeds = [self._first]
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._failure: SessionError | None = None
        self._lost: asyncio.Event | None = None
        self._past: tuple[Stamped, ...] = ()
        self._handlers: dict[Source, Callable[[TurnOutcome], None]] = {}
        self._asked: dict[str, Source] = {}
        self._delivered: set[str] = set()

    async def __aenter__(self) -> Self:
        try:
            self._past = await asyncio.to_thread(self._read_past, self._attached.snapshot)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        self._task = asyncio.create_task(self._listen(), name="attached")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._line.close()
        await self.own_shell.close()
        self._store.close()

    def _read_past(self, snapshot: Snapshot | None) -> tuple[Stamped, ...]:
        if snapshot is None:
            return ()
        with suppress(TreadleError):
            return tuple(
                stamped_notifications(event for event in self._store.read(self.id) if event.seq <= snapshot.seq)
            )
        return tuple(Stamped(notification=call) for call in snapshot.calls)

    @property
    def past(self) -> Sequence[Stamped]:
        """What surfaces were told before this one listened."""
        return self._past

    @property
    def opening(self) -> Sequence[Notification]:
        """What is under way: the pieces of a reply, and what running calls have printed."""
        return () if self._attached.snapshot is None else self._attached.snapshot.live

    @property
    def status(self) -> SessionStatus:
        """Where the session stands now."""
        return self._status

    @property
    def title(self) -> str:
        """What it is called; empty where that cannot be read."""
        with suppress(TreadleError):
            return self._store.title(self.id)
        return ""

    @property
    def before(self) -> tuple[str, int] | None:
        """Nothing: the session is not new."""
        return None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to come back to; an attached terminal does not say how to go on."""
        return True

    @property
    def closed(self) -> bool:
        """Whether the session was closed, or cannot be reached any more."""
        return self._closed

    @property
    def sees_images(self) -> bool:
        """Whether the model is shown images."""
        return self._models.spec(self._status.model).images is not False

    def choose(self, ref: str, thinking: int | None = None) -> SetModel:
        """Find another model under this user's settings. Raises `ConfigError` when it cannot be called."""
        return self._models.choose(as_now(ref, self.status.model), thinking)

    def offered_models(self) -> Sequence[OfferedModel]:
        """List the models to choose from. To be called in a thread; raises `ConfigError`."""
        return self._models.offered()

    def answer_to(self, source: Source, handler: Callable[[TurnOutcome], None]) -> None:
        """Bring the ends of turns that were asked for from here as this source to `handler`."""
        self._handlers[source] = handler

    async def post(self, op: Op, source: Source) -> None:
        """Ask for something; returns when it is in the log. Raises `RefusedError` or `ConfigError`.

        The session says as whom it was; `source` is what `answer_to` goes by here.
        """
        if isinstance(op, Prompt) and source in self._handlers:
            self._asked[op.id] = source
        name = source.id if source.kind == self._line.kind == "web" else ""
        await self._request(type(op).__name__, lambda number: Post(number=number, op=op, name=name))

    async def _ask_servers(self, argument: str, prompt: tuple[str, str] | None) -> ServersAnswer:
        """Have `/mcp` done where the servers are, or a word completed there. Raises `SessionClosedError`."""
        said = await self._request("/mcp", lambda number: AskServers(number=number, argument=argument, prompt=prompt))
        return said or ServersAnswer()

    def ports(self) -> RemotePorts:
        """Give the ports of the session's commands."""
        return self._ports

    async def _ask_ports(self, argument: str, prompt: tuple[str, str] | None) -> ServersAnswer:  # noqa: ARG002
        """Have `/ports` done where the session is. Raises `SessionClosedError`."""
        said = await self._request("/ports", lambda number: AskServers(number=number, argument=argument, ports=True))
        return said or ServersAnswer()

    async def _request(self, what: str, message: Callable[[int], Post | AskServers]) -> ServersAnswer | None:
        """Send a message with a number of its own, and wait for what answers it."""
        if self.closed:
            raise SessionClosedError(what, "the session was closed")
        number = next(self._numbers)
        answer: asyncio.Future[ServersAnswer | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._line.say(message(number))
            return await answer
        except OSError as error:
            raise SessionClosedError(what, "the connection to the session is lost") from error
        finally:
            self._waiting.pop(number, None)

    def follow(self) -> Feed:
        """Listen, the first one from when it was attached; ends when the session is closed, or the feed is left."""
        first, self._first = self._first, None
        feed = first or Feed(left=self._leave)
        if self._closed:
            feed.close()
        elif feed is not first:
            self._feeds.append(feed)
        return feed

    def _leave(self, feed: Feed) -> None:
        if feed in self._feeds:
            self._feeds.remove(feed)

    def _publish(self, stamped: Stamped) -> None:
        for feed in self._feeds:
            feed.put(stamped)

    async def reached(self) -> bool:
        """Wait while a lost connection is made anew; gives whether the session can be asked for something."""
        if self._lost is not None:
            await self._lost.wait()
        return not self.closed

    async def failure(self) -> None:
        """Wait until the session is closed; raises what keeps this terminal from it."""
        if self._task is not None:
            await asyncio.wait({self._task})
        if self._failure is not None:
            raise self._failure

    async def _listen(self) -> None:
        try:
            while await self._hear_all():
                self._lost = asyncio.Event()
                if not await self._attach_again():
                    break
                self._found()
        finally:
            self._closed = True
            for feed in self._feeds:
                feed.close()
            self._found()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(OSError("closed"))

    def _found(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            lost.set()

    async def _hear_all(self) -> bool:
        """Hear what comes; gives whether to attach again."""
        while True:
            match await self._line.hear():
                case Notified(number=number, notification=notification, status=status, seq=seq, at=at):
                    self._cursor = FeedCursor(run=self._cursor.run, number=number)
                    self._status = status or self._status
                    self._bring(notification)
                    self._publish(Stamped(notification=notification, number=number, seq=seq, at=at))
                case Taken(number=number, status=status):
                    self._status = status or self._status
                    self._answer(number, None)
                case ServersSaid(number=number, answer=answer):
                    self._answer(number, answer)
                case Refused() as refused:
                    self._answer(refused.number, refused)
                case Closed():
                    self._failure = SessionError(
                        "session-closed", "The session was closed.", fix=f"`treadle --resume {self.id}` continues it."
                    )
                    return False
                case Behind() | None | Attached():
                    return True

    def _bring(self, notification: Notification) -> None:
        """Bring the end of a turn to whoever asked for it: those whose prompts went into it."""
        match notification:
            case PromptDelivered(prompt_id=prompt_id):
                self._delivered |= {prompt_id} & self._asked.keys()
            case TurnEnded(outcome=outcome):
                sources = {self._asked.pop(prompt_id) for prompt_id in self._delivered}
                self._delivered.clear()
                for source in sources:
                    self._handlers[source](outcome)
            case _:
                pass

    def _answer(self, number: int, said: Refused | ServersAnswer | None) -> None:
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return
        if not isinstance(said, Refused):
            waiting.set_result(said)
        elif said.kind == "closed":
            waiting.set_exception(SessionClosedError("It", said.why))
        elif said.code == "kept-back":
            waiting.set_exception(KeptBackError(said.what, said.why))
        elif said.kind == "refused":
            waiting.set_exception(RefusedError("It", self._status.phase, said.why))
        else:
            waiting.set_exception(ConfigError(said.code, said.what, why=said.why, fix=said.fix))

    async def _attach_again(self) -> bool:
        """Come back to where it left off; what was missed follows, or the log has it."""
        await self._line.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OSError("lost"))
        for _ in range(_AGAIN):
            try:
                attached = await self._line.open(self._cursor)
            except SessionError as error:
                self._failure = error
                await asyncio.sleep(_PAUSE)
                continue
            self._failure = None
            if self._anew and attached.snapshot is not None:
                self.behind = True
                return False
            await self._take_up(attached)
            return True
        return False

    async def _take_up(self, attached: Attached) -> None:
        """Go on; where too much was missed for the session to remember it, from where it is now."""
        before, self._status, self.source = self._status, attached.status, attached.source
        if attached.snapshot is not None:
            past = await asyncio.to_thread(self._read_past, attached.snapshot)
            self._bring_missed(past, attached.number)
            for notification in caught_up(self.id, before, attached.status, attached.snapshot, past=past):
                self._publish(Stamped(notification=notification, number=attached.number))
        self._cursor = FeedCursor(run=attached.run, number=attached.number)

    def _bring_missed(self, past: Sequence[Stamped], number: int) -> None:
        """Bring the ends of turns that were missed, to those who asked for them: the log has them."""
        self._delivered.clear()
        for stamped in past if self._asked else ():
            self._bring(stamped.notification)
            if isinstance(stamped.notification, PromptDelivered | TurnEnded):
                self._publish(replace(stamped, number=number))
