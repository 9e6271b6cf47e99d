"""Refusals that a model can act upon: what is wrong, the real text with line numbers, what to do next."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.editing.keys import TextViews
from treadle.editing.regions import Alignment, Conflict
from treadle.editing.results import Block, EditError, ErrorCode, LineRange
from treadle.editing.similar import nearest_window

_MOST_SHOWN = 30
_MARGIN = 2

_SAYS = {
    ErrorCode.EMPTY_SEARCH: (
        "The search text is empty, but the file is not. Quote the lines beside which the new text belongs."
    ),
    ErrorCode.NOT_FOUND: ("The search text is not in the file. Copy the lines to change exactly from the text below."),
    ErrorCode.OVERLAPPING: (
        "This block changes lines that an earlier block of the same edit changed. Write one block for both."
    ),
    ErrorCode.ALREADY_APPLIED: (
        "The file already contains the replacement, so this seems to be done. Read the file before going on."
    ),
    ErrorCode.NO_CHANGE: (
        "Search and replacement are the same, so nothing would change. Leave the block out or mend it."
    ),
    ErrorCode.ELISION: (
        "A placeholder such as `...` stands for lines that cannot be told with certainty. "
        "Write these lines, or use several small blocks."
    ),
    ErrorCode.CHANGED_SINCE: (
        "The file differs from the search text within the lines to be changed: line {line} is not as the "
        "search text has it. Read the lines below and write the edit anew."
    ),
    ErrorCode.INDENTATION: (
        "The search text is found, but its indentation differs from the file's so that the indentation of "
        "the replacement is open. Copy the indentation of the lines below."
    ),
}


def refuse(code: ErrorCode, block: Block, views: TextViews, line: int | None = None) -> EditError:
    """A refusal of `block` with the nearest real text; `line` (from 0) is the line in question."""
    window = nearest_window(block.search, views)
    if line is not None and (window is None or not window[0] <= line < window[1]):
        window = (line, line + 1)
    message = _SAYS[code].format(line=None if line is None else line + 1)
    return EditError(code, message, nearest=None if window is None else numbered(views.lines, *window))


def at_lines(error: EditError, views: TextViews, start: int, end: int) -> EditError:
    """The refusal with lines `start` to `end` (from 0, excluded) of a text instead of what it showed."""
    return replace(error, nearest=numbered(views.lines, start, max(start + 1, end)), candidates=())


def refuse_conflict(conflict: Conflict, block: Block, views: TextViews) -> EditError:
    """A refusal of a block that was found but cannot be merged."""
    return refuse(conflict.code, block, views, conflict.line)


def refuse_escaped(sign: str, block: Block) -> EditError:
    """A refusal of new text that seems escaped by mistake."""
    message = (
        f"The replacement has {sign!r} outside any string, and the file has it nowhere: it seems escaped by "
        "mistake. Write the characters as they should stand in the file."
    )
    return EditError(ErrorCode.ESCAPED, message, nearest="\n".join(block.replace[:_MOST_SHOWN]))


def refuse_ambiguous(found: Sequence[Alignment], views: TextViews) -> EditError:
    """A refusal of a block that fits several places."""
    return refuse_places([LineRange(each.first + 1, each.last + 1) for each in found], views)


def refuse_places(places: Sequence[LineRange], views: TextViews) -> EditError:
    """A refusal with the places (lines from 1) that the search text fits."""
    where = ", ".join(str(place.start) for place in places)
    message = (
        f"The search text fits {len(places)} places, at lines {where}. Add neighbouring lines until it "
        "fits only the one that is meant."
    )
    first = places[0]
    nearest = numbered(views.lines, first.start - 1, first.end)
    return EditError(ErrorCode.AMBIGUOUS, message, nearest=nearest, candidates=tuple(places))


def numbered(lines: Sequence[str], start: int, end: int, *, most: int | None = _MOST_SHOWN) -> str:
    """Lines `start` to `end` (from 0, excluded) and a few around, at most `most`, each as `  12 | text`."""
    low = max(0, start - _MARGIN)
    high = min(len(lines), end + _MARGIN, len(lines) if most is None else low + most)
    width = len(str(high))
    return "\n".join(f"{at + 1:>{width}} | {lines[at]}" for at in range(low, high))
