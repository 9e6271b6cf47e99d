"""What a person reads of a call: what it printed, and nothing that is meant for the model alone."""

import pytest
from msgspec.structs import replace

from treadle.engine.core import copy_fate, texts
from treadle.engine.core.copy_fate import with_remark
from treadle.engine.ports import HookWord
from treadle.engine.runtime.hooked import BeforeCall, with_hooks_words
from treadle.present.call_words import answer_words, answered_elsewhere, end_of, said_of
from treadle.present.fold import fold_notification
from treadle.present.item_lines import ProgressLines, note_line
from treadle.present.items import Answered, CallItem
from treadle.present.view import SessionView
from treadle.present.words import ANSWERS, note_of, output_of
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Text, text_of
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, QuestionClosed
from treadle.protocol.permissions import AllowScope, OptionKind, Question, QuestionKind
from treadle.protocol.tools import (
    CallResult,
    ChangeKind,
    CopyChange,
    CopyChanges,
    CopyFate,
    Outcome,
    ToolCall,
    ToolKind,
    result_text,
)
from treadle.workspace.untrusted import mark_untrusted

REFUSAL = mark_untrusted("bad thing\nmore", "MCP server s")
OK, FAILED, INTERRUPTED = Outcome.OK, Outcome.FAILED, Outcome.INTERRUPTED


@pytest.mark.parametrize(
    ("outcome", "text", "note", "output"),
    [
        (OK, "Exit status 0.\na\n[1, 2]", "", "a\n[1, 2]"),
        (OK, "Exit status 0.\n(no output)", "", ""),
        (OK, "what another tool prints", "", "what another tool prints"),
        (OK, "Command 3 continues in the background. Use read_command_output to see more of it.\nup", "", "up"),
        (FAILED, "Exit status 3.\nno such file", "exit 3", "no such file"),
        (FAILED, "Stopped after 2 s. Use background.\nhalf", "Stopped after 2 s. Use background.", "half"),
        (INTERRUPTED, f"{texts.INTERRUPTED} Its output so far:\nhalf", "", "half"),
        (INTERRUPTED, texts.NOT_STARTED, "", ""),
        (Outcome.DENIED, "for the model", "", ""),
        (Outcome.SKIPPED, "for the model", "", ""),
    ],
)
def test_a_command_shows_what_it_printed(outcome: Outcome, text: str, note: str, output: str) -> None:
    result = result_text(outcome, text)
    assert (note_of(ToolKind.EXECUTE, result), output_of(ToolKind.EXECUTE, result)) == (note, output)


def changed_by_hook(result: CallResult) -> CallResult:
    return with_hooks_words(result, BeforeCall(changed={"command": "ls"}), HookWord())


@pytest.mark.parametrize("remark", [texts.RIGHT_REFUSED, copy_fate.KEEP_UNKNOWN])
def test_what_the_session_says_to_the_model_of_a_result_is_not_shown(remark: str) -> None:
    result = with_remark(result_text(FAILED, "Exit status 3.\nout"), remark)
    amended = Text(text=texts.amended({"command": "ls"}))
    changed = CallResult(outcome=FAILED, content=(amended, *result.content))
    hooked = changed_by_hook(result)
    assert '{"command":"ls"}\nExit status 3.\nout' in text_of(hooked.content)
    both = CallResult(outcome=FAILED, content=(amended, *hooked.content))
    for one in (result, changed, hooked, both):
        assert note_of(ToolKind.EXECUTE, one) == "exit 3"
        assert output_of(ToolKind.EXECUTE, one) == "out"


def test_the_line_of_a_call_says_that_a_hook_changed_it_and_how_it_failed() -> None:
    result = result_text(FAILED, "Exit status 1.\nfatal: no remote")
    changed = CallChanged(
        call=ToolCall(id="c", name="execute_command", arguments={"command": "ls"}),
        kind=ToolKind.EXECUTE,
        status=CallStatus.FINISHED,
        result=changed_by_hook(result),
    )
    assert end_of(CallItem(changed=changed), "") == "exit 1, changed by a hook"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"The MCP server s refused:\n{REFUSAL}\nContinue.", "The MCP server s refused: bad thing"),
        (mark_untrusted("No such issue.", "MCP server s"), "No such issue."),
        ("It failed:", "It failed:"),
        ("It failed:\n\n  disk full  \nmore", "It failed: disk full"),
        ("One.\nTwo.", "One."),
        ("", ""),
    ],
)
def test_the_note_of_a_failed_call_has_the_reason_that_its_first_line_announces(text: str, note: str) -> None:
    assert note_of(ToolKind.OTHER, result_text(FAILED, text)) == note


def test_a_long_reason_is_shown_whole_below() -> None:
    text = f"{'why ' * 100}\nmore"
    assert output_of(ToolKind.EXECUTE, result_text(FAILED, text)) == text


