"""What happens in a session, and what is asked in it, in the words of the protocol."""

import json
from typing import Any

import msgspec
import pytest
from acp import schema

from tests.acp.driving import checked
from tests.architecture.samples import members, samples
from treadle.acp.asking import answer_of_choice, filled, form_of, put_question, question_message, words_of
from treadle.acp.diff_blocks import changed_places
from treadle.acp.prompts import mention
from treadle.acp.shapes import ChosenOption, FormAnswer
from treadle.acp.updates import Updates
from treadle.protocol.events import Answer
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.notifications import MessageDone, Notification, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.usage import Usage
from treadle.workspace.diffs import compare

FORM = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
ELICITATION = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)


@pytest.mark.parametrize("record", members(Notification), ids=lambda record: record.__name__)
def test_every_notification_is_shown_as_the_schema_wants_it(record: type[Any]) -> None:
    updates = Updates("/w")
    for notification in samples(record):
        for update in updates.of(notification):  # type: ignore[arg-type]
            checked(schema.SessionNotification, {"sessionId": "s", "update": json.loads(msgspec.json.encode(update))})


def said_of(*told: str, answer: str) -> list[str]:
    """What a client is shown of a turn with these messages and this answer, a text for each message."""
    updates = Updates("/w")
    messages = [
        MessageDone(step=n, message=Message(role=Role.ASSISTANT, content=(Text(text=text),)), usage=Usage())
        for n, text in enumerate(told)
    ]
    ended = TurnEnded(outcome=TurnOutcome(stop=TurnStop.END_TURN, text=answer))
    turn: list[Notification] = [*messages, ended]
    shown = [update for one in turn for update in updates.of(one)]
    return [json.loads(msgspec.json.encode(update))["content"]["text"].strip() for update in shown]


@pytest.mark.parametrize(
    ("told", "answer", "rest"),
    [
        (["Done"], "Done", []),
        (["The test fails", "The test fails because of a typo."], "The test fails because of a typo.", []),
        (["Half.", "The rest."], "Half.\n\nThe rest.", []),
        (["The rest."], "The rest.\n\nAnd more.", ["And more."]),
        (["OK"], "The TOKEN is there.", ["The TOKEN is there."]),
    ],
)
def test_an_answer_is_shown_once_and_whole(told: list[str], answer: str, rest: list[str]) -> None:
    assert said_of(*told, answer=answer) == [*told, *rest]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a\nb\n"),
        ("a\n", ""),
        ("a\n-- b\n++ c\nd", "a\n-- B\n++ C\nd"),
        ("x\n" * 20 + "a\n" + "x\n" * 20, "y\n" + "x\n" * 20 + "b\n" + "x\n" * 19),
        ("no end", "no end\n"),
        ("end\n", "end"),
    ],
)
def test_a_diff_becomes_the_texts_that_it_is_of(before: str, after: str) -> None:
    places = changed_places(compare(before, after).unified("f.txt"), "/w")
    assert {place.path for place in places} == {"/w/f.txt"}
    rebuilt = before
    for place in places:
        assert (place.old or "") in rebuilt
        rebuilt = rebuilt.replace(place.old, place.new, 1) if place.old else place.new
    assert rebuilt == after


def test_the_form_of_a_running_call_is_filled_in_by_a_form_or_in_words() -> None:
    question = Question(id="q", kind=QuestionKind.ELICITATION, text="Who?", options=ELICITATION, call_id="c", form=FORM)
    yes = Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"name": "Ada"})
    no = Answer(question_id="q", option=OptionKind.REJECT_ONCE)
    assert form_of(question) == FORM
    assert filled(question, FormAnswer(action="accept", content={"name": "Ada"})) == yes
    assert filled(question, FormAnswer(action="decline")) == filled(question, FormAnswer(action="cancel")) == no
    assert put_question(question, ("/w",), Mode.ASK) is None
    assert question_message(question).startswith("Who?\n\nname (string)\n\nage (integer, optional)")
    assert words_of(question, "name=Ada") == yes
    assert words_of(question, "No") == no
    assert words_of(question, "age=3") == "Missing: name."


def test_an_address_that_a_running_call_wants_opened_is_a_choice() -> None:
    question = Question(
        id="q", kind=QuestionKind.ELICITATION, text="Sign in", options=ELICITATION, url="https://a.test"
    )
    put = put_question(question, ("/w",), Mode.ASK)
    assert put is not None
    assert [choice.name for choice in put.choices] == ["Yes, I have opened it", "No"]
    assert "https://a.test" in json.dumps(put.call.content)


def test_a_lasting_yes_says_for_how_long_it_holds() -> None:
    kinds = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)
    question = Question(id="q", kind=QuestionKind.PERMISSION, text="Run", options=kinds, call_id="c")

    def answered(option: str) -> Answer | None:
        return answer_of_choice(question, ChosenOption(outcome="selected", option_id=option))

    assert answered("allow_always") == Answer(question_id="q", option=OptionKind.ALLOW_ALWAYS)
    everywhere = Answer(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.USER)
    assert answered("allow_always:user") == everywhere
    no = Answer(question_id="q", option=OptionKind.REJECT_ONCE)
    assert answered("run_for_real") == answered("allow_everything") == answered("") == no


@pytest.mark.parametrize(
    ("uri", "written"),
    [
        ("file:///w/a.txt", "@/w/a.txt"),
        ("file:///w/a%20b.txt#L3:9", '@"/w/a b.txt":3-9'),
        ("/w/a.txt#L3-L9", "@/w/a.txt:3-9"),
        ("https://a.test/x#L3", "https://a.test/x#L3"),
        ("file://[", "file://["),
    ],
)
def test_a_link_becomes_a_mention(uri: str, written: str) -> None:
    assert mention(uri, uri).strip() == written
