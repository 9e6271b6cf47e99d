"""Forms for questions, and the answers that come of them."""

import pytest

from treadle.mcp_server.wording import AnswerForm, form_answer, given_answer, question_form
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question, QuestionKind

YES_NO = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
FORM = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
SIGN_IN = Question(id="q", kind=QuestionKind.ELICITATION, text="Sign in", options=YES_NO, form=FORM)
OPEN = Question(id="q", kind=QuestionKind.ELICITATION, text="Open it?", options=YES_NO, url="https://a.example")
GO_ON = Question(id="q", kind=QuestionKind.GUIDANCE, text="How?")


def test_what_wants_words_gets_a_line_and_the_rest_a_choice() -> None:
    forms = [question_form(one, one.options).__name__ for one in (SIGN_IN, OPEN, GO_ON)]
    assert forms == ["AnswerForm", "DecisionForm", "AnswerForm"]
    assert question_form(SIGN_IN, ("reject_once",)).__name__ == "DecisionForm"


def test_an_answer_in_words_fills_in_the_form_of_a_server_or_is_the_answer_itself() -> None:
    filled = Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"name": "Ann B", "age": 7})
    assert form_answer(SIGN_IN, AnswerForm(answer="name='Ann B' age=7")) == filled
    assert given_answer(SIGN_IN, OptionKind.ALLOW_ONCE, "name='Ann B' age=7") == filled
    assert form_answer(GO_ON, AnswerForm(answer="a=b")) == Answer(question_id="q", option=OptionKind.ANSWER, text="a=b")


def test_a_choice_is_taken_with_its_comment() -> None:
    form = question_form(OPEN, OPEN.options)(decision="reject_once", comment="Not now.")
    assert form_answer(OPEN, form) == Answer(question_id="q", option=OptionKind.REJECT_ONCE, text="Not now.")


@pytest.mark.parametrize("words", ["", "age=7", "name=Ann age=old", "colour=red"])
def test_a_form_that_is_not_complete_is_refused(words: str) -> None:
    with pytest.raises(SessionError, match="The form is not complete"):
        form_answer(SIGN_IN, AnswerForm(answer=words))


def test_a_no_needs_no_form() -> None:
    assert given_answer(SIGN_IN, OptionKind.REJECT_ONCE, "") == Answer(question_id="q", option=OptionKind.REJECT_ONCE)
