"""Where a session is, its state and its conversation as the log gives them, and what waits to bring it forward.

The session alone brings it forward.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.context.log_reader import TranscriptReader
from treadle.context.transcript import Transcript
from treadle.engine.core.advance import advance
from treadle.engine.core.machine_effects import Effect, Notify
from treadle.engine.core.state import State
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.errors import RefusedError, SessionClosedError, TreadleError
from treadle.protocol.events import CallProposed, Event, EventData, Source
from treadle.protocol.notifications import Notification, PromptDelivered
from treadle.protocol.sealed import PromptsDelivered

if TYPE_CHECKING:
    from treadle.engine.core.past_history import Past
    from treadle.engine.ports import Observer


class Track:
    """Made before the session, so that what the session is made of can look at it.

    `reader_at` reads the conversation up to an event of that number, for a way back to it.
    """

    def __init__(
        self, past: "Past | None" = None, reader_at: Callable[[int], TranscriptReader] = lambda _: TranscriptReader()
    ) -> None:
        self._reader_at = reader_at
        self._state = State() if past is None else past.state
        self._reader = TranscriptReader() if past is None else past.reader

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._state

    @property
    def reader(self) -> TranscriptReader:
        """The conversation so far, as the log tells it."""
        return self._reader

    @property
    def transcript(self) -> Transcript:
        """The conversation so far."""
        return self._reader.transcript

    def restate(self, state: State) -> None:
        """Go on from a state that was written down."""
        self._state = state

    def take(self, event: Event) -> tuple[Effect, ...]:
        """Take the next event; raises `RefusedError`, with nothing changed, when it is illegal now."""
        self._state, effects = advance(self._state, event)
        if isinstance(event.data, Rewound):
            self._reader = self._reader_at(event.data.to)
        self._reader.take(event)
        return effects


def stamped_with(effects: Sequence[Effect], event: Event, logged: Sequence[Event]) -> tuple[Effect, ...]:
    """Give each notification the number and the time of its event, `logged` with what is sealed behind it.

    A message that waited is behind the end of the turn before, which the same event may have brought.
    """
    sent = {
        prompt_id: one.seq
        for one in logged
        if isinstance(one.data, PromptsDelivered)
        for prompt_id in one.data.prompt_ids
    }

    def seq(notification: Notification) -> int:
        return sent.get(notification.prompt_id, event.seq) if isinstance(notification, PromptDelivered) else event.seq

    return tuple(
        replace(effect, seq=seq(effect.notification), at=event.at) if isinstance(effect, Notify) else effect
        for effect in effects
    )


class Posted(Struct, frozen=True):
    """An event on its way into the log, and who waits for that."""

    data: EventData
    source: Source
    accepted: asyncio.Future[None] | None

    def accept(self) -> None:
        """Tell who posted it that it is in the log."""
        if self.accepted is not None and not self.accepted.done():
            self.accepted.set_result(None)

    def refuse(self, refusal: RefusedError) -> None:
        """Tell who posted it why it was not taken."""
        if self.accepted is not None and not self.accepted.done():
            self.accepted.set_exception(refusal)


def is_of_reply(posted: Posted | Notify) -> bool:
    """Whether it is something that a reply says, on its way to surfaces in the order of the reply."""
    return isinstance(posted, Notify) or isinstance(posted.data, CallProposed)


def closed_error(data: EventData) -> SessionClosedError:
    """Say that an event comes too late."""
    return SessionClosedError(type(data).__name__, "the session is closed")


async def observed(observers: "Sequence[Observer]", events: Sequence[Event], tell: Callable[[str], None]) -> None:
    """Give each observer what was logged; an error of one is told, and the session goes on."""
    for observer in observers:
        try:
            await observer(events)
        except TreadleError as error:
            tell(f"{error.what} {error.why}".strip())
