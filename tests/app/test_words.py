import pytest

from treadle.app.presentation.words import (
    advice,
    changed_lines,
    clip,
    doing,
    ended,
    money,
    note_of,
    seen_from,
    span,
    title_of,
    tokens,
)
from treadle.protocol.models import ErrorKind
from treadle.protocol.notifications import CallChanged, CallStatus, Phase, TurnStop
from treadle.protocol.tools import FileChange, Outcome, Preview, ToolCall, ToolKind, result_text


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0"), (999, "999"), (1_000, "1.0k"), (999_949, "999.9k"), (1_250_000, "1.2M")]
)
def test_tokens_are_short(count: int, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("spent", "unpriced", "shown"),
    [(0.0, False, "$0.0000"), (0.01234, False, "$0.0123"), (12.345, False, "$12.35"), (0.5, True, "over $0.5000")],
)
def test_money_has_the_digits_that_matter(spent: float, unpriced: bool, shown: str) -> None:
    assert money(spent, unpriced=unpriced) == shown


def test_an_unknown_cost_is_no_zero() -> None:
    assert money(0.0, unpriced=True) == "cost unknown"


@pytest.mark.parametrize(("seconds", "shown"), [(-1, "0s"), (59.9, "59s"), (65, "1m 05s"), (7_260, "2h 01m")])
def test_spans_of_time_are_short(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_a_call_is_named_by_its_preview_or_by_its_first_words() -> None:
    call = ToolCall(id="c", name="run", arguments={"count": 3, "command": "ls\n-l\x1b"})
    changed = CallChanged(call=call, kind=ToolKind.EXECUTE, status=CallStatus.PROPOSED)
    judged = CallChanged(
        call=call, kind=ToolKind.EXECUTE, status=CallStatus.ASKING, preview=Preview(title="Run", text="ls -l")
    )
    assert title_of(changed) == r"run ls -l\x1b"
    assert title_of(judged) == "Run ls -l"


def test_long_texts_are_clipped_to_one_line() -> None:
    assert clip("a\n b  c", 10) == "a b c"
    assert clip("x" * 50, 10) == "xxxxxxxxx…"


def test_the_note_of_a_call_is_how_much_came_or_what_went_wrong() -> None:
    assert note_of(ToolKind.READ, result_text(Outcome.OK, "a\nb\n")) == "2 lines"
    assert note_of(ToolKind.EDIT, result_text(Outcome.OK, "saved")) == ""
    assert note_of(ToolKind.EDIT, result_text(Outcome.FAILED, "no way")) == "no way"
    assert note_of(ToolKind.EXECUTE, result_text(Outcome.FAILED, "Exit status 1.\nno")) == "Exit status 1."
    assert note_of(ToolKind.EDIT, result_text(Outcome.INTERRUPTED, "stopped")) == ""


def test_changed_files_are_summed_up_and_named_from_the_workspace() -> None:
    change = FileChange(path="/ws/a/b.py", before="", after="", added=2, removed=1)
    assert changed_lines((change, change)) == "2 files +4 -2"
    assert seen_from("/ws", change).path == "a/b.py"
    assert seen_from("/w", change).path == "/ws/a/b.py"


def test_every_phase_stop_and_error_has_its_words() -> None:
    said = [*map(doing, Phase), *map(ended, TurnStop), *map(advice, ErrorKind)]
    assert all(said)
