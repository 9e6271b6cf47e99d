"""Refusals that a model can act upon: what is wrong, the real text with line numbers, what to do next."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.editing.edit_results import EditBlock, EditError, ErrorCode, LineRange
from treadle.editing.line_keys import TextViews
from treadle.editing.regions import Alignment, Conflict
from treadle.editing.similar import nearest_window

_MOST_SHOWN = 30
_MOST_SHOWN_OF_ALL = 50
_FEWEST_SHOWN = 4
_MOST_PLACES_SHOWN = 3
_MARGIN = 2
_LONGEST_LINE = 400
_SMALL_FILE = (25, 1_500)
"""Lines and characters of a file that is shown whole where nothing in it is like the search text."""

_SAYS = {
    ErrorCode.EMPTY_SEARCH: (
        "The search text is empty, but the file is not. Quote the lines next to which the new text goes."
    ),
    ErrorCode.OVERLAPPING: "It changes lines that an earlier block changes too. Write one block for both.",
    ErrorCode.ALREADY_APPLIED: (
        "The file has the replacement already, so this seems to be done. Leave it out, or quote more lines if you "
        "want it a second time."
    ),
    ErrorCode.NO_CHANGE: "The search text and the replacement are the same. Leave this block out, or correct it.",
    ErrorCode.ELISION: (
        "A placeholder such as `...` stands for lines, but it is not clear which. Write these lines out, or use "
        "several small blocks."
    ),
    ErrorCode.CHANGED_SINCE: (
        "Line {line} of the file, within the lines to change, differs from the search text. Write the edit again "
        "from the lines as they are."
    ),
    ErrorCode.INDENTATION: (
        "The search text is in the file with a different indentation, so the replacement's is not clear. "
        "Copy the indentation of the file."
    ),
}


def refuse(code: ErrorCode, block: EditBlock, views: TextViews, line: int | None = None) -> EditError:
    """A refusal of `block` with the text of the file that helps; `line` (from 0) is the line in question."""
    if code is ErrorCode.NOT_FOUND:
        return _refuse_missing(block, views)
    error = EditError(code, _SAYS[code].format(line=None if line is None else line + 1))
    if code in (ErrorCode.NO_CHANGE, ErrorCode.EMPTY_SEARCH):
        return error
    near = nearest_window(block.replace if code is ErrorCode.ALREADY_APPLIED else block.search, views)
    if line is not None and (near is None or not near.start <= line < near.end):
        return at_lines(error, views, line, line + 1)
    return error if near is None else at_lines(error, views, near.start, near.end)


def at_lines(error: EditError, views: TextViews, start: int, end: int) -> EditError:
    """The refusal with lines `start` to `end` (from 0, excluded) of a text instead of what it showed."""
    return shown_within(replace(error, shown=(LineRange(start + 1, max(start + 1, end)),), candidates=()), views.lines)


def shown_within(error: EditError, lines: Sequence[str], failed: int = 1) -> EditError:
    """The refusal with the lines that it shows, as few as is right where `failed` blocks are refused at once."""
    if not error.shown:
        return error
    most = _MOST_SHOWN if failed == 1 else max(_FEWEST_SHOWN, _MOST_SHOWN_OF_ALL // failed)
    each = max(_FEWEST_SHOWN, most // len(error.shown))
    if error.shown == (LineRange(1, len(lines)),) and len(lines) <= _SMALL_FILE[0]:
        each = len(lines)
    margin = _MARGIN if each > 2 * _FEWEST_SHOWN else 1
    parts: list[str] = []
    last = 0
    for place in error.shown[: max(1, most // each)]:
        start = max(last, place.start - 1 - margin)
        end = min(start + each, place.end + margin, len(lines))
        if start < end:
            parts.append(numbered_context(lines, start, end, most=each, margin=0))
            last = end
    return replace(error, nearest="\n...\n".join(parts))


def _refuse_missing(block: EditBlock, views: TextViews) -> EditError:
    """A refusal of text that is not in the file: the nearest lines, or how long the file is where nothing is near."""
    what = "The text of the ` ` and `-` lines" if block.lines_only else "The search text"
    near = nearest_window(block.search, views)
    if near is not None:
        error = EditError(
            ErrorCode.NOT_FOUND,
            f"{what} is not in the file{near.difference}. Copy the lines as the file has them.",
        )
        start = near.start if near.end - near.start <= _MOST_SHOWN else max(near.start, near.first_difference - _MARGIN)
        return at_lines(error, views, start, near.end)
    count = len(views.lines)
    if not count:
        said = "The file is empty, so there is nothing to replace. Write its whole text instead."
        return EditError(ErrorCode.NOT_FOUND, said)
    message = f"Nothing like {what[0].lower()}{what[1:]} is in the file, which has {count:,} line{'s' * (count != 1)}."
    if count <= _SMALL_FILE[0] and sum(map(len, views.lines)) <= _SMALL_FILE[1]:
        error = EditError(ErrorCode.NOT_FOUND, f"{message} Copy the lines to change from it.")
        return at_lines(error, views, 0, count)
    return EditError(ErrorCode.NOT_FOUND, f"{message} Read it first, and check that it is the right file.")


def refuse_conflict(conflict: Conflict, block: EditBlock, views: TextViews) -> EditError:
    """A refusal of a block that was found but cannot be merged."""
    return refuse(conflict.code, block, views, conflict.line)


def refuse_escaped(sign: str) -> EditError:
    """A refusal of new text that seems escaped by mistake."""
    message = (
        f"The new text has {sign} outside any string, and the file has it nowhere. It seems to be escaped by mistake. "
        "Write the characters as they should be in the file."
    )
    return EditError(ErrorCode.ESCAPED, message)


def refuse_ambiguous(found: Sequence[Alignment], block: EditBlock, views: TextViews) -> EditError:
    """A refusal of a block that fits several places."""
    return refuse_places([LineRange(each.first + 1, each.last + 1) for each in found], block, views)


def refuse_places(places: Sequence[LineRange], block: EditBlock, views: TextViews) -> EditError:
    """A refusal with the places (lines from 1) that the search text fits."""
    where = ", ".join(str(place.start) for place in places)
    what = "The text of the ` ` and `-` lines" if block.lines_only else "The search text"
    way = ", or name the class or function after `@@`" if block.lines_only else ""
    message = (
        f"{what} matches {len(places)} places, at lines {where}. Add neighbouring lines until it matches only the one "
        f"you mean{way}."
    )
    error = EditError(ErrorCode.AMBIGUOUS, message, candidates=tuple(places), shown=tuple(places[:_MOST_PLACES_SHOWN]))
    return shown_within(error, views.lines)


def numbered_context(
    lines: Sequence[str], start: int, end: int, *, most: int | None = _MOST_SHOWN, margin: int = _MARGIN
) -> str:
    """Lines `start` to `end` (from 0, excluded) and a few around, at most `most`, each as `  12 | text`."""
    low = max(0, start - margin)
    high = min(len(lines), end + margin, len(lines) if most is None else low + most)
    width = len(str(high))
    return "\n".join(f"{at + 1:>{width}} | {_cut(lines[at])}" for at in range(low, high))


def _cut(line: str) -> str:
    rest = len(line) - _LONGEST_LINE
    return line if rest <= 0 else f"{line[:_LONGEST_LINE]} [{rest:,} more characters]"
