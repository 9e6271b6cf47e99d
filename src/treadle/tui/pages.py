"""What the pager shows: the question that is open, or the whole session."""

from collections.abc import Callable

from treadle.tui.pager import Pager
from treadle.tui.question_lines import whole_question
from treadle.tui.questions import Questions
from treadle.tui.theme import Signs
from treadle.tui.view import View
from treadle.tui.whole import RecentWork


def question_pager(questions: Questions, view: Callable[[], View], signs: Signs) -> Pager:
    """Show what is asked about, whole."""
    asking = questions.dialog.asking
    assert asking is not None  # noqa: S101 - whoever asks for its whole has one

    def alert() -> str:
        now = questions.dialog.asking
        return "" if now is not None and now.question is asking.question else "The question is over."

    return Pager(lambda width: whole_question(asking, view().roots, width, signs), signs, alert=alert)


def session_pager(seen: RecentWork, view: Callable[[], View], signs: Signs) -> Pager:
    """Show whole what the scrollback shows folded, the last of it first."""

    def alert() -> str:
        return "Treadle needs an answer." if view().questions else ""

    calls = view().calls
    return Pager(lambda width: seen.rows(calls, width, signs), signs, at_end=True, alert=alert)
