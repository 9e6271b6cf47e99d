"""How the person learns that Treadle waits or is done while they look elsewhere: the bell and the window's title."""

import os

from treadle.present.view import SessionView
from treadle.protocol.notifications import QuestionAsked, TurnEnded
from treadle.tui.paint.hyperlinks import supports_links
from treadle.tui.paint.program_status import program_status
from treadle.tui.screen import Screen

_BELL_AFTER = 10.0
"""Seconds that a turn takes after which its end is rung for where it is not known who looks."""


def call_for_attention(
    screen: Screen, notification: QuestionAsked | TurnEnded, before: SessionView, now: float
) -> None:
    """Ring, unless the person looks at this terminal; where that is not known, only after a long turn."""
    long = before.started is not None and now - before.started > _BELL_AFTER
    looked_at = screen.signals.looked_at
    if looked_at is False or (looked_at is None and long):
        screen.signals.bell("Treadle needs an answer" if isinstance(notification, QuestionAsked) else "Treadle is done")


def show_state(screen: Screen, view: SessionView, turns: int, workspace: str) -> None:
    """Say outside of the window's text what the session waits for; `turns` are those that have ended.

    What a terminal may not know it gets only where it is known to pass over such sequences.
    """
    report = program_status(view, turns) if supports_links(os.environ) else ""
    screen.signals.set_title(_title(view, turns, workspace), report)


def _title(view: SessionView, turns: int, workspace: str) -> str:
    state = "needs an answer" if view.questions else "" if view.active or not turns else "done"
    return f"{'⚠ ' if view.questions else ''}Treadle: {state or workspace}"
