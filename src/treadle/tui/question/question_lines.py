"""A question as lines for the bottom of the screen, or for the whole of it where that is too low for all of them."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.present.question_words import in_short
from treadle.tui.paint.diff_rows import diff_lines, is_folded
from treadle.tui.paint.lines import Line, cells, clip, line
from treadle.tui.paint.theme import Signs
from treadle.tui.question.answer_lines import choice_rows, field_begin, hint_rows, long_choices
from treadle.tui.question.asked import Asking
from treadle.tui.question.asked_about import about_of, clipped, details_of, diff_of, question_text
from treadle.tui.question.dialog import Dialog
from treadle.tui.question.low_window import QuestionRows, low_rows

_NARROW = 60
_LEAST_TEXT = 4
_USUAL_TEXT = 12
"""Rows of what a question is about, before the middle is left out; with the details open all that there is room for."""

_MORE_WORDS = 2
"""Further rows of a line of words that there is room for."""

_ROWS_APART = 3
"""A blank line and a rule above a question, and a blank line below it."""


def waiting_line(dialog: Dialog, width: int, signs: Signs) -> Line:
    """Show in one line that a question is open while keys go to the draft."""
    if dialog.asking is None:
        return ()
    question = dialog.asking.question
    role = "danger" if dialog.asking.danger else "warn"
    how = "   tab to answer" if width >= _NARROW else "  tab"
    begin = f"{signs.bar} Treadle needs an answer: " if width >= _NARROW else f"{signs.bar} Answer: "
    room = width - len(begin) - len(how) - 1
    about = clip(line(in_short(question).partition("\n")[0]), room, signs.more)
    return (*line((role, begin)), *about, ("", "?"), ("dim", how))


def question_lines(
    dialog: Dialog, roots: Sequence[str], *, width: int, rows: int, signs: Signs, screen: int | None = None
) -> QuestionRows:
    """Lay out the question that has the keys, in at most `rows` rows; where they are too few, alone in the `screen`'s.

    What they cannot hold is counted. Where there is room for that too, a rule and blank lines keep it apart from what
    is above and below.
    """
    asking = dialog.asking
    assert asking is not None  # noqa: S101 - whoever asks has one
    diff = diff_of(asking)
    laid = _question_rows(dialog, asking, roots, width=width, rows=rows, signs=signs)
    left = rows - _height(laid)
    if left < 0 or not _in_sight(diff, left, width, signs):
        return _alone(dialog, asking, roots, width=width, rows=rows if screen is None else screen, signs=signs)
    if left < _ROWS_APART or not _in_sight(diff, left - _ROWS_APART, width, signs):
        return laid
    head: list[Line] = [(), line(("dim", signs.rule * width))]
    if laid.field:
        return replace(laid, above=[*head, *laid.above], under=[*laid.under, ()])
    return replace(laid, above=[*head, *laid.above, ()])


def _height(laid: QuestionRows) -> int:
    return len(laid.above) + bool(laid.field) + len(laid.under)


def _in_sight(diff: str, left: int, width: int, signs: Signs) -> bool:
    """Whether the diff above a question is seen in the rows that are `left`, and the one that always stays."""
    return not diff or left + 1 >= _LEAST_TEXT or left + 1 >= len(diff_lines(diff, width, signs))


def _alone(
    dialog: Dialog, asking: Asking, roots: Sequence[str], *, width: int, rows: int, signs: Signs
) -> QuestionRows:
    """Lay the question out as all that is on the screen: whole where it fits, else the beginning of each part."""
    room = rows - (_MORE_WORDS if asking.field else 0)
    if not diff_of(asking):
        laid = _question_rows(dialog, asking, roots, width=width, rows=room, signs=signs)
        if _height(laid) <= room:
            return replace(laid, alone=True, words=rows - _height(laid) + 1)
    bar = _bar(asking, signs)
    inner = width - cells(bar)
    laid = low_rows(dialog, asking, about_of(asking, roots, inner), width=inner, rows=rows, signs=signs)
    field = (*bar, *laid.field) if laid.field else ()
    return replace(laid, above=_barred(bar, laid.above), field=field, under=_barred(bar, laid.under))


def _question_rows(
    dialog: Dialog, asking: Asking, roots: Sequence[str], *, width: int, rows: int, signs: Signs
) -> QuestionRows:
    bar = _bar(asking, signs)
    inner = width - cells(bar)
    below = choice_rows(asking, inner, signs)
    room = rows - len(below) - 1
    about = about_of(asking, roots, inner)
    details = details_of(asking, roots, inner)
    pager = (
        is_folded(diff_of(asking))
        or not about.fits(room - len(details), len(about.text))
        or bool(long_choices(asking, inner))
    )
    limit = max(_LEAST_TEXT, room - len(about.head) - len(about.tail))
    above = about.shown(room, limit if asking.details else min(_USUAL_TEXT, limit), inner, signs)
    if asking.details:
        above += clipped(details, room - len(above), inner, signs)
    hints = hint_rows(dialog, asking, inner, signs, pager=pager)
    if not asking.field:
        return QuestionRows(above=_barred(bar, [*above, *below, *hints]), pager=pager)
    field = (*bar, *field_begin(asking, inner, signs))
    return QuestionRows(above=_barred(bar, above), field=field, under=_barred(bar, hints), pager=pager)


def _bar(asking: Asking, signs: Signs) -> Line:
    return (("danger" if asking.danger else "warn", signs.bar), ("", " "))


def _barred(bar: Line, rows: Sequence[Line]) -> list[Line]:
    return [(*bar, *row) for row in rows]


def whole_question(asking: Asking, roots: Sequence[str], width: int, signs: Signs) -> list[Line]:
    """Lay out all that a question is about, however long it is."""
    rows = question_text(asking, roots, width)
    diff = diff_of(asking)
    if diff:
        rows += [(), *diff_lines(diff, width, signs, whole=True)]
    for more in (long_choices(asking, width, 1), details_of(asking, roots, width)):
        rows += [(), *more] if more else []
    return rows
