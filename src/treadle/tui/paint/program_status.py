"""What the terminal is told of the state of the program (OSC 7501): idle, working, blocked, done or failed."""

from treadle.present.failure_words import is_failure
from treadle.present.view import SessionView
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import QuestionKind

NO_STATUS = "\x1b]7501;state=clear\x1b\\"
"""Takes back what was reported."""


def program_status(view: SessionView, turns: int) -> str:
    """Report what a session does; `turns` are those that have ended here. It holds no text of the session."""
    if view.questions:
        kind = "permission" if view.questions[0].kind is QuestionKind.PERMISSION else "question"
        state = f"blocked:kind={kind}"
    elif view.works:
        state = "working"
    elif not turns or view.stop is None:
        state = "idle"
    elif is_failure(view.stop):
        state = "error"
    else:
        state = "done" if view.stop == TurnStop.END_TURN else "idle"
    return f"\x1b]7501;state={state}:app=treadle\x1b\\"
