"""How long a turn took: the time in which a program worked on it and waited for nobody."""

from treadle.present.fold import fold_notification
from treadle.present.items import TurnItem
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    Notification,
    Phase,
    PhaseChanged,
    QuestionAsked,
    QuestionClosed,
    TurnEnded,
    TurnOutcome,
    TurnResumed,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import Question, QuestionKind

WORKS = PhaseChanged(phase=Phase.AWAITING_LLM_RESPONSE)
ASKED = QuestionAsked(question=Question(id="q", kind=QuestionKind.FOLLOWUP, text="Which?"))
ANSWERED = QuestionClosed(question_id="q")
ENDED = TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN))


def took(*happened: tuple[int, Notification]) -> tuple[float | None, float]:
    """Fold what happened, each at a second; gives how long the turn took, and how long of that it waited."""
    view = SessionView()
    ends: list[TurnItem] = []
    for second, notification in happened:
        view, changed = fold_notification(view, Stamped(notification=notification, seq=second, at=second * 1000))
        ends += [one.item for one in changed if isinstance(one.item, TurnItem)]
    return ends[-1].seconds, ends[-1].waited


def test_a_turn_that_another_program_goes_on_with_took_as_long_as_programs_worked_on_it() -> None:
    begun = (1_000, TurnStarted(turn=1)), (1_004, WORKS)
    assert took(*begun, (1_006, ENDED)) == (6.0, 0.0)
    assert took(*begun, (5_000, TurnResumed()), (5_002, ENDED)) == (6.0, 0.0)
    assert took(*begun, (5_000, TurnResumed()), (5_001, WORKS), (9_000, TurnResumed()), (9_002, ENDED)) == (7.0, 0.0)


def test_nobody_was_asked_while_no_program_ran() -> None:
    asked = (1_000, TurnStarted(turn=1)), (1_004, ASKED)
    assert took(*asked, (5_000, TurnResumed()), (5_003, ANSWERED), (5_005, ENDED)) == (6.0, 3.0)


def test_between_turns_there_is_nothing_to_leave_out() -> None:
    turn = (1_000, TurnStarted(turn=1)), (1_002, ENDED)
    assert took(*turn, (7_000, TurnResumed()), (8_000, TurnStarted(turn=2)), (8_003, ENDED)) == (3.0, 0.0)
