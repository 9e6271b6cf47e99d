"""One live session: the queue, the loop that takes one event after the other, and whoever listens."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.context.log_reader import TranscriptReader
from treadle.context.transcript import Transcript
from treadle.engine.core import goal
from treadle.engine.core.machine_effects import Effect, Notify, Respond, Seal, TakeCheckpoint
from treadle.engine.core.state import State
from treadle.engine.ports import Asked, OutputHandler, PersonReply, Ports
from treadle.engine.runtime.feeds import REPLY_PIECES, Feed, Feeds
from treadle.engine.runtime.model_call import is_answer, left_reply
from treadle.engine.runtime.perform import Performer
from treadle.engine.runtime.track import Posted, Track, closed_error, is_of_reply, observed, stamped_with
from treadle.protocol.attach import Snapshot
from treadle.protocol.checkpoints import CheckpointTaken, Restored, Rewound
from treadle.protocol.codec import encodable
from treadle.protocol.errors import RefusedError, SessionClosedError, StoreError
from treadle.protocol.events import (
    ENGINE,
    CallFinished,
    CallStarted,
    Event,
    EventData,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Source,
)
from treadle.protocol.notifications import Notice, Notification, QuestionAsked, QuestionClosed
from treadle.protocol.sealed import SideAnswered, TurnSettled
from treadle.protocol.tools import ToolEffect

if TYPE_CHECKING:
    from treadle.engine.runtime.step_checkpoints import Checkpointer
    from treadle.engine.runtime.whole_reply import AsideLog


class Attachment(Struct, frozen=True):
    """A surface on a live session: `feed` brings what comes. Without a `snapshot` that goes on where it left off."""

    feed: Feed
    number: int
    snapshot: Snapshot | None


class Session:
    """Takes events from any source, one at a time: append to the log, advance, perform the effects.

    It can be followed, and events posted to it, before it runs. `clock` gives milliseconds since 1970.
    """

    def __init__(self, track: Track, clock: Callable[[], int]) -> None:
        self._track = track
        self._clock = clock
        self._ports: Ports | None = None
        self._performer: Performer | None = None
        self._inbox: deque[Posted | Notify] = deque()
        self._calling = False
        self._arrived = asyncio.Event()
        self._closing = False
        self._feeds = Feeds()
        self._published = self.state.seq
        self._asking: dict[str, Notify] = {}
        self._asides: set[asyncio.Future[SideAnswered]] = set()
        self._handlers: dict[Source, OutputHandler] = {}
        self._closed = asyncio.Event()
        self._ending: asyncio.Future[tuple[Prompt, Source] | None] | None = None
        self._held: list[Effect] = []

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._track.state

    @property
    def transcript(self) -> Transcript:
        """The conversation so far."""
        return self._track.transcript

    @property
    def reader(self) -> TranscriptReader:
        """The conversation so far, as the log tells it."""
        return self._track.reader

    @property
    def closed(self) -> bool:
        """Whether `run` has ended: nothing is taken any more."""
        return self._closed.is_set()

    @property
    def closing(self) -> bool:
        """Whether the session ends as a program does: what goes on is taken up again with it."""
        return self._closing

    async def ask(self, call_id: str, asked: Asked) -> PersonReply:
        """Ask the user for what a call began and left to run."""
        return PersonReply() if self._performer is None else await self._performer.ask(call_id, asked)

    async def checkpointed(self) -> None:
        """Wait for the checkpoints that are being taken."""
        await (asyncio.sleep(0) if self._performer is None else self._performer.checkpointed())

    def follow(self) -> Feed:
        """Listen from now on, until the feed is left."""
        return self._feeds.follow()

    def attach(self, after: int | None = None, *, most: int = 4_000_000) -> Attachment:
        """Listen from after this number on where that is remembered; otherwise a snapshot comes first.

        A surface that lets more than `most` bytes wait is cut off, and attaches anew.
        """
        if after is not None and self._feeds.has(after):
            return Attachment(self._feeds.follow(most=most, after=after), after, None)
        snapshot = Snapshot(seq=self._published, calls=self._feeds.calls(), live=tuple(self._feeds.live()))
        return Attachment(self._feeds.follow(most=most), self._feeds.number, snapshot)

    def answer_to(self, source: Source, handler: OutputHandler) -> None:
        """Bring the ends of turns that this source asked for to `handler`."""
        self._handlers[source] = handler

    async def aside(
        self,
        ask: "Callable[[Ports, State, TranscriptReader, AsideLog], Awaitable[SideAnswered]]",
    ) -> SideAnswered:
        """Have a question answered from the conversation, which does not learn of it; the log does.

        What an answer used that is cancelled is logged, too. Raises `SessionClosedError` when `close` has cut it, and
        before the session runs.
        """
        if self._ports is None:
            raise SessionClosedError(SideAnswered.__name__, "the session does not run yet")
        asking = asyncio.ensure_future(ask(self._ports, self.state, self.reader, self))
        self._asides.add(asking)
        try:
            answered = await asking
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting is not None and waiting.cancelling():
                raise
            raise SessionClosedError(SideAnswered.__name__, "the session is closed") from None
        finally:
            self._asides.discard(asking)
        await self.post(answered)
        return answered

    async def post(self, data: EventData, source: Source = ENGINE) -> None:
        """Queue an event and wait until it is in the log; raises `RefusedError` when it is illegal then.

        An interrupt ends the hooks that are asked whether the turn may end: it has no more than these to stop.
        """
        if self.closed:
            raise closed_error(data)
        if isinstance(data, Interrupt) and self.state.turn is None and self._ending is not None:
            asking, self._ending = self._ending, None
            if asking.cancel():
                if (paused := goal.paused(self.state)) is None:
                    return
                data = paused
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(Posted(data, source, accepted))
        await accepted

    def post_soon(self, data: EventData, source: Source = ENGINE) -> None:
        """Queue an event of the engine; a refusal is of no interest any more."""
        self._put(Posted(data, source, None))

    def _put(self, posted: Posted | Notify) -> None:
        self._inbox.append(posted)
        self._calling = self._calling or is_of_reply(posted)
        self._arrived.set()

    def publish(self, notification: Notification) -> None:
        """Tell every surface what is in no log, or not yet; what a reply says behind a call waits until that is."""
        if self._calling and isinstance(notification, REPLY_PIECES):
            self._put(Notify(notification=notification, at=self._clock()))
        else:
            self._feeds.publish(notification, seq=0, at=self._clock())

    def tell(self, text: str, *, quiet: bool = False) -> None:
        """Let every surface show a line that nothing waits for; one that is `quiet` warns of nothing."""
        self.publish(Notice(text=text, quiet=quiet))

    def _notify(self, effect: Notify) -> None:
        self._feeds.publish(effect.notification, seq=effect.seq, at=effect.at)

    @property
    def checkpointer(self) -> "Checkpointer | None":
        """What keeps the files; None before the session runs."""
        return None if self._performer is None else self._performer.checkpointer()

    async def run(self, ports: Ports) -> None:
        """Work until `close`. Raises `StoreError` when the log cannot be written; what was logged stays."""
        self._ports = ports
        try:
            async with asyncio.TaskGroup() as group:
                performer = self._performer = Performer(ports, self, group)
                while not self._closing:
                    await self._arrived.wait()
                    self._arrived.clear()
                    await self._process(performer, ports)
                performer.cancel_all()
                if self._ending is not None:
                    self._ending.cancel()
                await self._keep_last_checkpoints(performer, ports)
            await self._keep_last(ports, CallFinished, ReplyFinished, ReplyFailed, SideAnswered)
        finally:
            self._closed.set()
            self._refuse_rest()
            self._feeds.close()

    async def close(self) -> None:
        """Stop all work as a crash would, but with the tools ended properly; the session can be resumed."""
        for asking in self._asides:
            asking.cancel()
        if self._asides:
            await asyncio.wait(self._asides)
        self._closing = True
        self._arrived.set()
        await self._closed.wait()

    async def _process(self, performer: Performer, ports: Ports) -> None:
        """Take everything that waits in one transaction, then perform its effects."""
        events: list[Event] = []
        effects: list[Effect] = []
        accepted: list[Posted] = []
        while self._inbox:
            posted = self._inbox.popleft()
            if isinstance(posted, Notify):
                effects.append(posted)
                continue
            event = self._stamp(posted.data, posted.source)
            try:
                effects += self._take(event, events)
            except RefusedError as refusal:
                posted.refuse(refusal)
                continue
            accepted.append(posted)
        try:
            if events:
                await ports.log.append(events, durable=any(self._must_last(event.data) for event in events))
        except StoreError:
            self._inbox.extendleft(reversed(accepted))  # refused with the rest
            raise
        for posted in accepted:
            posted.accept()
        if self.state.goal is not None or self._ending is not None:
            effects = self._held_for(ports, effects, performer)
        # Files are kept before a person is asked: what they do meanwhile would be taken for the session's work.
        for effect in sorted(effects, key=lambda effect: not isinstance(effect, TakeCheckpoint)):
            self._act(effect, performer)
        self._calling = any(map(is_of_reply, self._inbox))
        if events:
            self._published = events[-1].seq
            await observed(ports.observers, events, self.tell)

    def _held_for(self, ports: Ports, effects: list[Effect], performer: Performer) -> list[Effect]:
        """Hold back what says that a turn is over until the goal has let it end; gives what is to be done now.

        Where the next turn has begun nothing is held any more: it is asked about its end. A goal that is to be
        checked is so without the end of a turn, too, as after a restart; a check that is off by now is cut short.
        """
        from treadle.engine.runtime.hooked import going_on, reports_end

        if self.state.turn is not None:
            if self._ending is not None:
                self._ending.cancel()
            return [*self._released(), *effects]
        if self._ending is not None and not (self.state.goal is not None and self.state.goal.due):
            self._ending.cancel()
            self._ending = None
        ends = [effect for effect in effects if reports_end(effect)]
        if not goal.is_due(self.state) or (self._ending is not None and not ends):
            return effects
        self._held += ends

        async def end() -> None:
            asking = self._ending
            assert asking is not None  # noqa: S101 - it has begun
            try:
                await asyncio.wait((asking,))
            finally:
                if not asking.done():
                    asking.cancel()
                    await asyncio.wait((asking,))
            with suppress(RefusedError):  # the session has closed, or moved on
                if not asking.cancelled() and (more := asking.result()) is not None:
                    await self.post(*more)
            if self._ending is asking:
                self._ending = None
            for effect in self._released():
                self._act(effect, performer)

        self._ending = asyncio.ensure_future(going_on(ports, self, performer.checkpointed))
        performer.begin("end of turn", end)
        return [effect for effect in effects if effect not in ends]

    def _released(self) -> list[Effect]:
        held, self._held = self._held, []
        return held

    def _stamp(self, data: EventData, source: Source) -> Event:
        # Whatever made the text, what is said now is what a resumed session reads.
        return Event(seq=self.state.seq + 1, at=self._clock(), source=source, data=encodable(data))

    def _take(self, event: Event, events: list[Event]) -> tuple[Effect, ...]:
        """Take an event and what the machine says because of it; adds all of them to `events`."""
        effects = self._track.take(event)
        before = len(events)
        events.append(event)
        for effect in effects:
            if isinstance(effect, Seal):
                said = Event(seq=self.state.seq + 1, at=event.at, source=ENGINE, data=encodable(effect.data))
                self._take(said, events)
        return stamped_with(effects, event, events[before:])

    def _act(self, effect: Effect, performer: Performer) -> None:
        match effect:
            case Notify(notification=QuestionAsked(question=question)) if performer.once_kept(
                f"ask-{question.id}", lambda: self._ask(question.id)
            ):
                self._asking[question.id] = effect
            case Notify(notification=QuestionClosed(question_id=question_id)):
                self._ask(question_id)
                self._notify(effect)
            case Notify():
                self._notify(effect)
            case Respond(sources=sources, outcome=outcome):
                for source in sources:
                    handler = self._handlers.get(source)
                    if handler is not None:
                        handler(outcome)
            case Seal():
                pass
            case _:
                performer.perform(effect)

    def _ask(self, question_id: str) -> None:
        """Put a question that waited for the files to be kept, once; at the latest when it closes."""
        asked = self._asking.pop(question_id, None)
        if asked is not None:
            self._notify(asked)

    def _must_last(self, data: EventData) -> bool:
        """Whether the event has to survive a power cut before anything follows from it."""
        if not isinstance(data, CallStarted | CallFinished):
            return isinstance(data, Prompt | CheckpointTaken | TurnSettled)
        call = next((call for call in self.state.calls if call.call.id == data.call_id), None)
        return call is not None and call.traits.effect is not ToolEffect.PURE

    async def _keep_last_checkpoints(self, performer: Performer, ports: Ports) -> None:
        """Wait for the checkpoints that are being taken, and log them."""
        ended = asyncio.ensure_future(performer.checkpointed())
        while not ended.done():
            arrived = asyncio.ensure_future(self._arrived.wait())
            await asyncio.wait((ended, arrived), return_when=asyncio.FIRST_COMPLETED)
            arrived.cancel()
            self._arrived.clear()
            await self._keep_last(ports, CheckpointTaken, Restored, Rewound)
        await ended

    async def _keep_last(self, ports: Ports, *kinds: type[EventData]) -> None:
        """Log what `close` has not stopped, or the outcome of what it has, so that nothing known is lost."""
        events: list[Event] = []
        effects: list[Effect] = []
        for posted in tuple(self._inbox):
            if isinstance(posted, Notify) or not isinstance(data := posted.data, kinds):
                continue
            self._inbox.remove(posted)
            if isinstance(data, ReplyFinished) and not is_answer(data):
                continue  # its calls were not taken
            if isinstance(data, ReplyFailed) and not self.state.cancelling:
                data = left_reply(data)
            try:
                effects += self._take(self._stamp(data, posted.source), events)
            except RefusedError as refusal:
                posted.refuse(refusal)
                continue
            posted.accept()
        if events:
            await ports.log.append(events, durable=True)
            for effect in effects:
                if isinstance(effect, Notify):
                    self._notify(effect)
            await observed(ports.observers, events, self.tell)

    def _refuse_rest(self) -> None:
        for posted in self._inbox:
            if isinstance(posted, Posted):
                posted.refuse(closed_error(posted.data))
        self._inbox.clear()
