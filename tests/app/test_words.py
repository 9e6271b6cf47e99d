import pytest
from msgspec.structs import replace

from treadle.engine.core.texts import denied, rejected
from treadle.present.failure_words import advice, describe_failure
from treadle.present.figures import changed_lines
from treadle.present.words import (
    call_name,
    clip_text,
    describe_call,
    ended,
    note_of,
    said_no,
    seen_from,
    span,
    tokens,
    what_came_of,
)
from treadle.protocol.models import ErrorKind, ModelError, money
from treadle.protocol.notifications import CallChanged, CallStatus, TurnOutcome, TurnStop
from treadle.protocol.permissions import Decision, Reason, Verdict
from treadle.protocol.tools import FileChange, Outcome, Preview, Risk, ToolCall, ToolKind, ToolSpec, result_text
from treadle.tools import declarations


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (4_230, "4.2k"), (200_000, "200k"), (999_600, "1M"), (1_250_000, "1.2M")],
)
def test_tokens_are_short(count: int, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("spent", "unpriced", "shown"),
    [
        (0.0, False, "$0.00"),
        (0.004, False, "<$0.01"),
        (0.01234, False, "$0.01"),
        (1_234.567, False, "$1,234.57"),
        (0.5, True, "over $0.50"),
        (0.001, True, "over $0.0010"),
    ],
)
def test_money_has_the_digits_that_matter(spent: float, unpriced: bool, shown: str) -> None:
    assert money(spent, unpriced=unpriced) == shown


def test_an_unknown_cost_is_no_zero() -> None:
    assert money(0.0, unpriced=True) == "cost unknown"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-1, "0 s"), (0.42, "0.4 s"), (59.9, "59 s"), (65, "1m 05s"), (7_260, "2h 01m")]
)
def test_spans_of_time_are_short(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_a_call_is_named_by_its_preview_or_by_its_first_words() -> None:
    call = ToolCall(id="c", name="run", arguments={"count": 3, "command": "ls\n-l\x1b"})
    changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.PROPOSED)
    judged = CallChanged(
        call=call, kind=ToolKind.EXECUTE, status=CallStatus.ASKING, preview=Preview(title="Run", text="ls -l")
    )
    assert describe_call(changed).text == r"run ls -l\x1b"
    assert describe_call(judged).text == "Run ls -l"
    edit = Preview(title="Edit a.py (+1 -2)", text="+x", is_diff=True)
    named = describe_call(CallChanged(call=call, kind=ToolKind.EDIT, status=CallStatus.ASKING, preview=edit))
    assert (named.verb, named.about, named.counted) == ("Edit", "a.py", "+1 -2")
    assert call_name(ToolCall(id="c", name="replace_in_file", arguments={"path": "a.py"})).text == "Edit a.py"
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** Add File: b.py\n+3\n*** End Patch\n"
    assert call_name(ToolCall(id="c", name="apply_patch", arguments={"patch": patch})).text == "Edit a.py, b.py"
    command = {"command": f"rm -rf x; apply_patch <<'EOF'\n{patch}EOF"}
    assert call_name(ToolCall(id="c", name="execute_command", arguments=command)).text.startswith(
        "Run rm -rf x; apply_"
    )


def test_long_texts_are_clipped_to_one_line() -> None:
    assert clip_text("a\n b  c", 10) == "a b c"
    assert clip_text("x" * 50, 10) == "xxxxxxxxx…"


def test_the_note_of_a_call_is_how_much_came_or_what_went_wrong() -> None:
    assert note_of(ToolKind.READ, result_text(Outcome.OK, "a\nb\n")) == "2 lines"
    assert note_of(ToolKind.EDIT, result_text(Outcome.OK, "saved")) == ""
    assert note_of(ToolKind.EDIT, result_text(Outcome.FAILED, "no way")) == "no way"
    assert note_of(ToolKind.EXECUTE, result_text(Outcome.FAILED, "Exit status 1.\nno")) == "exit 1"
    found = "a.py\n3: x\n4- y\n...\n9: x\n\nb.py\n1: x"
    assert note_of(ToolKind.SEARCH, result_text(Outcome.OK, found)) == "3 matches in 2 files"
    assert note_of(ToolKind.SEARCH, result_text(Outcome.OK, "a.py\n3: x")) == "1 match in 1 file"
    assert note_of(ToolKind.SEARCH, result_text(Outcome.OK, "[no match in src]")) == "no match"
    assert note_of(ToolKind.EDIT, result_text(Outcome.INTERRUPTED, "stopped")) == ""


def test_changed_files_are_summed_up_and_named_from_the_workspace() -> None:
    change = FileChange(path="/ws/a/b.py", before="", after="", added=2, removed=1)
    outcome = TurnOutcome(stop=TurnStop.END_TURN, changes=(change, change))
    assert changed_lines(outcome) == "at least 2 files +4 -2"
    assert changed_lines(replace(outcome, exact=True)) == "2 files +4 -2"
    assert seen_from("/ws", change).path == "a/b.py"
    assert seen_from("/w", change).path == "/ws/a/b.py"


def test_every_stop_and_error_has_its_words() -> None:
    helps = [advice(ModelError(kind=kind, message=""), "p/m") for kind in ErrorKind]
    failures = [describe_failure(ModelError(kind=kind, message=""), "p/m") for kind in ErrorKind]
    said = [*map(ended, TurnStop), *helps, *failures]
    assert all(said)
    assert (
        advice(ModelError(kind=ErrorKind.BAD_REQUEST, message="", fix="Name the CA file."), "p/m")
        == "Name the CA file."
    )


@pytest.mark.parametrize("comment", ["", "use tabs", "no.\n\nThe user rejected this call and said: x"])
def test_a_no_is_told_in_the_persons_own_words(comment: str) -> None:
    result = result_text(Outcome.REJECTED, rejected(comment))
    assert said_no(result) == comment
    assert note_of(ToolKind.EDIT, result) == " ".join(comment.split())


@pytest.mark.parametrize(
    ("verdict", "note"),
    [
        (Verdict.DENY, "deletes all"),
        (Verdict.REQUIRE_USER_CONFIRMATION, "deletes all; nobody was there to say yes"),
    ],
)
def test_a_denial_is_told_without_what_the_model_is_to_do(verdict: Verdict, note: str) -> None:
    decision = Decision(verdict=verdict, risk=Risk.CRITICAL, reasons=(Reason(rule="x", text="deletes all."),))
    result = result_text(Outcome.DENIED, denied(decision, no_user=verdict is not Verdict.DENY))
    assert note_of(ToolKind.EXECUTE, result, decision) == note
    assert note_of(ToolKind.EXECUTE, result) == ""
    call = ToolCall(id="c", name="execute_command", arguments={})
    changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.FINISHED, decision=decision)
    assert what_came_of(changed, result) == "denied"


def test_every_tool_is_called_by_words() -> None:
    tools = [value for value in vars(declarations).values() if isinstance(value, ToolSpec)]
    assert len(tools) > 15
    for tool in tools:
        said = call_name(ToolCall(id="c", name=tool.name, arguments={})).text
        assert "_" not in said, said
        assert said[:1].isupper(), said
