"""What a session has cost as its notifications tell it, and the words for money."""

import pytest

from tests.fakes.folding import spending_of
from treadle.present.spending_words import Spending
from treadle.present.words import spent
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import money
from treadle.protocol.notifications import MessageDone, Notice, ReplyDropped, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.usage import Usage

USED, ABOUT = Usage(input_tokens=900, output_tokens=100), Usage(input_tokens=900, output_tokens=100, estimated=True)


def done(cost: float | None) -> MessageDone:
    return MessageDone(step=1, message=Message(role=Role.ASSISTANT, content=()), usage=USED, cost=cost)


def ended(cost: float | None, usage: Usage = USED) -> TurnEnded:
    return TurnEnded(outcome=TurnOutcome(stop=TurnStop.CANCELLED, usage=usage, cost=cost))


def test_a_reply_that_was_dropped_counts_as_one_that_became_whole() -> None:
    assert spending_of([done(0.25), ReplyDropped(usage=ABOUT, cost=0.5), Notice(text="x")]) == Spending(
        turn=0.75, estimated=True
    )
    assert spending_of([done(0.25), ReplyDropped(usage=ABOUT, cost=None)]) == Spending(
        turn=0.25, unpriced=True, estimated=True
    )


def test_the_end_of_a_turn_has_what_no_reply_told_of() -> None:
    assert spending_of([done(0.25), ended(1.0, ABOUT), done(0.5)]) == Spending(ended=1.0, turn=0.5, estimated=True)
    assert spending_of([done(0.25), ended(None), ended(0.5)]) == Spending(ended=0.75, unpriced=True)


@pytest.mark.parametrize(
    ("amount", "unpriced", "estimated", "words"),
    [
        (None, False, False, "cost unknown"),
        (None, False, True, "cost unknown"),
        (0.0, True, False, "cost unknown"),
        (0.0, False, False, "$0.00"),
        (0.0, False, True, "$0.00"),
        (0.004, False, False, "<$0.01"),
        (0.0042, False, True, "about $0.0042"),
        (0.00000042, False, True, "about $0.0001"),
        (0.0123, False, False, "$0.01"),
        (0.0123, False, True, "about $0.01"),
        (0.5, False, True, "about $0.50"),
        (1200.0, False, True, "about $1,200.00"),
        (0.5, True, False, "over $0.50"),
        (0.004, True, False, "over $0.0040"),
        (0.0075, True, True, "over about $0.0075"),
        (0.00000042, True, False, "cost unknown"),
        (1.496, True, False, "over $1.49"),
        (0.1 + 0.7, True, False, "over $0.80"),
        (0.29, True, False, "over $0.29"),
        (0.5, True, True, "over about $0.50"),
    ],
)
def test_money_says_what_is_known_of_it(amount: float | None, unpriced: bool, estimated: bool, words: str) -> None:
    assert money(amount, unpriced=unpriced, estimated=estimated) == words


def test_a_cost_that_is_not_known_gives_the_tokens() -> None:
    assert [spent(usage, cost) for usage in (USED, ABOUT) for cost in (None, 0.5)] == [
        "cost unknown, 1k tokens",
        "$0.50",
        "cost unknown, about 1k tokens",
        "about $0.50",
    ]
