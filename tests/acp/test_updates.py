"""What happens in a session, and what is asked in it, in the words of the protocol."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from acp import schema
from msgspec.structs import replace

from tests.acp.driving import checked
from tests.architecture.samples import members, samples
from treadle.acp.client_prompts import mention
from treadle.acp.client_questions import answer_of_choice, filled, form_of, put_question, question_message, words_of
from treadle.acp.diff_blocks import changed_places
from treadle.acp.shapes import ChosenOption, FormAnswer
from treadle.acp.updates import Updates
from treadle.present.prose import LONGEST_BLOCK
from treadle.protocol.attach import Stamped
from treadle.protocol.events import Answer
from treadle.protocol.messages import Message, Role, Text, ToolUse
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    MessageDone,
    Notification,
    QuestionAsked,
    QuestionClosed,
    ResultPresented,
    TextDelta,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import Flow, Outcome, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage
from treadle.workspace.files.diffs import compare

FORM = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
ELICITATION = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)


@pytest.mark.parametrize("record", members(Notification), ids=lambda record: record.__name__)
def test_every_notification_is_shown_as_the_schema_wants_it(record: type[Any]) -> None:
    updates = Updates("/w")
    for notification in samples(record):
        for update in updates.take(Stamped(notification=notification)):  # type: ignore[arg-type]
            checked(schema.SessionNotification, {"sessionId": "s", "update": json.loads(msgspec.json.encode(update))})


def shown_of(notifications: Iterable[Notification]) -> list[str]:
    """The texts of messages that a client is shown, one for each; without their ids they stand apart, too."""
    updates, messages, whole = Updates("/w"), dict[str, str](), ""
    for one in notifications:
        for update in updates.take(Stamped(notification=one)):
            plain = json.loads(msgspec.json.encode(update))
            if plain["sessionUpdate"] == "agent_message_chunk":
                text = plain["content"]["text"]
                messages[plain["messageId"]] = messages.get(plain["messageId"], "") + text
                whole += text
    shown = [text.strip() for text in messages.values()]
    assert whole.strip() == "\n\n".join(shown)
    return shown


def message(text: str) -> MessageDone:
    return MessageDone(step=1, message=Message(role=Role.ASSISTANT, content=(Text(text=text),)), usage=Usage())


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("said", "presented", "answer", "shown"),
    [
        (["Done"], "", "Done", ["Done"]),
        (["Half.", "The rest."], "", "Half.\n\nThe rest.", ["Half.", "The rest."]),
        (["I look."], "It is so.", "It is so.", ["I look.", "It is so."]),
        (["I look."], "It is so.", "It is so.\n\n$ ls\na", ["I look.", "It is so.\n\n$ ls\na"]),
    ],
)
def test_an_answer_is_shown_once_and_whole(
    said: list[str], presented: str, answer: str, shown: list[str], streams: bool
) -> None:
    outcome = TurnOutcome(stop=TurnStop.END_TURN, text=answer, completed=bool(presented))
    turn: list[Notification] = []
    for text in said:
        turn += [*(TextDelta(text=character) for character in (text if streams else "")), message(text)]
    turn += [*([ResultPresented(text=presented)] if presented else []), TurnEnded(outcome=outcome)]
    assert shown_of(turn) == shown


@pytest.mark.parametrize("streams", [True, False])
def test_code_that_is_longer_than_a_block_is_shown_as_it_was_written(streams: bool) -> None:
    text = "So:\n\n```python\n" + "x = 1\n" * (3 * LONGEST_BLOCK // 6) + "```\n\nThat is all."
    pieces = [TextDelta(text=text[at : at + 7]) for at in range(0, len(text), 7)] if streams else []
    assert shown_of([*pieces, message(text)]) == [text]


def test_a_question_and_its_answer_are_messages_unless_the_client_showed_them() -> None:
    question = Question(id="q", kind=QuestionKind.FOLLOWUP, text="Which?", options=(OptionKind.ANSWER,), call_id="c")
    call = ToolCall(id="c", name="ask", arguments={})
    changed = CallChanged(call=call, kind=ToolKind.OTHER, flow=Flow.ASK, status=CallStatus.PROPOSED)
    asked: list[Notification] = [
        changed,
        QuestionAsked(question=question),
        QuestionClosed(question_id="q", option=OptionKind.ANSWER, text="this"),
        replace(changed, status=CallStatus.FINISHED, result=result_text(Outcome.OK, "this")),
    ]

    def shown(updates: Updates) -> list[tuple[str, str]]:
        found = [update for one in asked for update in updates.take(Stamped(notification=one))]
        return [(one["sessionUpdate"], one["content"]["text"]) for one in found]

    assert shown(Updates("/w")) == [("agent_message_chunk", "Which?"), ("user_message_chunk", "this")]
    here, elsewhere = Updates("/w"), Updates("/w")
    here.asked, here.answered, elsewhere.asked = {"q"}, {"c"}, {"q"}
    assert shown(here) == []
    assert shown(elsewhere) == [("user_message_chunk", "this")]


@pytest.mark.parametrize(("status", "output"), [(3, "out"), (0, "out"), (3, "")])
def test_what_a_command_printed_is_shown_without_the_status_that_the_model_reads(status: int, output: str) -> None:
    outcome = Outcome.FAILED if status else Outcome.OK
    result = result_text(outcome, f"Exit status {status}.\n{output or '(no output)'}")
    call = ToolCall(id="c", name="execute_command", arguments={"command": "make"})
    ended = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.FINISHED, result=result)
    said = Message(role=Role.ASSISTANT, content=(ToolUse(id="c", name=call.name, arguments=call.arguments),))
    done = MessageDone(step=1, message=said, usage=Usage())
    (update,) = Updates("/w").past([Stamped(notification=ended), Stamped(notification=done)])
    texts = [one["content"]["text"] for one in json.loads(msgspec.json.encode(update)).get("content", [])]
    assert texts == [*([f"exit {status}"] if status else []), *(["```console\nout\n```"] if output else [])]


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
