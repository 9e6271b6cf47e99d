"""A question in a window that is too low for it: the beginning of each part, and the rest of them in the pager."""

from enum import Enum

from msgspec import Struct

from treadle.tui.paint.diff_rows import diff_lines, from_first_change
from treadle.tui.paint.lines import Line, apart, cells, clip, line, middle_out
from treadle.tui.paint.theme import Signs
from treadle.tui.question.answer_lines import MOST_CHOICE, choice_row, field_begin, hint_rows
from treadle.tui.question.asked import Asking, choices
from treadle.tui.question.asked_about import AskedAbout, clipped, diff_of, more_lines
from treadle.tui.question.dialog import EVERY_ANSWER, TOO_LOW, Dialog

_EVERY_ROW = 10**6


class QuestionRows(Struct, frozen=True, kw_only=True):
    """A question that has the keys: what is above its line of words, what that line begins with, and what is below.

    Without a line of words all is above. `pager`: with its details it is too long for the screen; the pager shows it.
    `drawn` are the places of the answers that are on the screen, none where the text is not. A question that is `alone`
    takes the whole screen; its line of words has at most `words` rows then.
    """

    above: list[Line]
    field: Line = ()
    under: list[Line] = []
    pager: bool = False
    drawn: range = EVERY_ANSWER
    alone: bool = False
    words: int | None = None


class _Part(Enum):
    TITLE = "title"
    TEXT = "text"
    MORE = "more"
    CHOSEN = "chosen"
    OTHERS = "others"
    KEYS = "keys"


_LEAST = ((_Part.CHOSEN, 1), (_Part.TEXT, 1))
"""Without these nothing is answered: the answer that Enter takes, or the line of words, and what it is given to."""

_ORDER = (
    *_LEAST,
    (_Part.TITLE, 1),
    (_Part.KEYS, 1),
    (_Part.MORE, 1),
    (_Part.CHOSEN, MOST_CHOICE),
    (_Part.OTHERS, _EVERY_ROW),
    (_Part.TEXT, 4),
    (_Part.MORE, 2),
    (_Part.TITLE, 3),
    (_Part.MORE, _EVERY_ROW),
    (_Part.TEXT, _EVERY_ROW),
)
"""Which part gets rows first, and up to how many in all."""


def low_rows(dialog: Dialog, asking: Asking, about: AskedAbout, *, width: int, rows: int, signs: Signs) -> QuestionRows:
    """Lay out the question that has the keys in `rows` rows of `width` cells; the more important part comes first."""
    if rows < len(_LEAST):
        return QuestionRows(above=[clip(line(("warn", TOO_LOW)), width, signs.more)], drawn=range(0), alone=True)
    title, text, more = _parts(about, from_first_change(diff_lines(diff_of(asking), width, signs)))
    keys = hint_rows(dialog, asking, width, signs, pager=True)
    answers = () if asking.field else choices(asking)
    chosen = choice_row(answers[asking.chosen], width, signs, chosen=True) if answers else []
    wanted = {
        _Part.TITLE: len(title),
        _Part.TEXT: len(text),
        _Part.MORE: len(more),
        _Part.CHOSEN: len(chosen) if answers else MOST_CHOICE,
        _Part.OTHERS: max(0, len(answers) - 1),
        _Part.KEYS: len(keys),
    }
    given = _shared(rows, wanted, said=bool(dialog.hint))
    begin = [
        *_beginning(title, given[_Part.TITLE], width, signs),
        *_beginning(text, given[_Part.TEXT], width, signs),
        *_beginning(more, given[_Part.MORE], width, signs),
    ]
    keys = keys[: given[_Part.KEYS]]
    if asking.field:
        field = field_begin(asking, width, signs)
        words = rows - len(begin) - len(keys)
        return QuestionRows(above=begin, field=field, under=keys, pager=True, alone=True, words=words)
    first = max(0, min(asking.chosen - given[_Part.OTHERS] // 2, len(answers) - 1 - given[_Part.OTHERS]))
    drawn = range(first, first + given[_Part.OTHERS] + 1)
    count = "" if len(drawn) == len(answers) else f"{asking.chosen + 1}/{len(answers)}"
    for place in drawn:
        if place == asking.chosen:
            begin += _with_count(_beginning(chosen, given[_Part.CHOSEN], width, signs), count, width, signs)
        else:
            begin += _beginning(choice_row(answers[place], width, signs, chosen=False), 1, width, signs)
    return QuestionRows(above=[*begin, *keys], pager=True, drawn=drawn, alone=True)


def _parts(about: AskedAbout, diff: list[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """Give the title, the text and the rest; what has no text is about its diff, its rule, or its title."""
    if diff or about.text:
        return about.head, diff or about.text, about.tail
    return (about.head, about.tail, []) if about.tail else ([], about.head, [])


def _shared(rows: int, wanted: dict[_Part, int], *, said: bool) -> dict[_Part, int]:
    """Share rows among the parts; what the question has `said` of the last key comes before its title."""
    given = dict.fromkeys(_Part, 0)
    order = (*_LEAST, (_Part.KEYS, 1), *_ORDER) if said else _ORDER
    for part, most in order:
        more = min(rows, max(0, min(most, wanted[part]) - given[part]))
        given[part] += more
        rows -= more
    return given


def _beginning(shown: list[Line], limit: int, width: int, signs: Signs) -> list[Line]:
    """Give the beginning of a part, that something is missing, and where there is room for it its end."""
    if limit >= len(shown):
        return shown
    if limit == 1:
        return [clip((*shown[0], ("dim", f" {signs.more}")), width, signs.more)]
    if limit == 2:
        return clipped(shown, limit, width, signs)
    return middle_out(shown, limit, more_lines(len(shown) - limit + 1, width, signs)) if limit else []


def _with_count(row: list[Line], count: str, width: int, signs: Signs) -> list[Line]:
    """Say at the end of the chosen answer which one of how many it is."""
    if not count:
        return row
    right = line(("dim", count))
    left = clip(row[0], width - cells(right) - 2, signs.more)
    return [apart(left, right, width) or left, *row[1:]]
