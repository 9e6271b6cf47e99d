"""What is asked for a subagent says whose it is, and says nothing twice."""

import pytest
from msgspec.structs import replace

from treadle.present.question_words import asked_in_words, in_short
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import WritePath

KEPT = ("Not applied with it, and kept in the copy:", "- a.txt: it changed meanwhile")


def asked(kind: QuestionKind, *lines: str, call: str = "") -> Question:
    access = (WritePath(path="/p/a.txt", before="", after="x"),) if kind is QuestionKind.PERMISSION else ()
    return Question(
        id="q", kind=kind, text="\n".join(lines), accesses=access, child="s", agent="worker", child_call=call
    )


@pytest.mark.parametrize("kind", [QuestionKind.BUDGET, QuestionKind.GUIDANCE, QuestionKind.FOLLOWUP])
@pytest.mark.parametrize("lines", [(), ("The budget is used up.",), ("The budget is used up.", "Raise it?")])
def test_a_question_about_no_call_has_its_text_once(kind: QuestionKind, lines: tuple[str, ...]) -> None:
    words = asked_in_words(asked(kind, *lines), ("/p",))
    assert (words.title, words.text) == ("".join(lines[:1]), "".join(lines[1:]))
    assert words.why == ("From a subagent: worker.",)


def test_changes_that_come_in_are_named_and_what_stays_out_is_beside_them() -> None:
    question = asked(QuestionKind.PERMISSION, "Apply what the subagent worker changed?", *KEPT)
    words = asked_in_words(question, ("/p",))
    assert (words.title, words.why) == ("Apply what the subagent worker changed?", ("From a subagent: worker.", *KEPT))
    assert in_short(question) == "apply what the subagent worker changed"


def test_a_call_of_a_subagent_is_what_is_asked_about() -> None:
    question = asked(QuestionKind.PERMISSION, "Create a.txt", call="c")
    assert asked_in_words(question, ("/p",)).title == "Create a.txt?"
    assert in_short(question) == "create a.txt"


def test_of_subagents_of_one_agent_the_question_says_which_one_asks() -> None:
    question = replace(asked(QuestionKind.PERMISSION, "Create a.txt", call="c"), task=f"Port\n{'the options ' * 9}")
    assert asked_in_words(question, ("/p",)).why[0] == (
        "From a subagent: worker, “Port the options the options the options the options the op…”."
    )
