import pytest
from msgspec.structs import replace

from tests.tui.asked import (
    AGAIN,
    BUDGET,
    COMPOUND,
    DANGER,
    EDIT,
    EVERY_KIND,
    FOLLOWUP,
    FOR_REAL,
    GUIDANCE,
    KEEP,
    READ_OUTSIDE,
    RUN,
    SECRET,
    SEVERAL,
    WRITE_OUTSIDE,
)
from treadle.present.answer_rows import Act, EditFirst
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import CopyChanges
from treadle.tui.question.asked import (
    Asking,
    GivenAnswer,
    ShowWhole,
    Stage,
    ask,
    back,
    change,
    choices,
    comment,
    confirm,
    keep_words,
    main_text,
    move,
    no,
    pick,
    take_words,
)


def labels(question: Question, mode: Mode = Mode.ASK) -> list[str]:
    return [choice.label for choice in choices(ask(question, mode))]


def given(option: OptionKind, text: str = "", *, edits: bool = False, **more: object) -> GivenAnswer:
    return GivenAnswer(Answer(question_id="q", option=option, text=text, **more), edits=edits)  # type: ignore[arg-type]


def at(question: Question, row: int) -> Asking:
    return move(ask(question), row)


def opened(asking: Asking) -> Asking:
    """Confirm a row that asks for something more."""
    taken = confirm(asking)
    assert isinstance(taken, Asking)
    return taken


NO = "No, and say what to do instead"
EDITS = "Yes, and all edits in this project this session (edits mode, shift-tab)"


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        (
            RUN,
            [
                "Yes",
                "Yes, and don't ask again this session for: python3 -m unittest …",
                "Always for this project: python3 -m unittest …",
                NO,
            ],
        ),
        (COMPOUND, ["Yes", NO]),
        (EDIT, ["Yes", EDITS, "Choose block by block (2)", NO]),
        (READ_OUTSIDE, ["Yes", NO]),
        (DANGER, [NO, "Yes, run it once"]),
        (WRITE_OUTSIDE, [NO, "Yes, write it once"]),
        (AGAIN, ["Yes, once, with this right", NO]),
        (SECRET, [NO, "Yes, once, with this right"]),
        (BUDGET, ["Yes, up to $10.00", "No"]),
        (FOLLOWUP, ["red", "blue", "Something else…"]),
        (GUIDANCE, ["Answer in your own words"]),
    ],
)
def test_each_kind_of_question_has_its_list(question: Question, shown: list[str]) -> None:
    assert labels(question) == shown


def test_edits_mode_is_offered_only_where_it_would_have_answered() -> None:
    assert labels(EDIT, Mode.EDITS) == ["Yes", "Choose block by block (2)", NO]


@pytest.mark.parametrize("question", EVERY_KIND.values(), ids=EVERY_KIND)
def test_the_choice_stops_at_both_ends(question: Question) -> None:
    last = len(labels(question)) - 1
    assert [at(question, rows).chosen for rows in (-1, 0, 99)] == [0, 0, last]


def test_digits_and_y_and_n_move_the_choice_and_other_characters_do_not() -> None:
    asking = ask(EDIT)
    picked = {char: pick(asking, char) for char in "y1n4Y95x٣ "}
    assert {char: None if one is None else one.chosen for char, one in picked.items()} == {
        "y": 0, "1": 0, "n": 3, "4": 3, "Y": 0, "9": None, "5": None, "x": None, "٣": None, " ": None,
    }  # fmt: skip
    danger = pick(ask(DANGER), "y")
    assert danger is not None
    assert danger.chosen == 1


def test_yes_no_and_the_session_are_answers() -> None:
    assert confirm(ask(RUN)) == given(OptionKind.ALLOW_ONCE)
    assert confirm(at(RUN, 1)) == given(OptionKind.ALLOW_ALWAYS)
    assert confirm(at(EDIT, 1)) == given(OptionKind.ALLOW_ONCE, edits=True)
    assert confirm(at(BUDGET, 1)) == given(OptionKind.REJECT_ONCE)
    assert confirm(at(FOLLOWUP, 1)) == given(OptionKind.ANSWER, "blue")
    assert no(ask(RUN)) == given(OptionKind.REJECT_ONCE)


def test_where_several_may_be_chosen_enter_ticks_and_one_row_sends_what_is_ticked() -> None:
    assert labels(SEVERAL) == ["[ ] red", "[ ] blue", "[ ] green", "Send what is chosen", "Something else…"]
    asking = at(SEVERAL, 3)
    assert confirm(asking) is asking, "nothing chosen is no answer"
    for row in (2, 1, 0, 1):
        ticked = confirm(replace(asking, chosen=row))
        assert isinstance(ticked, Asking)
        asking = ticked
    assert [row.label for row in choices(asking)][:3] == ["[x] red", "[ ] blue", "[x] green"]
    assert confirm(replace(asking, chosen=3)) == given(OptionKind.ANSWER, "red\ngreen")
    words = confirm(replace(asking, chosen=4))
    assert isinstance(words, Asking)
    assert take_words(words, "none of them") == given(OptionKind.ANSWER, "none of them")


