from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question, QuestionKind
from treadle.tui.asking import Asking, EditFirst, ShowAll, Stage, amend, ask, back, choices, main_text, press, say

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
    assert [key for key, _ in choices(asking)] == ["y", "n", "c", "v"]


def test_a_comment_goes_with_the_answer_that_follows() -> None:
    writing = press(ask(PERMISSION), "c")
    assert writing == Asking(question=PERMISSION, stage=Stage.COMMENT)
    assert isinstance(writing, Asking)
    commented = say(writing, " use tabs ")
    assert commented == Asking(question=PERMISSION, stage=Stage.KEYS, comment="use tabs")
    assert isinstance(commented, Asking)
    assert press(commented, "y") == answer(OptionKind.ALLOW_ONCE, "use tabs")


def blocks(*names: str) -> str:
    return "".join(f"------- SEARCH\n{name}\n=======\n+++++++ REPLACE\n" for name in names)


def edit(**arguments: object) -> Question:
    return Question(id="q", kind=QuestionKind.PERMISSION, text="Edit", options=ALL, arguments=arguments)


def pressed(question: Question, keys: str) -> object:
    asking = ask(question)
    for key in keys[:-1]:
        now = press(asking, key)
        assert isinstance(now, Asking)
        asking = now
    return press(asking, keys[-1])


def test_an_edit_of_several_blocks_is_approved_with_the_chosen_ones() -> None:
    question = edit(path="x", diff=f"see\n{blocks('a', 'b', 'c')}")
    assert [key for key, _ in choices(ask(question))] == ["y", "a", "r", "n", "e", "h", "c", "v"]
    amended = {"path": "x", "diff": f"see\n{blocks('a', 'c')}"}
    assert pressed(question, "hyny") == Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments=amended)
    assert pressed(question, "hyyy") == answer(OptionKind.ALLOW_ONCE)
    assert pressed(question, "hnnn") == answer(OptionKind.REJECT_ONCE)


def test_each_block_is_asked_about_and_other_keys_change_nothing() -> None:
    asking = pressed(edit(diff=blocks("a", "b")), "hy")
    assert isinstance(asking, Asking)
    assert asking.block == blocks("b")
    assert [key for key, _ in choices(asking)] == ["y", "n"]
    assert [press(asking, key) for key in "aehcvx"] == [asking] * 6
    assert press(asking, "enter") == Answer(
        question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"diff": blocks("a")}
    )
    assert back(asking) == ask(asking.question)


def test_one_block_leaves_no_choice() -> None:
    asking = ask(edit(diff=blocks("a")))
    assert press(asking, "h") == asking


def test_what_can_be_edited_is_the_known_text_or_the_only_one() -> None:
    assert main_text(edit(path="x", content="c")) == EditFirst("content", "c")
    assert main_text(edit(command="ls", timeout=3)) == EditFirst("command", "ls")
    assert main_text(edit(query="q", limit=3)) == EditFirst("query", "q")
    assert main_text(edit(a="1", b="2")) is None
    assert main_text(edit()) is None


def test_an_amended_call_keeps_its_other_arguments_and_the_comment() -> None:
    asking = Asking(question=edit(command="ls", timeout=3), stage=Stage.KEYS, comment="so")
    assert amend(asking, "command", "pwd") == Answer(
        question_id="q", option=OptionKind.ALLOW_ONCE, text="so", arguments={"command": "pwd", "timeout": 3}
    )


def test_a_number_picks_an_offered_answer_and_other_words_are_the_answer() -> None:
    asking = ask(FOLLOWUP)
    assert say(asking, "2") == answer(OptionKind.ANSWER, "blue")
    assert say(asking, "3") == answer(OptionKind.ANSWER, "3")
    assert say(asking, " green ") == answer(OptionKind.ANSWER, "green")
    assert say(asking, "  ") == asking
