"""A provider's count of tokens is believed where it can be right; else our own estimate stands."""

import pytest
from msgspec.structs import replace

from treadle.context.log_reader import TranscriptReader
from treadle.context.sizes import is_believable
from treadle.context.transcript import Transcript
from treadle.protocol.events import ENGINE, Event, ReplyFinished
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import ReplyStop
from treadle.protocol.usage import Usage

TURNS = 20
SIZE = 6_000


def after(count_of: object) -> Transcript:
    """A conversation of 20 turns with 6,000 bytes each; `count_of` gives what the server says after so many bytes."""
    reader = TranscriptReader()
    transcript = reader.transcript
    for turn in range(TURNS):
        transcript.add_user((Text(text="x" * (SIZE - 100)),))
        said = Message(role=Role.ASSISTANT, content=(Text(text="y" * 100),))
        count = count_of((turn + 1) * SIZE)  # type: ignore[operator]
        usage = Usage(input_tokens=count)
        reply = ReplyFinished(step=turn, attempt=1, message=said, stop=ReplyStop.END_TURN, usage=usage)
        reader.take(Event(seq=turn + 1, at=0, source=ENGINE, data=replace(reply, doubted=not reader.believes(count))))
    return transcript


@pytest.mark.parametrize(
    "count_of",
    [
        lambda _: 0,
        lambda _: 25,  # the answer alone
        lambda _: 300,  # what its cache had not
        lambda size: size // 40,
        lambda size: 10 * size + 100_000,  # all requests so far
    ],
)
def test_a_count_that_cannot_be_right_neither_hides_nor_inflates_the_conversation(count_of: object) -> None:
    tokens = after(count_of).tokens

    assert TURNS * SIZE / 6 <= tokens <= TURNS * SIZE / 2.2


@pytest.mark.parametrize("per_token", [2.0, 3.0, 4.0, 6.0])
def test_a_count_that_can_be_right_is_taken_as_it_is(per_token: float) -> None:
    assert after(lambda size: int(size / per_token)).tokens == int(TURNS * SIZE / per_token)


def test_small_conversations_are_not_judged() -> None:
    assert is_believable(1, 3_999)
    assert is_believable(1, 3_999, beside=50_000)


@pytest.mark.parametrize(("tokens", "believed"), [(999, False), (1_000, True), (54_000, True), (54_001, False)])
def test_the_bounds_of_what_is_believed(tokens: int, *, believed: bool) -> None:
    assert is_believable(tokens, 12_000) is believed
