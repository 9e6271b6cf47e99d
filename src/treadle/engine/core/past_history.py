"""What a log tells of a session: its state, its conversation, and what surfaces were notified of."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from treadle.context.log_reader import TranscriptReader
from treadle.context.notified import NotificationReader
from treadle.context.transcript import Transcript
from treadle.engine.core.advance import advance, fold
from treadle.engine.core.machine_effects import Effect, Seal
from treadle.engine.core.state import AwaitingReply, Compacting, State
from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.codec import encodable
from treadle.protocol.events import ENGINE, EditQueued, Event, EventData, Interrupt, Resumed
from treadle.protocol.sealed import StateSealed, TurnSettled


class Past(Struct, frozen=True, kw_only=True):
    """What a log tells of a session, `stamped` what surfaces heard of it. Who takes it up goes on with the `reader`."""

    state: State
    reader: TranscriptReader
    stamped: tuple[Stamped, ...] = ()

    @property
    def transcript(self) -> Transcript:
        """The conversation so far."""
        return self.reader.transcript


def read_past(events: Iterable[Event]) -> Past:
    """Read a log, once from its beginning to its end. Raises `DriftError`."""
    reader, notified = TranscriptReader(), NotificationReader()

    def taken() -> Iterator[Event]:
        for event in events:
            reader.take(event)
            notified.take(event)
            yield event

    state = last_state(taken())
    return Past(state=state, reader=reader, stamped=tuple(notified.stamped()))


def conversation(events: Iterable[Event]) -> TranscriptReader:
    """Read no more than the conversation off a log."""
    reader = TranscriptReader()
    for event in events:
        reader.take(event)
    return reader


def still_in_conversation(events: Iterable[Event]) -> list[Event]:
    """Leave out what left the conversation when the user went back in it."""
    kept: list[Event] = []
    before: int | None = None
    for event in reversed(list(events)):
        if before is not None and event.seq > before:
            continue  # a way back in it has left the conversation itself
        kept.append(event)
        if isinstance(event.data, Rewound):
            before = event.data.to
    kept.reverse()
    return kept


def last_state(events: Iterable[Event]) -> State:
    """Give the state after a log: the last one that it holds, and what came since. Raises `DriftError`."""
    tail: list[Event] = []
    for event in events:
        if isinstance(event.data, TurnSettled | StateSealed):
            tail.clear()
        tail.append(event)
    return fold(tail)


def calls_under_way(state: State) -> int:
    """Count the model calls that go on, so that no event tells yet what they use."""
    return len(state.asked) + isinstance(state.activity, AwaitingReply)


def take_whole(state: State, event: Event) -> tuple[State, list[Event], tuple[Effect, ...]]:
    """Take an event; gives with the state the events to log, what the machine says because of it among them.

    Raises `RefusedError`.
    """
    state, effects = advance(state, event)
    events = [event]
    for effect in effects:
        if isinstance(effect, Seal):
            said = Event(seq=state.seq + 1, at=event.at, source=ENGINE, data=encodable(effect.data))
            state, more, _ = take_whole(state, said)
            events += more
    return state, events, effects


def next_to_end(state: State) -> EventData | None:
    """Give the next event that ends what was going on when a session was left; None where nothing is."""
    if state.cancelling:
        return Resumed(user_present=False, keeps=True)
    if state.queue:
        return EditQueued(prompt_id=state.queue[0].prompt.id)
    if state.turn is not None or isinstance(state.activity, Compacting):
        return Interrupt()
    return None
