import pytest
from msgspec.structs import replace

from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import Phase, QueuedPrompt
from treadle.tui.bars import clock_runs, panel, rows_of, toolbar
from treadle.tui.view import Retry, Spending, View

WORKING = View(
    phase=Phase.EXECUTING_TOOL,
    model="p/m",
    tokens=1_500,
    window=10_000,
    busy=True,
    started=100.0,
    spending=Spending(ended=0.25),
    queue=(QueuedPrompt(id="q", content=(Text(text="later\nthis"),)),),
)


def plain(fragments: object) -> str:
    assert isinstance(fragments, list)
    return "".join(fragment[1] for fragment in fragments)


def test_the_bar_shows_mode_state_queue_model_context_and_cost() -> None:
    shown = plain(toolbar(WORKING, 165.0, 120))
    assert shown == "ask · running 1m 05s · 1 queued · p/m · 1.5k of 10.0k (15 %) · $0.2500 · /help"


def test_what_does_not_fit_is_left_out() -> None:
    for columns in range(10, 90):
        assert len(plain(toolbar(WORKING, 165.0, columns))) < columns


def test_the_panel_counts_down_and_lists_what_waits() -> None:
    retry = Retry(error=ModelError(kind=ErrorKind.SERVER, message="x"), at=105.0)
    view = replace(WORKING, retry=retry)
    assert plain(panel(view, 101.2, "A hint.")) == ("Trying again in 4s. Esc stops.\n  waits 1: later this\nA hint.")
    assert panel(View(), 0.0, "") == []


def test_rows_are_counted_as_they_are_wrapped() -> None:
    assert rows_of([], 10) == 0
    assert rows_of([("", "short\n日本日本日本")], 10) == 3


@pytest.mark.parametrize("phase", [Phase.WAITING_FOR_EVENT, Phase.AWAITING_USER_CONFIRMATION])
def test_no_clock_runs_while_a_person_is_awaited(phase: Phase) -> None:
    assert clock_runs(WORKING)
    assert not clock_runs(replace(WORKING, phase=phase))
