"""Decide where one block goes and what it changes there, or why it is refused."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.drift import Interpretation, readings_as_shown, readings_without_drift
from treadle.editing.edit_refusals import (
    at_lines,
    refuse,
    refuse_ambiguous,
    refuse_conflict,
    refuse_escaped,
    refuse_places,
)
from treadle.editing.edit_results import Edit, EditBlock, EditError, ErrorCode, LineRange, Tier
from treadle.editing.elision import expand_replace, is_elision, split_at_elisions
from treadle.editing.everywhere import replace_everywhere
from treadle.editing.exact import TextRange, find_places, in_file, is_whole_lines, reads_already, replaced
from treadle.editing.foreign import escaped_sign, indented_as_file
from treadle.editing.line_keys import MAX_PLACES, TextViews, indent_of, is_blank
from treadle.editing.locate import STRICT_FINDERS, Finder, anchor_line, find_exact, narrowed
from treadle.editing.merge import merge_block
from treadle.editing.regions import Alignment, Conflict
from treadle.editing.similar import find_similar
from treadle.editing.source import Hunk, WorkingText


class PlacedBlock(Struct, frozen=True):
    """The hunks of a block on the current lines, the tier that found it, and in how many places."""

    tier: Tier
    hunks: tuple[Hunk, ...]
    places: int = 1


Placing = PlacedBlock | EditError
_Attempt = tuple[Tier | None, EditBlock, Finder]


def place_block(block: EditBlock, work: WorkingText) -> Placing:
    """Try the tiers from strict to lax; the first that finds the block decides.

    Blocks are written against the original text or against the result of the blocks before them, so both
    are searched. A refusal shows the original text, for that is what the file has.
    """
    placing = _place(block, work)
    if isinstance(placing, EditError) and work.views is not work.original:
        return _as_in_file(placing, block, WorkingText(work.source))
    return placing


def _place(block: EditBlock, work: WorkingText) -> Placing:
    if block.everywhere:
        return _place_everywhere(block, work)
    if _changes_nothing(block):
        return refuse(ErrorCode.NO_CHANGE, block, work.views)
    placing = _place_strictly(block, work.original, work.source.ends)
    if work.views is not work.original:
        placing = _place_after_others(placing, block, work)
    if placing is None and all(is_blank(line) for line in block.search):
        return _place_without_search(block, work)
    return placing or _place_loosely(block, work.views)


def _place_everywhere(block: EditBlock, work: WorkingText) -> Placing:
    found = replace_everywhere(block, work)
    if isinstance(found, EditError) and found.code is ErrorCode.NOT_FOUND:
        for each in readings_as_shown(block):
            read = replace_everywhere(each, work)
            if not isinstance(read, EditError):
                return PlacedBlock(Tier.ESCAPES, *read)
    return found if isinstance(found, EditError) else PlacedBlock(Tier.EXACT, *found)


def _as_in_file(refused: EditError, block: EditBlock, alone: WorkingText) -> EditError:
    """A refusal after other blocks as one of the block alone; where it alone fits, only its place is shown."""
    placing = _place(block, alone)
    if isinstance(placing, EditError):
        return placing
    return at_lines(refused, alone.views, min(hunk.start for hunk in placing.hunks), placing.hunks[-1].end)


def _changes_nothing(block: EditBlock) -> bool:
    if block.exact is not None:
        return bool(block.exact.old) and block.exact.old == block.exact.new
    return block.search == block.replace and not all(is_blank(line) for line in block.search)


def _place_after_others(original: Placing | None, block: EditBlock, work: WorkingText) -> Placing | None:
    """The placing on the current text, given the one on the original."""
    if isinstance(original, EditError) and original.code is ErrorCode.AMBIGUOUS:
        return original
    exactly = isinstance(original, PlacedBlock) and original.tier in (Tier.EXACT, Tier.INLINE)
    if not exactly:
        chained = _place_exactly(block, work.views, work.ends)
        if isinstance(chained, PlacedBlock):
            return chained
    if isinstance(original, PlacedBlock):
        moved = work.translate(original.hunks)
        if moved is not None and not _brought_already(original.hunks, moved, work):
            return PlacedBlock(original.tier, tuple(moved))
        chained = _place_exactly(block, work.views, work.ends) if exactly and moved is None else None
        return chained if isinstance(chained, PlacedBlock) else refuse(ErrorCode.OVERLAPPING, block, work.views)
    # Lax tiers find the result of an earlier block only by a line which that block brought.
    if not work.added.isdisjoint(line.strip() for line in block.search):
        return _place_strictly(block, work.views, work.ends) or original
    return original


def _place_exactly(block: EditBlock, views: TextViews, ends: Sequence[str]) -> Placing | None:
    """The block where it is exactly, by whole lines or as a string; None where it is not."""
    if block.exact is not None:
        return _place_string(block, block.exact, views, ends)
    if all(is_blank(line) for line in block.search):
        return None
    by_lines = _first_found([(None, block, find_exact)], views)
    if by_lines is not None or block.lines_only:
        return by_lines
    return _place_string(block, Edit("\n".join(block.search), "\n".join(block.replace)), views, ends)


def _place_string(block: EditBlock, edit: Edit, views: TextViews, ends: Sequence[str]) -> Placing | None:
    """The edit of a string where it is once."""
    text = views.exact.joined
    found = in_file(find_places(text, edit.old), views, ends) if edit.old else iter(())
    places = list(islice(found, MAX_PLACES))
    if len(places) > 1 and block.exact is not None and not edit.old.isspace():
        rows = [LineRange(place.first + 1, place.first + len(block.search)) for place in places]
        return refuse_places(rows, block, views)
    if len(places) != 1 or (block.exact is None and not _is_string(block, text, places[0])):
        return None
    place, new = places[0], edit.new
    expanded = expand_replace(block, views)
    if expanded is None:
        return refuse(ErrorCode.ELISION, block, views, place.first)
    if expanded is not block:
        new = "\n".join(expanded.replace) + ("\n" if block.ends_line else "")
    if reads_already(text, edit.old, new, place):
        return refuse(ErrorCode.ALREADY_APPLIED, block, views, place.first)
    hunks = replaced(place, "\n".join(_indented(block, tuple(new.split("\n")), views)), views, ends)
    if not hunks:
        return refuse(ErrorCode.NO_CHANGE if expanded is block else ErrorCode.ELISION, block, views, place.first)
    sign = escaped_sign([line for hunk in hunks for line in hunk.lines], block.search, views)
    # What the new text has within a string of its own, or brings into one of the file, is no mistake.
    if sign is not None and escaped_sign(block.replace, block.search, views) is not None:
        return refuse_escaped(sign)
    return PlacedBlock(Tier.EXACT if is_whole_lines(text, place) else Tier.INLINE, hunks)


def _is_string(block: EditBlock, text: str, place: TextRange) -> bool:
    """Whether a block of lines that is found within lines is meant as a string, not as lines with other indentation.

    That is so for a part of a line, and where the first line alone lacks the indentation that the others have.
    """
    if is_blank(block.search[0]) or is_blank(block.search[-1]):
        return False
    before = text[text.rindex("\n", 0, place.start) + 1 : place.start]
    after = text[place.end : text.index("\n", place.end)]
    if not is_blank(before) or not is_blank(after):
        return True
    new = [line for line in block.replace if not is_blank(line)]
    if not before or len(new) < 2 or new[0][:1].isspace() or block.search[0][:1].isspace():
        return False
    if len(block.search) > 1:
        return True
    return len(indent_of(new[1])) >= len(before) + new[0].rstrip().endswith((":", "{", "(", "["))


def _strict_attempts(block: EditBlock) -> Iterator[_Attempt]:
    yield from ((None, block, finder) for finder in STRICT_FINDERS)
    readings = tuple(readings_without_drift(block))
    yield from ((each.tier, each.block, finder) for finder in STRICT_FINDERS for each in readings)


def _place_strictly(block: EditBlock, views: TextViews, ends: Sequence[str]) -> Placing | None:
    if all(is_blank(line) for line in block.search):
        return _place_exactly(block, views, ends)
    return (
        _place_exactly(block, views, ends)
        or _place_as_shown(block, views, ends)
        or _first_found(_strict_attempts(block), views)
    )


def _place_as_shown(block: EditBlock, views: TextViews, ends: Sequence[str]) -> Placing | None:
    """The block with the control characters that its escapes stand for, which have to be in the file as they are."""
    for each in readings_as_shown(block):
        found = None if block.exact is not None else _first_found([(None, each, find_exact)], views)
        found = found or _place_exactly(each, views, ends)
        if found is not None:
            return replace(found, tier=Tier.ESCAPES) if isinstance(found, PlacedBlock) else found
    return None


def _first_found(attempts: Iterable[_Attempt], views: TextViews) -> Placing | None:
    for tier, block, finder in attempts:
        found = narrowed(finder(block, views), block, views)
        if found:
            return _merge_found(tier, block, found, views)
    return None


def _merge_found(tier: Tier | None, block: EditBlock, found: list[Alignment], views: TextViews) -> Placing:
    if len(found) > 1:
        return refuse_ambiguous(found, block, views)
    places = _also_inside_lines(block, found[0], views)
    if places:
        return refuse_places(places, block, views)
    hunks = _merged(block, found[0], views)
    return hunks if isinstance(hunks, EditError) else PlacedBlock(tier or found[0].tier, tuple(hunks))


def _merged(block: EditBlock, found: Alignment, views: TextViews) -> list[Hunk] | EditError:
    expanded = expand_replace(block, views)
    if expanded is None:
        return refuse(ErrorCode.ELISION, block, views, found.first)
    hunks = merge_block(expanded, found, views.lines)
    if isinstance(hunks, Conflict):
        return refuse_conflict(hunks, block, views)
    hunks = [hunk for hunk in hunks if tuple(views.lines[hunk.start : hunk.end]) != hunk.lines]
    if not hunks:
        return refuse(ErrorCode.NO_CHANGE if expanded is block else ErrorCode.ELISION, block, views, found.first)
    if all(_stands_already(hunk, views.lines, found.pairs) for hunk in hunks):
        return refuse(ErrorCode.ALREADY_APPLIED, block, views, hunks[0].start)
    sign = escaped_sign([line for hunk in hunks for line in hunk.lines], block.search, views)
    if sign is not None:
        return refuse_escaped(sign)
    return [replace(hunk, lines=_indented(block, hunk.lines, views)) for hunk in hunks]


def _indented(block: EditBlock, new: tuple[str, ...], views: TextViews) -> tuple[str, ...]:
    """New lines with the file's kind of indentation, where SEARCH has none that tells which one the model means."""
    return new if any(map(indent_of, block.search)) else indented_as_file(new, views)


