"""What the pager shows: the question that is open, or the whole session."""

from collections.abc import Sequence

from treadle.tui.paint.pager import Pager
from treadle.tui.paint.pager_rows import whole_rows
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Signs
from treadle.tui.question.question_lines import whole_question
from treadle.tui.question.question_queue import Questions


def question_pager(questions: Questions, roots: Sequence[str], signs: Signs) -> Pager:
    """Show what is asked about, whole."""
    asking = questions.dialog.asking
    assert asking is not None  # noqa: S101 - whoever asks for its whole has one

    def alert() -> str:
        now = questions.dialog.asking
        return "" if now is not None and now.question is asking.question else "The question is over."

    return Pager(lambda width: whole_question(asking, roots, width, signs), signs, alert=alert)


def session_pager(scrollback: Scrollback, here: str, signs: Signs) -> Pager:
    """Show whole what the scrollback shows folded, the last of it first."""

    def alert() -> str:
        return "Treadle needs an answer." if scrollback.view.questions else ""

    newest, view = list(scrollback.newest), scrollback.view
    return Pager(lambda width: whole_rows(newest, view, here, width, signs), signs, at_end=True, alert=alert)