def test_always_shows_the_rule_and_begins_with_not_saving_it() -> None:
    rule = opened(at(RUN, 2))
    assert (rule.stage, [choice.label for choice in choices(rule)], rule.chosen) == (Stage.RULE, ["No", "Yes"], 0)
    assert confirm(rule) == ask(RUN)
    assert confirm(move(rule, 1)) == given(OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert back(rule) == ask(RUN)


def test_danger_wants_yes_in_words() -> None:
    sure = opened(at(DANGER, 1))
    assert sure.stage is Stage.SURE
    assert [take_words(sure, words) for words in ("", "y", "yes please")] == [sure] * 3
    assert take_words(sure, " YES ") == given(OptionKind.ALLOW_ONCE)


def test_no_takes_words_along() -> None:
    instead = opened(at(RUN, 3))
    assert instead.stage is Stage.INSTEAD
    assert take_words(instead, "") == given(OptionKind.REJECT_ONCE)
    assert take_words(instead, " keep the old name ") == given(OptionKind.REJECT_ONCE, "keep the old name")


def test_a_comment_goes_with_the_chosen_yes_and_is_kept_when_its_line_is_closed() -> None:
    writing = comment(at(RUN, 1))
    assert writing.stage is Stage.COMMENT
    assert take_words(writing, "be quick") == given(OptionKind.ALLOW_ALWAYS, "be quick")
    kept = keep_words(writing, "be quick")
    assert confirm(kept) == given(OptionKind.ALLOW_ALWAYS, "be quick")
    assert no(kept) == given(OptionKind.REJECT_ONCE, "be quick")


def test_a_question_in_words_takes_an_option_or_anything_else() -> None:
    other = opened(at(FOLLOWUP, 2))
    assert other.stage is Stage.WORDS
    assert take_words(other, " ") == other
    assert take_words(other, "green") == given(OptionKind.ANSWER, "green")
    assert take_words(opened(ask(GUIDANCE)), "try again") == given(OptionKind.ANSWER, "try again")


def test_an_edit_of_several_blocks_is_approved_with_the_chosen_ones() -> None:
    first = opened(at(EDIT, 2))
    assert (first.stage, "first" in first.block) == (Stage.BLOCKS, True)
    second = opened(move(first, 1))
    assert ("second" in second.block, second.chosen) == (True, 0)
    answer = confirm(second)
    assert isinstance(answer, GivenAnswer)
    assert answer.answer.arguments is not None
    assert answer.answer.arguments["path"] == "shop/cart.py"
    assert ("first" in answer.answer.arguments["diff"], "second" in answer.answer.arguments["diff"]) == (False, True)
    assert confirm(opened(first)) == given(OptionKind.ALLOW_ONCE)
    assert confirm(move(second, 1)) == given(OptionKind.REJECT_ONCE)
    assert back(second) == ask(EDIT)


def test_what_was_edited_is_asked_about_once_more_with_yes_and_no_alone() -> None:
    changed = change(ask(RUN), "command", "python3 -m unittest")
    assert [choice.label for choice in choices(changed)] == ["Yes, with your change", NO]
    assert confirm(changed) == given(OptionKind.ALLOW_ONCE, arguments={"command": "python3 -m unittest"})
    assert main_text(changed) == EditFirst("command", "python3 -m unittest")


def test_the_text_to_edit_is_a_known_one_or_the_only_one() -> None:
    def texts(**arguments: object) -> EditFirst | None:
        return main_text(ask(replace(RUN, arguments=arguments)))

    assert texts(path="x", content="c") == EditFirst("content", "c")
    assert texts(query="q", limit=3) == EditFirst("query", "q")
    assert texts(path="x", query="q") is None
    assert (main_text(ask(BUDGET)), main_text(ask(AGAIN))) == (None, None)


def test_changes_of_a_copy_are_applied_discarded_or_made_for_real_and_the_diff_answers_nothing() -> None:
    asking = ask(KEEP)
    assert [row.label for row in choices(asking)] == ["Apply", "Show the diff", "Discard", "Run it for real"]
    taken = [confirm(move(asking, row)) for row in range(4)]
    assert isinstance(taken[1], ShowWhole)
    options = [one.answer.option for one in taken if isinstance(one, GivenAnswer)]
    assert options == [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE, OptionKind.RUN_FOR_REAL]
    assert main_text(asking) is None, "what has run cannot be changed first"


def test_what_cannot_be_applied_offers_only_a_real_run_and_with_more_rights_that_wants_to_be_typed() -> None:
    asking = ask(FOR_REAL)
    assert [row.label for row in choices(asking)] == ["Discard", "Show the diff", "Run it for real"]
    sure = confirm(move(asking, 2))
    assert isinstance(sure, Asking)
    assert take_words(sure, "y") == sure
    given = take_words(sure, "yes")
    assert isinstance(given, GivenAnswer)
    assert given.answer.option is OptionKind.RUN_FOR_REAL
    harmless = replace(FOR_REAL, copy=CopyChanges(trouble="The copy is full."))
    assert [row.label for row in choices(ask(harmless))] == ["Run it for real", "Show the diff", "Discard"]


def test_a_form_is_filled_in_until_it_is_complete() -> None:
    form = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
    question = Question(id="q", kind=QuestionKind.ELICITATION, text="Who?", options=("allow_once",), form=form)
    asking = ask(question)
    assert [row.act for row in choices(asking)] == [Act.WORDS, Act.REJECT]
    partly = take_words(comment(asking), "age=7")
    assert isinstance(partly, Asking)
    assert partly.question.arguments == {"age": 7}
    given = take_words(comment(partly), "name=Ada")
    assert isinstance(given, GivenAnswer)
    assert given.answer == Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"age": 7, "name": "Ada"})


def test_a_link_to_open_is_said_to_be_opened_or_not() -> None:
    question = Question(id="q", kind=QuestionKind.ELICITATION, text="Log in.", url="https://example.org/login")
    assert [row.label for row in choices(ask(question))] == ["Yes, I opened it", "No"]
    given = confirm(replace(ask(question), chosen=1))
    assert isinstance(given, GivenAnswer)
    assert given.answer.option is OptionKind.REJECT_ONCE
