"""A program's hold on a session, its own or one that it is attached to: ask something, and get the turn's end."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from treadle.app.session.live import LiveSession
from treadle.app.session.ops import asked_beside
from treadle.app.session.shared.remote import RemoteSession
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import ConfigError, RefusedError, SessionError, TreadleError
from treadle.protocol.events import Delivery, EditQueued, Interrupt, Op, Prompt, Source
from treadle.protocol.messages import Enclosure, UserContent, text_of
from treadle.protocol.notifications import Notification, PromptDelivered, QueueChanged, TurnEnded, TurnOutcome


class PromptRun:
    """A prompt on its way: an async iterator over what happens until the turn that it went into ends.

    `outcome` is how that ended, None before; `error` is why it never comes to an answer, and raised by iterating. What
    happens before somebody iterates is kept only where the run is `followed`. With `joined` it is the turn that goes on
    now, whoever asked for it.
    """

    def __init__(self, *, followed: bool = False, joined: bool = False) -> None:
        self.id = uuid.uuid4().hex
        self.outcome: TurnOutcome | None = None
        self.error: Exception | None = None
        self.delivered = self._joined = joined
        self._queued = False
        self._feed: asyncio.Queue[Notification | None] | None = asyncio.Queue() if followed else None
        self._ended = asyncio.Event()
        self._begun = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self._ended.is_set()

    def answered(self, outcome: TurnOutcome) -> None:
        """Take the end of the turn."""
        self.outcome = outcome

    def hear(self, notification: Notification) -> None:
        """Take what happened."""
        if self._feed is not None:
            self._feed.put_nowait(notification)
        match notification:
            case PromptDelivered(prompt_id=self.id):
                self.delivered = True
                self._begun.set()
            case QueueChanged(prompts=prompts) if not self.delivered:
                is_queued = any(prompt.id == self.id for prompt in prompts)
                if self._queued and not is_queued:
                    self.end(SessionError("prompt-dropped", "The prompt was removed from the queue.", fix="Ask again."))
                self._queued = is_queued
            case TurnEnded(outcome=outcome) if self._joined:
                self.answered(outcome)
                self.end(None)
            case TurnEnded() if self.delivered and self.outcome is not None:
                self.end(None)
            case _:
                pass

    def end(self, error: Exception | None) -> None:
        """Nothing more comes; `error` says why there is no outcome."""
        self.error = error
        if self._feed is not None:
            self._feed.put_nowait(None)
        self._begun.set()
        self._ended.set()

    async def begun(self) -> None:
        """Wait until it is not in the queue any more."""
        await self._begun.wait()

    async def wait(self) -> TurnOutcome:
        """Wait for the end of the turn; raises `TreadleError`, or what a listener raised, where it has none."""
        await self._ended.wait()
        return self._result()

    def leave(self) -> None:
        """Keep nothing more of what happens, at once; whoever iterates comes to the end. The prompt goes on."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Notification]:
        feed = self._feed = self._feed or asyncio.Queue()
        if self.ended and feed.empty():
            feed.put_nowait(None)
        while (notification := await feed.get()) is not None:
            yield notification
        feed.put_nowait(None)
        if self.ended:
            self._result()

    def _result(self) -> TurnOutcome:
        if self.error is not None:
            raise self.error
        assert self.outcome is not None  # noqa: S101 - it ends with one or the other
        return self.outcome


