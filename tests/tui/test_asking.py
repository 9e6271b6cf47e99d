from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question, QuestionKind
from treadle.tui.asking import Asking, ShowAll, Stage, ask, choices, press, say

ALL = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)
PERMISSION = Question(id="q", kind=QuestionKind.PERMISSION, text="Edit", options=ALL)
CRITICAL = Question(
    id="q", kind=QuestionKind.PERMISSION, text="Edit", options=(OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
)
FOLLOWUP = Question(id="q", kind=QuestionKind.FOLLOWUP, text="Which?", options=("red", "blue"))


def answer(option: OptionKind, text: str = "") -> Answer:
    return Answer(question_id="q", option=option, text=text)


def test_keys_answer_a_permission_and_enter_is_no() -> None:
    asking = ask(PERMISSION)
    assert asking == Asking(question=PERMISSION, stage=Stage.KEYS)
    assert press(asking, "y") == answer(OptionKind.ALLOW_ONCE)
    assert press(asking, "A") == answer(OptionKind.ALLOW_ALWAYS)
    assert press(asking, "n") == answer(OptionKind.REJECT_ONCE)
    assert press(asking, "enter") == answer(OptionKind.REJECT_ONCE)
    assert press(asking, "v") == ShowAll()


def test_other_keys_change_nothing() -> None:
    asking = ask(PERMISSION)
    assert [press(asking, key) for key in ("x", " ", "", "\t", "é")] == [asking] * 5


def test_what_is_not_offered_cannot_be_pressed() -> None:
    asking = ask(CRITICAL)
    assert press(asking, "a") == asking
    assert [key for key, _ in choices(CRITICAL)] == ["y", "n", "c", "v"]


def test_a_comment_goes_with_the_answer_that_follows() -> None:
    writing = press(ask(PERMISSION), "c")
    assert writing == Asking(question=PERMISSION, stage=Stage.COMMENT)
    assert isinstance(writing, Asking)
    commented = say(writing, " use tabs ")
    assert commented == Asking(question=PERMISSION, stage=Stage.KEYS, comment="use tabs")
    assert isinstance(commented, Asking)
    assert press(commented, "y") == answer(OptionKind.ALLOW_ONCE, "use tabs")


def test_a_number_picks_an_offered_answer_and_other_words_are_the_answer() -> None:
    asking = ask(FOLLOWUP)
    assert say(asking, "2") == answer(OptionKind.ANSWER, "blue")
    assert say(asking, "3") == answer(OptionKind.ANSWER, "3")
    assert say(asking, " green ") == answer(OptionKind.ANSWER, "green")
    assert say(asking, "  ") == asking
