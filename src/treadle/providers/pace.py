"""How fast a reply has to grow: one that drips, or only gives signs of life, must not hold a session for ever."""

from treadle.protocol.models import StreamCallArguments, StreamEvent, StreamText, StreamThinking
from treadle.providers.endpoint import StreamLimits
from treadle.providers.http_connections import RunningClock

STEP = 256
"""Characters by which a reply has to grow within `StreamLimits.progress`; by default that is a token in ten seconds."""


class ReplyProgress:
    """The progress of one reply, which begins now; `clock` gives seconds."""

    def __init__(self, limits: StreamLimits, clock: RunningClock) -> None:
        self._limits = limits
        self.clock = clock
        self._end = clock() + limits.reply
        self._step_end = clock() + limits.progress
        self._grown = 0

    @property
    def deadline(self) -> float:
        """The moment at which the reply is given up if nothing more is added."""
        return min(self._end, self._step_end)

    @property
    def complaint(self) -> str:
        """Say what is wrong when `deadline` has passed."""
        if self._end <= self._step_end:
            return f"the reply was not complete after {self._limits.reply:g} s (reply_timeout)"
        return f"the reply grew by less than {STEP} characters in {self._limits.progress:g} s (progress_timeout)"

    def add(self, piece: StreamEvent) -> None:
        """Count a piece of the reply; signs of life give none, and empty ones are nothing."""
        self._grown += _size(piece)
        if self._grown >= STEP:
            self._grown = 0
            self._step_end = self.clock() + self._limits.progress


def _size(piece: StreamEvent) -> int:
    """The characters of a piece; what comes whole, as a finished block of reasoning, is a step."""
    match piece:
        case StreamText(text=text) | StreamThinking(text=text) | StreamCallArguments(text=text):
            return len(text)
        case _:
            return STEP
