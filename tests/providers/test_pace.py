"""How fast a reply has to grow."""

from treadle.protocol.models import StreamCallArguments, StreamCallStart, StreamText, StreamThinking, StreamThinkingDone
from treadle.providers.endpoint import StreamLimits
from treadle.providers.http_connections import RunningClock
from treadle.providers.pace import STEP, ReplyProgress


class Clock(RunningClock):
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_only_a_whole_step_moves_the_deadline_and_never_beyond_the_end_of_the_reply() -> None:
    clock = Clock()
    pace = ReplyProgress(StreamLimits(progress=10.0, reply=35.0), clock)
    assert pace.deadline == 110.0
    clock.now = 105.0
    pace.add(StreamText(text="x" * (STEP - 1)))
    assert pace.deadline == 110.0
    pace.add(StreamThinking(text="x"))
    assert (pace.deadline, "less than 256 characters in 10 s" in pace.complaint) == (115.0, True)
    clock.now = 130.0
    pace.add(StreamCallArguments(index=0, text="x" * 9_999))
    assert (pace.deadline, "not complete after 35 s" in pace.complaint) == (135.0, True)


def test_what_comes_whole_is_a_step_and_what_is_empty_is_nothing() -> None:
    clock = Clock()
    pace = ReplyProgress(StreamLimits(progress=10.0), clock)
    clock.now = 105.0
    for _ in range(1_000):
        pace.add(StreamText(text=""))
    assert pace.deadline == 110.0
    for at, piece in ((106.0, StreamThinkingDone(redacted="x")), (107.0, StreamCallStart(index=0, name="read_file"))):
        clock.now = at
        pace.add(piece)
        assert pace.deadline == at + 10.0
