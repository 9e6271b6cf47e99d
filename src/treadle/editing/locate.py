"""Find a block's SEARCH among the lines of a file, from strict to lax."""

from collections.abc import Callable, Sequence

from treadle.editing.edit_results import EditBlock, Tier
from treadle.editing.line_keys import KeyedLines, TextViews, fold_line, indent_of, is_blank
from treadle.editing.regions import Alignment

Finder = Callable[[EditBlock, TextViews], list[Alignment]]

_HINT_REACH = 3


def find_exact(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH as it is."""
    return _in_a_row(Tier.EXACT, views.exact, block.search)


def find_trailing(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH but for blanks at the ends of lines."""
    return _in_a_row(Tier.TRAILING, views.trailing, [line.rstrip() for line in block.search])


def find_indented(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH but for its indentation."""
    return _in_a_row(Tier.INDENTATION, views.stripped, [line.strip() for line in block.search])


def find_spaced(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH but for blank lines and blanks at the ends of lines."""
    return _among_visible(Tier.BLANK_LINES, views, views.spaced, [line.rstrip() for line in block.search])


def find_visible(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH but for its indentation and blank lines."""
    return _among_visible(Tier.BLANK_LINES, views, views.visible, [line.strip() for line in block.search])


def find_folded(block: EditBlock, views: TextViews) -> list[Alignment]:
    """SEARCH but for its blanks and for typographic quotes, dashes and dots."""
    return _among_visible(Tier.TYPOGRAPHY, views, views.folded, [fold_line(line) for line in block.search])


STRICT_FINDERS: tuple[Finder, ...] = (
    find_exact,
    find_trailing,
    find_spaced,
    find_indented,
    find_visible,
    find_folded,
)


def narrowed(found: list[Alignment], block: EditBlock, views: TextViews) -> list[Alignment]:
    """Several places narrowed by what the block says about its place: line hint, anchors, end of file."""
    if len(found) > 1 and block.hint is not None:
        found = _near_hint(found, block.hint - 1)
    if len(found) > 1 and block.at_end:
        last = max((at for at, line in enumerate(views.lines) if not is_blank(line)), default=-1)
        found = [each for each in found if each.last >= last] or found
    if len(found) > 1 and block.anchors:
        found = _under_anchors(found, block.anchors, views)
    return found


def anchor_line(anchors: Sequence[str], views: TextViews) -> int | None:
    """The line (from 0) of the innermost anchor, each below the one before; None unless certain."""
    below = 0
    for anchor in anchors:
        wanted = anchor.strip()
        places = [at for at, key in enumerate(views.stripped.keys) if at >= below and key == wanted]
        if not places:
            places = [at for at, key in enumerate(views.stripped.keys) if at >= below and key.startswith(wanted)]
        if len(places) != 1:
            return None
        below = places[0] + 1
    return below - 1


def complete_blanks(search: Sequence[str], pairs: list[int | None], lines: Sequence[str]) -> tuple[int | None, ...]:
    """Pair the blank lines of SEARCH with those that stand at the same place in the file."""
    for at, line in enumerate(search):
        before = pairs[at - 1] if at else None
        if pairs[at] is None and is_blank(line) and before is not None:
            below = before + 1
            if below < len(lines) and is_blank(lines[below]):
                pairs[at] = below
    for at in range(len(search) - 2, -1, -1):
        after = pairs[at + 1]
        if pairs[at] is None and is_blank(search[at]) and after:
            above = after - 1
            if is_blank(lines[above]) and above not in pairs[max(0, at - 1) : at]:
                pairs[at] = above
    return tuple(pairs)


def _in_a_row(tier: Tier, view: KeyedLines, keys: Sequence[str]) -> list[Alignment]:
    rows = view.places(keys)
    return [Alignment(tier, tuple(range(row, row + len(keys)))) for row in rows]


def _among_visible(tier: Tier, views: TextViews, view: KeyedLines, keys: Sequence[str]) -> list[Alignment]:
    held = [at for at, key in enumerate(keys) if key]
    found = []
    for row in view.places([keys[at] for at in held]):
        pairs: list[int | None] = [None] * len(keys)
        for offset, at in enumerate(held):
            pairs[at] = view.indexes[row + offset]
        found.append(Alignment(tier, complete_blanks(keys, pairs, views.lines)))
    return found


def _near_hint(found: list[Alignment], hint: int) -> list[Alignment]:
    there = [each for each in found if each.first == hint]
    if there:
        return there
    near = [each for each in found if abs(each.first - hint) <= _HINT_REACH]
    return near if len(near) == 1 else found


def _under_anchors(found: list[Alignment], anchors: Sequence[str], views: TextViews) -> list[Alignment]:
    at = anchor_line(anchors, views)
    if at is None:
        return found
    below = [each for each in found if each.first > at]
    if len(below) < 2:
        return below or found
    end = _scope_end(at, views.lines)
    inside = [each for each in below if each.last < end]
    return inside or below


def _scope_end(at: int, lines: Sequence[str]) -> int:
    """The first line below the anchor that is indented no deeper than it and closes its scope."""
    depth = len(indent_of(lines[at]))
    for below in range(at + 1, len(lines)):
        line = lines[below]
        if not is_blank(line) and len(indent_of(line)) <= depth and line.strip()[0] not in ")]}{":
            return below
    return len(lines)