def _stands_already(hunk: Hunk, lines: Sequence[str], quoted: Sequence[int | None] = ()) -> bool:
    """Whether the lines to insert stand right beside the place already, and the model did not quote them there."""
    count = len(hunk.lines)
    if hunk.start < hunk.end or not any(sum(map(str.isalnum, line)) > 2 for line in hunk.lines):
        return False
    beside = (range(hunk.start, hunk.start + count), range(max(0, hunk.start - count), hunk.start))
    return any(
        hunk.lines == tuple(lines[place.start : place.stop]) and not set(place) <= set(quoted) for place in beside
    )


def _brought_already(original: Sequence[Hunk], moved: Sequence[Hunk], work: WorkingText) -> bool:
    """Whether earlier blocks of the same edit have put all of these lines there."""
    return all(
        _stands_already(after, work.views.lines) and not _stands_already(before, work.original.lines)
        for before, after in zip(original, moved, strict=True)
    )


def _place_without_search(block: EditBlock, work: WorkingText) -> Placing:
    """New text for an empty file; below an anchor or at the end of the file where a patch says so."""
    lines = work.views.lines
    if not block.replace:
        return refuse(ErrorCode.NO_CHANGE, block, work.views)
    if all(is_blank(line) for line in lines):
        return PlacedBlock(Tier.EXACT, (Hunk(0, len(lines), block.replace),))
    at = anchor_line(block.anchors, work.views) if block.anchors else None
    if at is not None and not block.search:
        return PlacedBlock(Tier.EXACT, (Hunk(at + 1, at + 1, block.replace),))
    if block.at_end and not block.search and not block.anchors:
        return PlacedBlock(Tier.EXACT, (Hunk(len(lines), len(lines), block.replace),))
    return refuse(ErrorCode.EMPTY_SEARCH, block, work.views)


