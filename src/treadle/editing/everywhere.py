"""Replace an exact text in every place where it stands, or say why that is not certain."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from treadle.editing.edit_refusals import at_lines, refuse, refuse_escaped
from treadle.editing.edit_results import EditBlock, EditError, ErrorCode, LineRange
from treadle.editing.elision import expand_replace
from treadle.editing.exact import TextRange, find_places, is_whole_lines, reads_already
from treadle.editing.foreign import escaped_sign
from treadle.editing.line_keys import TextViews, is_blank
from treadle.editing.source import Hunk, WorkingText

_MOST_NAMED = 20


def replace_everywhere(block: EditBlock, work: WorkingText) -> tuple[tuple[Hunk, ...], int] | EditError:
    """The changes of all places where SEARCH stands as a text, also within lines, and how many places there are."""
    views = work.views
    if all(is_blank(line) for line in block.search):
        return refuse(ErrorCode.EMPTY_SEARCH, block, views)
    if block.search == block.replace:
        return refuse(ErrorCode.NO_CHANGE, block, views)
    if block.hint is not None or expand_replace(block, views) is not block:
        code = ErrorCode.ELISION if block.hint is None else ErrorCode.MALFORMED
        return EditError(code, "To replace all places, write both texts out, and name no line.")
    places = list(_places(block, views))
    if not places:
        return refuse(ErrorCode.NOT_FOUND, block, views)
    return _refusal(block, work, places) or _changes(block, views, places)


def _changes(
    block: EditBlock, views: TextViews, places: Sequence[TextRange]
) -> tuple[tuple[Hunk, ...], int] | EditError:
    hunks = tuple(_hunks(block, views, places))
    sign = escaped_sign([line for hunk in hunks for line in hunk.lines], block.search, views)
    return (hunks, len(places)) if sign is None else refuse_escaped(sign)


def _places(block: EditBlock, views: TextViews) -> Iterator[TextRange]:
    """Every place, also those that overlap."""
    text = views.exact.joined
    for place in find_places(text, "\n".join(block.search)):
        if not block.ends_line or text[place.end : place.end + 1] == "\n":
            yield place


def _refusal(block: EditBlock, work: WorkingText, places: Sequence[TextRange]) -> EditError | None:
    """Why the places cannot all be replaced."""
    text, new = work.views.exact.joined, "\n".join(block.replace)
    inner = "\n".join(block.search)
    overlapping = [after for before, after in pairwise(places) if after.start < before.end]
    if overlapping:
        return _refuse(ErrorCode.OVERLAPPING, "The search text overlaps itself", overlapping, work.views)
    brought = [place for place in places if not work.is_original(place.first, place.last + 1)]
    if brought:
        said = "An earlier block of this edit changed the same lines; make one call for each replacement. This is"
        return _refuse(ErrorCode.OVERLAPPING, said, brought, work.views)
    if inner in new:
        done = [place for place in places if reads_already(text, inner, new, place)]
        if done:
            said = "The replacement, which contains the search text, is already there"
            return _refuse(ErrorCode.ALREADY_APPLIED, said, done, work.views)
    alone = [place for place in places if is_whole_lines(text, place)]
    if not block.replace and 0 < len(alone) < len(places):
        said = (
            "To be deleted, the search text is whole lines in some places and a part of a line in others. It is whole"
        )
        return _refuse(ErrorCode.AMBIGUOUS, said, alone, work.views)
    return None


def _refuse(code: ErrorCode, said: str, places: Sequence[TextRange], views: TextViews) -> EditError:
    rows = sorted({place.first + 1 for place in places})
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    where = ", ".join(map(str, rows[:_MOST_NAMED])) + more
    error = EditError(code, f"{said} at line {where}. Add neighbouring text so that only the place you mean matches.")
    candidates = tuple(LineRange(place.first + 1, place.last + 1) for place in places[:_MOST_NAMED])
    return replace(at_lines(error, views, places[0].first, places[0].last + 1), candidates=candidates)


def _hunks(block: EditBlock, views: TextViews, places: Sequence[TextRange]) -> Iterator[Hunk]:
    text, new = views.exact.joined, "\n".join(block.replace)
    for group in _by_lines(places):
        first, last = group[0], group[-1]
        if not block.replace and is_whole_lines(text, first):
            yield Hunk(first.first, first.last + 1, ())
            continue
        pieces = [text[text.rindex("\n", 0, first.start) + 1 : first.start]]
        for place, following in zip(group, [*group[1:], None], strict=True):
            end = text.index("\n", last.end) if following is None else following.start
            pieces += [new, text[place.end : end]]
        yield Hunk(first.first, last.last + 1, tuple("".join(pieces).split("\n")))


def _by_lines(places: Sequence[TextRange]) -> Iterator[list[TextRange]]:
    """Group places that share a line."""
    group: list[TextRange] = []
    for place in places:
        if group and place.first > group[-1].last:
            yield group
            group = []
        group.append(place)
    yield group
