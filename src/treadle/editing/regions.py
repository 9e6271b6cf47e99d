"""Which of the file's lines a change between SEARCH and REPLACE stands for."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.edit_results import EditBlock, ErrorCode, Tier
from treadle.editing.line_keys import is_blank, likeness

_ALIKE = 60.0

Opcode = tuple[str, int, int, int, int]


class Alignment(Struct, frozen=True):
    """Where SEARCH stands: for each of its lines the file's line (from 0), None for one the file has not."""

    tier: Tier
    pairs: tuple[int | None, ...]

    @property
    def first(self) -> int:
        """The first line found."""
        return next(pair for pair in self.pairs if pair is not None)

    @property
    def last(self) -> int:
        """The last line found."""
        return next(pair for pair in reversed(self.pairs) if pair is not None)


class Conflict(Struct, frozen=True):
    """Why a found block cannot be merged; `line` is the file's line (from 0) that stands in the way."""

    code: ErrorCode
    line: int


class Region(Struct, frozen=True):
    """REPLACE lines `new_low` to `new_high` go where the file's lines `start` to `end` are (from 0).

    They stand for the SEARCH lines `low` to `high`.
    """

    start: int
    end: int
    low: int
    high: int
    new_low: int
    new_high: int


def find_region(block: EditBlock, found: Alignment, change: Opcode, lines: Sequence[str]) -> Region | Conflict | None:
    """The region of one change; a conflict where it is open; None for blank lines the file has not."""
    return _RegionFinder(block, found, lines).find(change)


class _RegionFinder(Struct, frozen=True):
    block: EditBlock
    found: Alignment
    lines: Sequence[str]

    def find(self, change: Opcode) -> Region | Conflict | None:
        _, low, high, new_low, new_high = change
        pairs, search = self.found.pairs, self.block.search
        held = [pair for pair in pairs[low:high] if pair is not None]
        if any(pairs[at] is None and not is_blank(search[at]) for at in range(low, high)):
            return Conflict(ErrorCode.NOT_FOUND, held[0] if held else self.found.first)
        region = Region(0, 0, low, high, new_low, new_high)
        if new_high - new_low != high - low and new_low < new_high:
            region = self._with_extra_blanks(region)
        if held:
            return self._changed(region, held)
        inserted = self.block.replace[region.new_low : region.new_high]
        if not inserted or (high > low and all(map(is_blank, inserted))):
            return None
        return self._inserted(region, inserted)

    def _with_extra_blanks(self, region: Region) -> Region:
        """Beside a change the model's blank lines count, also those that the file has not."""
        pairs, search = self.found.pairs, self.block.search
        low, high = region.low, region.high
        while low > 0 and pairs[low - 1] is None and is_blank(search[low - 1]):
            low -= 1
        while high < len(search) and pairs[high] is None and is_blank(search[high]):
            high += 1
        low = region.low if low == 0 else low
        high = region.high if high == len(search) else high
        return replace(
            region,
            low=low,
            high=high,
            new_low=region.new_low - (region.low - low),
            new_high=region.new_high + (high - region.high),
        )

    def _changed(self, region: Region, held: Sequence[int]) -> Region | Conflict:
        pairs, low, high = self.found.pairs, region.low, region.high
        outer = (low if low == 0 else None, high - 1 if high == len(pairs) else None)
        if any(at is not None and pairs[at] is None for at in outer):
            return Conflict(ErrorCode.CHANGED_SINCE, held[0])
        unsaid = set(range(held[0], held[-1] + 1)) - set(held)
        start, end = held[0], held[-1] + 1
        if region.new_low == region.new_high:
            unsaid |= self._slid_over(low, high)
        elif region.new_high - region.new_low != high - low:
            start, end = self._with_gaps(region, start, end)
            unsaid |= {*range(start, held[0]), *range(held[-1] + 1, end)}
        foreign = self._visible(unsaid)
        if foreign is not None:
            return Conflict(ErrorCode.CHANGED_SINCE, foreign)
        return replace(region, start=start, end=end)

    def _slid_over(self, low: int, high: int) -> set[int]:
        """The file's lines that some other reading of the same deletion would have inside it.

        Where the line before a run equals its last line, the deletion may as well start one line higher.
        """
        keys = [line.strip() for line in self.block.search]
        first, end = low, high
        while first > 0 and keys[first - 1] == keys[first - 1 + high - low]:
            first -= 1
        while end < len(keys) and keys[end] == keys[end - (high - low)]:
            end += 1
        held = [pair for pair in self.found.pairs[first:end] if pair is not None]
        return set(range(held[0], held[-1] + 1)) - set(held)

    def _with_gaps(self, region: Region, start: int, end: int) -> tuple[int, int]:
        """The run with the lines between it and its context: new lines might go on either side of them.

        Not so where the outermost new line is plainly the outermost old one, changed.
        """
        pairs, search, new = self.found.pairs, self.block.search, self.block.replace
        before = pairs[region.low - 1] if region.low else None
        after = pairs[region.high] if region.high < len(pairs) else None
        if not _alike(search[region.low], new[region.new_low]):
            start = start if before is None else before + 1
        if not _alike(search[region.high - 1], new[region.new_high - 1]):
            end = end if after is None else after
        return start, end

    def _context(self, low: int, high: int) -> tuple[int | None, int | None]:
        pairs, search = self.found.pairs, self.block.search
        held = [at for at, pair in enumerate(pairs) if pair is not None and not is_blank(search[at])]
        before = next((pairs[at] for at in reversed(held) if at < low), None)
        after = next((pairs[at] for at in held if at >= high), None)
        return before, after

    def _inserted(self, region: Region, inserted: Sequence[str]) -> Region | Conflict:
        pairs = self.found.pairs
        before = next((pair for pair in reversed(pairs[: region.low]) if pair is not None), None)
        after = next((pair for pair in pairs[region.high :] if pair is not None), None)
        if before is None or after is None:
            at = after if before is None else before + 1
            return Conflict(ErrorCode.NOT_FOUND, self.found.first) if at is None else replace(region, start=at, end=at)
        outer_before, outer_after = self._context(region.low, region.high)
        low = before if outer_before is None else outer_before
        high = after if outer_after is None else outer_after
        foreign = self._visible(set(range(low + 1, high)))
        if foreign is not None:
            return Conflict(ErrorCode.CHANGED_SINCE, foreign)
        start, end = before + 1, after
        leads, trails = is_blank(inserted[0]), is_blank(inserted[-1])
        # The file has blank lines here that SEARCH left out. New text that brings its own leans away from
        # them where SEARCH has none at all; otherwise the model's count holds.
        if leads != trails and (outer_before, outer_after) == (before, after):
            start, end = (start, start) if leads else (end, end)
        return replace(region, start=start, end=end)

    def _visible(self, among: set[int]) -> int | None:
        return min((at for at in among if not is_blank(self.lines[at])), default=None)


def _alike(old: str, new: str) -> bool:
    return likeness(old.strip(), new.strip()) >= _ALIKE