def _place_loosely(block: EditBlock, views: TextViews) -> Placing:
    """What no strict tier found: part of a line, done already, with elisions, or resembling."""
    if _is_done(block, views):
        return refuse(ErrorCode.ALREADY_APPLIED, block, views)
    places = [] if block.lines_only else _string_places(block, views)
    if len(places) > 1:
        return refuse_places(places, block, views)
    if any(is_elision(line) for line in block.search):
        return _place_parts(block, views)
    for reading in (Interpretation(Tier.SIMILAR, block), *readings_without_drift(block)):
        found = narrowed(find_similar(reading.block, views), reading.block, views)
        if len(found) > 1:
            return refuse_ambiguous(found, block, views)
        if found:
            return _merge_found(reading.tier, reading.block, found, views)
    return refuse(ErrorCode.NOT_FOUND, block, views)


def _is_done(block: EditBlock, views: TextViews) -> bool:
    """Whether REPLACE stands in the file as it is, but for blanks."""
    keys = [line.strip() for line in block.replace if not is_blank(line)]
    known = {line.strip() for line in block.search}
    if any(key not in known and not views.stripped.places([key]) for key in keys):
        return False
    telling = any(sum(map(str.isalnum, key)) > 2 for key in keys)
    return telling and bool(views.visible.places(keys))