@pytest.mark.parametrize(
    ("here", "by", "where"),
    [
        ("web", "web:phone", ""),
        ("web", "tui:main", " in the first terminal"),
        ("tui:main", "tui:main", ""),
        ("tui:main", "tui:terminal 2", " in terminal 2"),
        ("tui:terminal 2", "tui:main", " in the first terminal"),
        ("tui:main", "mcp:cursor", ", answered by cursor over MCP"),
        ("tui:main", "", ""),
    ],
)
def test_it_is_said_where_somebody_answered_unless_that_is_here(here: str, by: str, where: str) -> None:
    call = ToolCall(id="c", name="run", arguments={})
    changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.RUNNING)
    item = CallItem(changed, asked=True, answers=(Answered(OptionKind.ALLOW_ONCE, by=by),))
    assert said_of(item, here) == f"you allowed it{where}"


@pytest.mark.parametrize(
    ("option", "scope", "by", "said"),
    [
        ("allow_once", "session", "web:Pixel 8", "Answered on Pixel 8: allowed once."),
        (
            "allow_always",
            "session",
            "web:Chrome on Linux 6",
            "Answered in Chrome on Linux 6: allowed for this session.",
        ),
        ("allow_always", "user", "web:browser 1", "Answered in browser 1: allowed from now on."),
        ("reject_once", "session", "tui:main", "Answered in the first terminal: rejected."),
        ("reject_always", "session", "tui:terminal 2", "Answered in terminal 2: always rejected."),
        ("run_for_real", "session", "mcp:cursor", "Answered by cursor over MCP: run it for real."),
        ("allow_once", "session", "acp:1", ""),
    ],
)
def test_a_call_that_was_answered_elsewhere_says_where_and_what(option: str, scope: str, by: str, said: str) -> None:
    asked = Question(id="q", kind=QuestionKind.PERMISSION, text="Run it?")
    closed = QuestionClosed(question_id="q", option=OptionKind(option), scope=AllowScope(scope), by=by)
    assert answered_elsewhere(asked, closed, "acp:1") == said
    for other in (Question(id="q", kind=QuestionKind.BUDGET, text="More?"), replace(asked, copy=CopyChanges())):
        assert answer_words(other, closed) == ANSWERS[OptionKind(option)]


@pytest.mark.parametrize(
    ("changes", "fate", "lines"),
    [
        (("n1",), CopyFate.DISCARDED, ["> Run ls", "! Run ls: its changes were discarded"]),
        (("n1",), CopyFate.NOT_APPLIED, ["> Run ls", "! Run ls: its changes could not be applied"]),
        (("n1",), CopyFate.KEPT, ["> Run ls"]),
        ((), CopyFate.DISCARDED, ["> Run ls"]),
    ],
)
def test_progress_says_of_a_command_whose_changes_are_lost_that_they_are(
    changes: tuple[str, ...], fate: CopyFate, lines: list[str]
) -> None:
    made = tuple(CopyChange(path=f"/w/{name}", kind=ChangeKind.ADDED) for name in changes)
    result = CallResult(outcome=OK, content=(), copy=CopyChanges(changes=made, fate=fate))
    call = ToolCall(id="c", name="execute_command", arguments={"command": "ls"})
    progress, said = ProgressLines("headless"), []
    for status, came in ((CallStatus.RUNNING, None), (CallStatus.FINISHED, result)):
        changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=status, result=came)
        said += [line.signed for line in progress.take(Stamped(notification=changed))]
    assert said == lines


@pytest.mark.parametrize(
    ("asked", "closed", "line"),
    [
        (
            Question(id="q", kind=QuestionKind.PERMISSION, text="Edit a.py (+1 -1)", child="s1", child_call="c"),
            QuestionClosed(question_id="q", option=OptionKind.ALLOW_ALWAYS, scope=AllowScope.SESSION),
            "Subagent: Edit a.py? Allowed for this session.",
        ),
        (
            Question(id="q", kind=QuestionKind.PERMISSION, text="Apply it?\nnotes.md stays.", child="s1", agent="w"),
            QuestionClosed(question_id="q", option=OptionKind.REJECT_ONCE, text="Not  now.", by="web:Pixel 8"),
            "Apply it? Rejected on Pixel 8: Not now.",
        ),
        (
            Question(id="q", kind=QuestionKind.BUDGET, text="Go on?"),
            QuestionClosed(question_id="q", option=OptionKind.ALLOW_ONCE),
            "Go on? Answered: yes.",
        ),
    ],
)
def test_a_permission_that_no_call_shows_is_a_sentence_once_it_is_answered(
    asked: Question, closed: QuestionClosed, line: str
) -> None:
    view, _ = fold_notification(SessionView(), Stamped(notification=QuestionAsked(question=asked)))
    _, (placed,) = fold_notification(view, Stamped(notification=closed))
    assert placed.item is not None
    assert note_line(placed.item) == line
