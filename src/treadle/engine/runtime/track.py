"""Where a session is: its state and its conversation, as the log gives them. The session alone brings it forward."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.context.log_reader import TranscriptReader
from treadle.context.transcript import Transcript
from treadle.engine.core.advance import advance
from treadle.engine.core.machine_effects import Effect
from treadle.engine.core.state import State
from treadle.protocol.checkpoints import Rewound
from treadle.protocol.events import Event

if TYPE_CHECKING:
    from treadle.engine.core.past_history import Past


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