def _also_inside_lines(block: EditBlock, found: Alignment, views: TextViews) -> list[LineRange]:
    """The places that SEARCH fits as a string, where these are more than the one that lax tiers found by lines."""
    if block.lines_only or block.hint is not None or found.tier not in (Tier.TRAILING, Tier.INDENTATION):
        return []
    places = _string_places(block, views)
    return places if len(places) > 1 else []


def _string_places(block: EditBlock, views: TextViews) -> list[LineRange]:
    wanted = "\n".join(block.search) + ("\n" if block.ends_line else "")
    places = islice(find_places(views.exact.joined, wanted), MAX_PLACES)
    return [LineRange(place.first + 1, place.first + len(block.search)) for place in places]


def _place_parts(block: EditBlock, views: TextViews) -> Placing:
    """Place a block whose SEARCH elides lines: each changed part alone, the others in order around it."""
    parts = split_at_elisions(block)
    if parts is None or any(part.replace and not part.search for part in parts):
        return refuse(ErrorCode.ELISION, block, views)
    hunks: list[Hunk] = []
    parts = [part for part in parts if part.search]
    chains = _chains(parts, views)
    for index, part in enumerate(parts):
        if part.search == part.replace:
            continue
        places = {chain[index].pairs: chain[index] for chain in chains}
        if not places:
            return refuse(ErrorCode.NOT_FOUND, block, views)
        if len(places) > 1:
            return refuse_ambiguous(list(places.values()), block, views)
        merged = _merged(part, next(iter(places.values())), views)
        if isinstance(merged, EditError):
            return merged
        hunks.extend(merged)
    return PlacedBlock(Tier.ELISION, tuple(hunks)) if hunks else refuse(ErrorCode.NO_CHANGE, block, views)


def _chains(parts: Sequence[EditBlock], views: TextViews) -> list[tuple[Alignment, ...]]:
    """Every way to find the parts one below the other; nothing when they have too many places."""
    chains: list[tuple[Alignment, ...]] = [()]
    for part in parts:
        found = _find_strictly(part, views)
        chains = [(*chain, each) for chain in chains for each in found if not chain or chain[-1].last < each.first]
        if len(chains) > 400:
            return []
    return chains


def _find_strictly(part: EditBlock, views: TextViews) -> list[Alignment]:
    if all(is_blank(line) for line in part.search):
        return []
    found = (finder(part, views) for finder in STRICT_FINDERS)
    return next((each for each in found if each), [])


def longest_exact(readings: Sequence[EditBlock], views: TextViews) -> EditBlock | None:
    """The reading whose SEARCH is the longest that the file has; None when it has none."""
    fitting = [each for each in readings if each.search and find_exact(each, views)]
    return max(fitting, key=lambda each: len(each.search), default=None)