class SessionClient:
    """Enters a session, listens to it, and asks as several sources: `kind:name 1`, `kind:name 2` … at the same time.

    A number is used again once its prompt has come to its end: the session keeps a handler for each. `hears` is called
    with everything that happens; it must return immediately. What it raises ends all prompts with that error, and is
    raised by whatever is asked afterwards, and on leaving.
    """

    def __init__(
        self,
        session: LiveSession | RemoteSession,
        source: Source,
        hears: Callable[[Stamped], None] = lambda _: None,
    ) -> None:
        self.session = session
        self.source = source
        self._hears = hears
        self._runs: dict[int, PromptRun] = {}
        self._listening: asyncio.Task[None] | None = None
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        feed = self.session.follow()
        try:
            await self.session.__aenter__()
        except BaseException:
            feed.leave()
            raise

        async def hear_all() -> None:
            async with feed:
                async for stamped in feed.stamped():
                    self._hear(stamped)

        async def listen() -> None:
            # An error of foreign code is for whoever asks here; gathering hands it over as a value.
            (failure,) = await asyncio.gather(hear_all(), return_exceptions=True)
            self._failure = failure if isinstance(failure, Exception) else None
            await self._finish()

        self._listening = asyncio.create_task(listen(), name="listening")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.session.__aexit__(kind, error, trace)
        finally:
            if self._listening is not None:
                await self._listening
        if self._failure is not None and error is None:
            raise self._failure

    async def ask(
        self,
        content: tuple[UserContent, ...],
        delivery: Delivery = Delivery.QUEUE,
        *,
        name: str = "",
        followed: bool = False,
        enclosed: tuple[Enclosure, ...] = (),
    ) -> PromptRun:
        """Send a prompt with what is `enclosed`, as somebody else with `name`; returns when it is in the log.

        Raises `TreadleError` when it cannot be sent.
        """
        if self._failure is not None:
            raise self._failure
        if asked_beside(text_of(content)):
            raise ConfigError(
                "task-aside",
                "A question beside the work has no turn to wait for.",
                why="/btw only works in the terminal and with -p.",
                fix="Ask without /btw.",
            )
        run = PromptRun(followed=followed)
        number = self._free_number()
        source = Source(kind=self.source.kind, id=f"{name or self.source.id} {number}")
        self.session.answer_to(source, run.answered)
        self._runs[number] = run
        prompt = Prompt(id=run.id, content=content, delivery=delivery, enclosed=enclosed)
        sending = asyncio.ensure_future(self._send(prompt, source, run))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            # It may be in the log, whoever wanted it.
            with suppress(TreadleError):
                await sending
                await self.withdraw(run)
            raise
        return run

    def join_turn(self) -> PromptRun | None:
        """Follow the turn that goes on as one that was asked for here; None where none does."""
        if not self.session.status.turn_active:
            return None
        run = self._runs[self._free_number()] = PromptRun(joined=True)
        return run

    def _free_number(self) -> int:
        return next(number for number in count(1) if number not in self._runs)

    async def _send(self, prompt: Prompt, source: Source, run: PromptRun) -> None:
        try:
            await self.session.post(prompt, source)
        except BaseException:
            self._runs = {number: other for number, other in self._runs.items() if other is not run}
            raise

    async def withdraw(self, run: PromptRun) -> None:
        """Stop the turn that a prompt went into, or take the prompt out of the queue; what ended stays as it is."""
        if not run.delivered:
            try:
                await self.post(EditQueued(prompt_id=run.id))
            except RefusedError:
                await run.begun()
        if run.delivered and not run.ended:
            with suppress(RefusedError):
                await self.post(Interrupt())

    async def post(self, op: Op, *, name: str = "") -> None:
        """Ask for anything else, as somebody else with `name`; raises `RefusedError` or `ConfigError`."""
        await self.session.post(op, Source(kind=self.source.kind, id=name or self.source.id))

    def _hear(self, stamped: Stamped) -> None:
        self._hears(stamped)
        for run in self._runs.values():
            run.hear(stamped.notification)
        self._runs = {number: run for number, run in self._runs.items() if not run.ended}

    async def _finish(self) -> None:
        error: Exception = self._failure or SessionError(
            "session-closed", "The session was closed before the task was done.", fix="Resume it."
        )
        if self._failure is None:
            try:
                await self.session.failure()
            except TreadleError as failure:
                error = failure
        for run in self._runs.values():
            run.end(error)
        self._runs = {}
