"""What is read of calls and messages afterwards: the words of a person, and nothing that only the model reads."""

import pytest

from treadle.app.reports.session_text import record_lines
from treadle.engine.core.copy_fate import with_remark
from treadle.engine.core.texts import amended
from treadle.present.items import CallItem
from treadle.present.prose import LONGEST_BLOCK
from treadle.present.record_words import call_record, recorded
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import OWN_COMMAND, Message, Role, Text
from treadle.protocol.notifications import CallChanged, CallStatus, MessageDone, Notification, PromptDelivered
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolCall, ToolKind, result_text
from treadle.protocol.usage import Usage


def text_of(*notifications: Notification) -> str:
    return "\n".join(record_lines(*recorded([Stamped(notification=one) for one in notifications], SessionView())))


def ended(result: CallResult, kind: ToolKind = ToolKind.EXECUTE, preview: str = "make") -> CallItem:
    call = ToolCall(id="c", name="a_tool", arguments={})
    shown = Preview(title="Run", text=preview)
    return CallItem(CallChanged(call=call, kind=kind, status=CallStatus.FINISHED, result=result, preview=shown))


def test_an_output_is_without_what_the_model_reads_before_it_and_with_what_the_session_says_after_it() -> None:
    printed = result_text(Outcome.FAILED, "Exit status 3.\nout\n")
    changed = CallResult(outcome=Outcome.FAILED, content=(Text(text=amended({"command": "make"})), *printed.content))
    record = call_record(ended(with_remark(changed, "[It ran in a throw-away copy.]")))
    assert record.output == "out\n[It ran in a throw-away copy.]"
    assert record.facts == "a_tool: not checked, failed, exit 3"
    assert (record.title, record.asked) == ("Run", "make")


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.REJECTED, Outcome.SKIPPED])
def test_what_did_not_run_has_no_output(outcome: Outcome) -> None:
    assert call_record(ended(with_remark(result_text(outcome, "Find another way."), "[And say so.]"))).output == ""


def test_why_an_edit_failed_is_said_once_and_whole() -> None:
    short, long = "It is not there.", f"It is not there.{' Look again.' * 40}"
    assert call_record(ended(result_text(Outcome.FAILED, short), ToolKind.EDIT)).output == ""
    record = call_record(ended(result_text(Outcome.FAILED, long), ToolKind.EDIT))
    assert (record.output, record.facts) == (long, "a_tool: not checked, failed")


def test_a_refusal_that_was_shown_before_the_call_is_said_once() -> None:
    for why in ("Nothing needs to change.", f"Refused [no_change]: nothing was changed.{' Go on.' * 60}"):
        record = call_record(ended(result_text(Outcome.FAILED, f"{why}\n"), ToolKind.EDIT, preview=why))
        assert f"{record.facts}\n{record.asked}\n{record.output}".count(why) == 1


def test_code_that_is_longer_than_a_block_is_one_block() -> None:
    text = "So:\n\n```python\n" + "x = 1\n" * (3 * LONGEST_BLOCK // 6) + "```\n\nThat is all."
    said = Message(role=Role.ASSISTANT, content=(Text(text=text),))
    assert text_of(MessageDone(step=1, message=said, usage=Usage())) == f"\n## Treadle\n\n{text}"


def test_commands_that_the_user_ran_stand_with_the_message_that_they_went_along_with() -> None:
    content = (Text(text=f"{OWN_COMMAND}$ ls\na.txt"), Text(text="What is it?"))
    assert text_of(PromptDelivered(prompt_id="p", content=content)) == (
        "\n## User\n\nWhat is it?\n\nRan, and sent along:\n\n```\n$ ls\na.txt\n```"
    )
