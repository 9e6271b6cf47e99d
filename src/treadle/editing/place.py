"""Decide where one block goes and what it changes there, or why it is refused."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.drift import Reading, readings_without_drift
from treadle.editing.elision import expand_replace, is_elision, split_at_elisions
from treadle.editing.everywhere import replace_everywhere
from treadle.editing.foreign import escaped_sign, indented_as_file
from treadle.editing.keys import TextViews, indent_of, is_blank
from treadle.editing.locate import STRICT_FINDERS, Finder, anchor_line, find_exact, narrowed
from treadle.editing.merge import merge
from treadle.editing.refusals import refuse, refuse_ambiguous, refuse_conflict, refuse_escaped, refuse_places
from treadle.editing.regions import Alignment, Conflict
from treadle.editing.results import Block, EditError, ErrorCode, LineRange, Tier
from treadle.editing.similar import find_similar
from treadle.editing.source import Hunk, WorkingText


class Placed(Struct, frozen=True):
    """The hunks of a block on the current lines, the tier that found it, and in how many places."""

    tier: Tier
    hunks: tuple[Hunk, ...]
    places: int = 1


Placing = Placed | EditError
_Attempt = tuple[Tier | None, Block, Finder]


def place_block(block: Block, work: WorkingText) -> Placing:
    """Try the tiers from strict to lax; the first that finds the block decides.

    Blocks are written against the original text or against the result of the blocks before them, so both
    are searched.
    """
    if block.everywhere:
        found = replace_everywhere(block, work)
        return found if isinstance(found, EditError) else Placed(Tier.EXACT, *found)
    if all(is_blank(line) for line in block.search):
        return _place_without_search(block, work)
    if block.search == block.replace:
        return refuse(ErrorCode.NO_CHANGE, block, work.views)
    placing = _place_strictly(_strict_attempts(block), work.original)
    if work.views is not work.original:
        placing = _place_after_others(placing, block, work)
    return placing or _place_loosely(block, work.views)


def _place_after_others(original: Placing | None, block: Block, work: WorkingText) -> Placing | None:
    """The placing on the current text, given the one on the original."""
    if isinstance(original, EditError) and original.code is ErrorCode.AMBIGUOUS:
        return original
    if not isinstance(original, Placed) or original.tier is not Tier.EXACT:
        chained = _place_strictly([(None, block, find_exact)], work.views)
        if isinstance(chained, Placed):
            return chained
    if isinstance(original, Placed):
        moved = work.translate(original.hunks)
        if moved is not None and not _brought_already(original.hunks, moved, work):
            return Placed(original.tier, tuple(moved))
        original = refuse(ErrorCode.OVERLAPPING, block, work.views)
    # Lax tiers find the result of an earlier block only by a line which that block brought.
    if not work.added.isdisjoint(line.strip() for line in block.search):
        return _place_strictly(_strict_attempts(block), work.views) or original
    return original


def _strict_attempts(block: Block) -> Iterator[_Attempt]:
    yield from ((None, block, finder) for finder in STRICT_FINDERS)
    readings = tuple(readings_without_drift(block))
    yield from ((each.tier, each.block, finder) for finder in STRICT_FINDERS for each in readings)


def _place_strictly(attempts: Iterable[_Attempt], views: TextViews) -> Placing | None:
    for tier, block, finder in attempts:
        found = narrowed(finder(block, views), block, views)
        if found:
            return _merge_found(tier, block, found, views)
    return None


def _merge_found(tier: Tier | None, block: Block, found: list[Alignment], views: TextViews) -> Placing:
    if len(found) > 1:
        return refuse_ambiguous(found, views)
    if _also_inside_lines(block, found[0], views):
        return refuse_places(_inline_places(block, views), views)
    hunks = _merged(block, found[0], views)
    return hunks if isinstance(hunks, EditError) else Placed(tier or found[0].tier, tuple(hunks))


def _merged(block: Block, found: Alignment, views: TextViews) -> list[Hunk] | EditError:
    expanded = expand_replace(block)
    if expanded is None:
        return refuse(ErrorCode.ELISION, block, views, found.first)
    hunks = merge(expanded, found, views.lines)
    if isinstance(hunks, Conflict):
        return refuse_conflict(hunks, block, views)
    hunks = [hunk for hunk in hunks if tuple(views.lines[hunk.start : hunk.end]) != hunk.lines]
    if not hunks:
        return refuse(ErrorCode.NO_CHANGE, block, views, found.first)
    if all(_stands_already(hunk, views.lines, found.pairs) for hunk in hunks):
        return refuse(ErrorCode.ALREADY_APPLIED, block, views, hunks[0].start)
    sign = escaped_sign([line for hunk in hunks for line in hunk.lines], views)
    if sign is not None:
        return refuse_escaped(sign, block)
    if any(indent_of(line) for line in block.search):
        return hunks
    return [replace(hunk, lines=indented_as_file(hunk.lines, views)) for hunk in hunks]


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


def _place_without_search(block: Block, work: WorkingText) -> Placing:
    """New text for an empty file; below an anchor or at the end of the file where a patch says so."""
    lines = work.views.lines
    if not block.replace:
        return refuse(ErrorCode.NO_CHANGE, block, work.views)
    if all(is_blank(line) for line in lines):
        return Placed(Tier.EXACT, (Hunk(0, len(lines), block.replace),))
    at = anchor_line(block.anchors, work.views) if block.anchors else None
    if at is not None and not block.search:
        return Placed(Tier.EXACT, (Hunk(at + 1, at + 1, block.replace),))
    if block.at_end and not block.search and not block.anchors:
        return Placed(Tier.EXACT, (Hunk(len(lines), len(lines), block.replace),))
    return refuse(ErrorCode.EMPTY_SEARCH, block, work.views)


def _place_loosely(block: Block, views: TextViews) -> Placing:
    """What no strict tier found: part of a line, done already, with elisions, or resembling."""
    if _is_done(block, views):
        return refuse(ErrorCode.ALREADY_APPLIED, block, views)
    if not block.lines_only:
        inline = _place_inline(block, views)
        if inline is not None:
            return inline
    if any(is_elision(line) for line in block.search):
        return _place_parts(block, views)
    for reading in (Reading(Tier.SIMILAR, block), *readings_without_drift(block)):
        found = narrowed(find_similar(reading.block, views), reading.block, views)
        if len(found) > 1:
            return refuse_ambiguous(found, views)
        if found:
            return _merge_found(reading.tier, reading.block, found, views)
    return refuse(ErrorCode.NOT_FOUND, block, views)


def _is_done(block: Block, views: TextViews) -> bool:
    """Whether REPLACE stands in the file as it is, but for blanks."""
    keys = [line.strip() for line in block.replace if not is_blank(line)]
    known = {line.strip() for line in block.search}
    if any(key not in known and not views.stripped.places([key]) for key in keys):
        return False
    telling = any(sum(map(str.isalnum, key)) > 2 for key in keys)
    return telling and bool(views.visible.places(keys))


def _also_inside_lines(block: Block, found: Alignment, views: TextViews) -> bool:
    """Whether SEARCH, read as a string, fits more places than the one found by whole lines."""
    if block.lines_only or block.hint is not None or found.tier not in (Tier.EXACT, Tier.TRAILING, Tier.INDENTATION):
        return False
    end = "\n" if block.ends_line else ""
    return f"{views.exact.joined}{end}".count("\n".join(block.search) + end) > 1


def _inline_places(block: Block, views: TextViews) -> list[LineRange]:
    text, wanted = views.exact.joined, "\n".join(block.search)
    places: list[LineRange] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < 20:
        row = text.count("\n", 0, at)
        places.append(LineRange(row, row + len(block.search) - 1))
        at = text.find(wanted, at + 1)
    return places


def _place_inline(block: Block, views: TextViews) -> Placing | None:
    """SEARCH as a part of a line, or from within one line to within another; None when it is nowhere."""
    text, wanted, new = views.exact.joined, "\n".join(block.search), "\n".join(block.replace)
    places = _inline_places(block, views)
    if not places or wanted[:1] == "\n" or wanted[-1:] == "\n":
        return None
    if len(places) > 1:
        return refuse_places(places, views)
    if expand_replace(block) is not block:
        return refuse(ErrorCode.ELISION, block, views)
    at = text.index(wanted)
    if new and wanted in new and text.find(new, max(0, at - len(new)), at + len(wanted) + len(new)) >= 0:
        return refuse(ErrorCode.ALREADY_APPLIED, block, views, places[0].start - 1)
    start = text.rindex("\n", 0, at) + 1
    end = text.index("\n", at + len(wanted))
    lines = (text[start:at] + new + text[at + len(wanted) : end]).split("\n")
    return Placed(Tier.INLINE, (Hunk(places[0].start - 1, places[0].end, tuple(lines)),))


def _place_parts(block: Block, views: TextViews) -> Placing:
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
            return refuse_ambiguous(list(places.values()), views)
        merged = _merged(part, next(iter(places.values())), views)
        if isinstance(merged, EditError):
            return merged
        hunks.extend(merged)
    return Placed(Tier.ELISION, tuple(hunks)) if hunks else refuse(ErrorCode.NO_CHANGE, block, views)


def _chains(parts: Sequence[Block], views: TextViews) -> list[tuple[Alignment, ...]]:
    """Every way to find the parts one below the other; nothing when they have too many places."""
    chains: list[tuple[Alignment, ...]] = [()]
    for part in parts:
        found = _find_strictly(part, views)
        chains = [(*chain, each) for chain in chains for each in found if not chain or chain[-1].last < each.first]
        if len(chains) > 400:
            return []
    return chains


def _find_strictly(part: Block, views: TextViews) -> list[Alignment]:
    if all(is_blank(line) for line in part.search):
        return []
    found = (finder(part, views) for finder in STRICT_FINDERS)
    return next((each for each in found if each), [])


def longest_exact(readings: Sequence[Block], views: TextViews) -> Block | None:
    """The reading whose SEARCH is the longest that the file has; None when it has none."""
    fitting = [each for each in readings if each.search and find_exact(each, views)]
    return max(fitting, key=lambda each: len(each.search), default=None)
