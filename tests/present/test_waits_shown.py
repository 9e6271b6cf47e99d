"""A wait for a provider's limit, as the terminal, the list of what happened and `treadle -p` show it."""

import time

import pytest
from msgspec.structs import replace

from treadle.present.failure_words import advice, provider_of
from treadle.present.fold import fold_notification
from treadle.present.item_lines import note_line
from treadle.present.items import RetryItem
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import Notification, Phase, PhaseChanged, RetryScheduled, TurnStarted
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.theme import Signs
from treadle.tui.session.bottom import BottomState, above_rule

START = 1_800_000_000
LIMITED = ModelError(kind=ErrorKind.RATE_LIMIT, message="No more.", status=429, retry_after=7_800.0)
PACED = replace(LIMITED, status=None, retry_after=20.0, paced=True)
WAIT = RetryScheduled(attempt=1, seconds=7_800.0, error=LIMITED, until=(START + 7_800) * 1000)


def waiting(retry: RetryScheduled) -> SessionView:
    view = SessionView(model="anthropic@work/claude-opus-5-5")
    for one in (TurnStarted(turn=1), retry, PhaseChanged(phase=Phase.WAITING_TO_RETRY)):
        told: Notification = one
        view, _ = fold_notification(view, Stamped(notification=told, at=START * 1000))
    return view


@pytest.mark.parametrize(
    ("retry", "words"),
    [
        (WAIT, "Waiting until the limit of Anthropic, work resets. Continuing in 2h 09m"),
        (
            RetryScheduled(attempt=0, seconds=80.0, error=PACED),
            "Waiting, as the limit of Anthropic, work is used up for now. Continuing in 20 s",
        ),
        (
            RetryScheduled(attempt=2, seconds=80.0, error=LIMITED, most=6),
            "Anthropic, work takes no more requests for now (429). Retrying in 20 s (2 of 6)",
        ),
    ],
)
def test_the_terminal_counts_down(retry: RetryScheduled, words: str) -> None:
    shown = line_text(above_rule(waiting(retry), BottomState(now=START + 60.0), 120, Signs())[0])
    assert words in shown
    assert "esc to stop" in shown


def test_a_script_reads_one_line_with_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    item = RetryItem(LIMITED, 1, 7_800.0, until=WAIT.until)
    assert note_line(item) == (
        "rate_limit: No more. (HTTP 429) Waiting until the limit resets: 2027-01-15 10:10, in 2h 10m."
    )
    assert note_line(RetryItem(PACED, 0, 20.0)) == "rate_limit: No more. Waiting 20 s for that."
    monkeypatch.undo()
    time.tzset()


def test_the_error_says_when_the_limit_resets_and_how_to_wait() -> None:
    model = "anthropic/claude-opus-5-5"
    assert advice(LIMITED, model).startswith("The limit resets in 2h 10m.")
    assert "wait_for_reset = true" in advice(LIMITED, model)
    assert "resets" not in advice(replace(LIMITED, retry_after=5.0), model)


def test_a_provider_is_named_with_its_profile() -> None:
    assert [provider_of(ref) for ref in ("anthropic/x", "anthropic@work/x", "mine@work/x")] == [
        "Anthropic",
        "Anthropic, work",
        "mine@work",
    ]
