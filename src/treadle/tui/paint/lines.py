"""Lines of text in roles of the theme, wrapped at a width. What they hold is harmless to show already."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from treadle.tui.paint.theme import Theme

StyledText: TypeAlias = tuple[str, str]
"""Roles, and a text of one line in them."""

Line: TypeAlias = tuple[StyledText, ...]


CURSOR: StyledText = ("[SetCursorPosition]", "")
"""Where the cursor is shown."""


def line(*pieces: StyledText | str) -> Line:
    """Make a line; a text alone has no role."""
    return tuple(("", piece) if isinstance(piece, str) else piece for piece in pieces)


def line_text(row: Line) -> str:
    """Give the text of a line."""
    return "".join(text for _, text in row)


def cells(row: Line) -> int:
    """Measure a line in cells."""
    return get_cwidth(line_text(row))


def wrap(row: Line, width: int, indent: Line = (), keep: int = 0) -> list[Line]:
    """Break a line at blanks so that no row is wider than `width` cells; rows after the first begin with `indent`.

    A word that is wider than a row is cut; the first `keep` characters are never broken.
    """
    width = max(2, width)
    if cells(row) <= width:
        return [row]
    marked = [(roles, char, get_cwidth(char)) for roles, text in row for char in text]
    rows: list[Line] = []
    start, room = 0, width
    while start < len(marked):
        # No row has more characters than cells, but for those that have no width.
        ahead = marked[start : start + 4 * room + 1]
        fitting = _fitting(ahead, room)
        cut = len(ahead) if fitting == len(ahead) else _break_at(ahead, fitting, 0 if rows else keep)
        rows.append((*(indent if rows else ()), *_joined(ahead[:cut])))
        start += cut
        while start < len(marked) and marked[start][1] == " ":
            start += 1
        room = max(2, width - cells(indent))
    return rows


def _fitting(marked: Sequence[tuple[str, str, int]], room: int) -> int:
    used = 0
    for number, (_, _, wide) in enumerate(marked):
        used += wide
        if used > room:
            return max(1, number)
    return len(marked)


def _break_at(marked: Sequence[tuple[str, str, int]], fitting: int, keep: int) -> int:
    """Find the last blank that a row may end with; none among the blanks at its beginning."""
    if marked[fitting][1] == " ":
        return fitting
    begin = keep
    while begin < fitting and marked[begin][1] == " ":
        begin += 1
    return next((place + 1 for place in range(fitting - 1, begin, -1) if marked[place][1] == " "), fitting)


def _joined(marked: Sequence[tuple[str, str, int]]) -> Line:
    while marked and marked[-1][1] == " ":
        marked = marked[:-1]
    return tuple((roles, "".join(char for _, char, _ in run)) for roles, run in groupby(marked, key=lambda one: one[0]))


def clip(row: Line, width: int, more: str = "…") -> Line:
    """Cut a line at `width` cells, with a sign where something is missing."""
    if cells(row) <= width:
        return row
    marked = [(roles, char, get_cwidth(char)) for roles, text in row for char in text]
    fitting = _fitting(marked, max(1, width - get_cwidth(more)))
    return (*_joined(marked[:fitting]), ("", more))


def apart(left: Line, right: Line, width: int) -> Line | None:
    """Put two lines on one row, the second at its right end; None when there is no room for both."""
    if not line_text(right):
        return left if cells(left) <= width else None
    blank = width - cells(left) - cells(right)
    return (*left, ("", " " * blank), *right) if blank >= 2 else None


def middle_out(rows: Sequence[Line], limit: int, hint: Line) -> list[Line]:
    """Leave out the middle of too many rows; `hint` stands in its place."""
    if len(rows) <= limit:
        return list(rows)
    head = max(1, (limit - 1) * 2 // 3)
    tail = max(1, limit - 1 - head)
    return [*rows[:head], hint, *rows[len(rows) - tail :]]


def fragments(rows: Iterable[Line]) -> StyleAndTextTuples:
    """Give rows for `prompt_toolkit`."""
    shown: StyleAndTextTuples = []
    for number, row in enumerate(rows):
        if number:
            shown.append(("", "\n"))
        shown += [(_style(roles), text) for roles, text in row]
    return shown


def _style(roles: str) -> str:
    return roles if roles == CURSOR[0] else " ".join(f"class:{role}" for role in roles.split())


def ansi(rows: Iterable[Line], theme: Theme) -> list[str]:
    """Give rows with control sequences of colour."""
    return ["".join(_painted(piece, theme) for piece in row) for row in rows]


def _painted(piece: StyledText, theme: Theme) -> str:
    roles, text = piece
    begin = theme.sgr(roles)
    return f"{begin}{text}\x1b[0m" if begin and text else text
