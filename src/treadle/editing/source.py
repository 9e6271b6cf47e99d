"""A file's text as lines that remember their line ends, and the working copy that blocks are applied to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from treadle.editing.keys import TextViews
from treadle.editing.results import Change, LineRange

BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace lines `start` to `end` (from 0, `end` excluded) by `lines`; insert when they are equal."""

    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines and their ends (`\\n`, `\\r\\n`, or nothing at the end of a file without a final newline)."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    bom: bool

    @property
    def usual_end(self) -> str:
        """The line end most lines have, `\\n` for a file of one line."""
        counted = Counter(end for end in self.ends if end)
        return counted.most_common(1)[0][0] if counted else "\n"


def read_source(text: str) -> SourceText:
    """Split at `\\n` and `\\r\\n` only; form feeds and lone returns are content."""
    bom = text.startswith(BOM)
    parts = text.removeprefix(BOM).split("\n")
    last = parts.pop()
    lines = [part.removesuffix("\r") for part in parts]
    ends = ["\r\n" if len(line) < len(part) else "\n" for line, part in zip(lines, parts, strict=True)]
    if last:
        lines.append(last)
        ends.append("")
    return SourceText(tuple(lines), tuple(ends), bom)


def plain_lines(text: str) -> tuple[str, ...]:
    """The lines of a model's text, without line ends and byte order mark."""
    return read_source(text).lines


class WorkingText:
    """The text while blocks are applied: each line knows which original line it is."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.lines = list(source.lines)
        self.ends = list(source.ends)
        self.origins: list[int | None] = list(range(len(source.lines)))
        self.original = TextViews(source.lines)
        self.views = self.original

    def splice(self, hunks: Sequence[Hunk]) -> None:
        """Apply hunks that do not overlap; lines which stay keep their bytes."""
        for hunk in sorted(hunks, key=lambda each: each.start, reverse=True):
            trimmed = _trimmed(hunk, self.lines)
            self._splice_one(trimmed)
            self.views = self.views.spliced(trimmed.start, trimmed.end, trimmed.lines)

    def text(self) -> str:
        """The whole text with its line ends and byte order mark."""
        body = "".join([part for pair in zip(self.lines, self.ends, strict=True) for part in pair])
        return BOM + body if self.source.bom else body

    def translate(self, hunks: Sequence[Hunk]) -> list[Hunk] | None:
        """Hunks on the original lines as hunks on the current ones; None when those were changed."""
        if self.views is self.original:
            return list(hunks)
        now = {origin: index for index, origin in enumerate(self.origins) if origin is not None}
        moved = [self._translate_one(_trimmed(hunk, self.source.lines), now) for hunk in hunks]
        return None if None in moved else [hunk for hunk in moved if hunk is not None]

    def changes(self) -> tuple[Change, ...]:
        """The changed regions between the original and the current lines."""
        found: list[Change] = []
        old = new = 0
        total_old, total_new = len(self.source.lines), len(self.lines)
        while old < total_old or new < total_new:
            if new < total_new and self.origins[new] == old:
                old, new = old + 1, new + 1
                continue
            old_start, new_start = old, new
            while new < total_new and self.origins[new] is None:
                new += 1
            origin = self.origins[new] if new < total_new else None
            old = total_old if origin is None else origin
            found.append(Change(LineRange(old_start + 1, old), LineRange(new_start + 1, new)))
        return tuple(found)

    def _translate_one(self, hunk: Hunk, now: dict[int, int]) -> Hunk | None:
        if hunk.start == hunk.end:
            at = now.get(hunk.start)
            if at is None:
                before = -1 if hunk.start == 0 else now.get(hunk.start - 1)
                at = None if before is None else before + 1
            return None if at is None else Hunk(at, at, hunk.lines)
        places = [now.get(index) for index in range(hunk.start, hunk.end)]
        first = places[0]
        if first is None or places != list(range(first, first + len(places))):
            return None
        return Hunk(first, first + len(places), hunk.lines)

    def _splice_one(self, hunk: Hunk) -> None:
        start, end, count = hunk.start, hunk.end, len(hunk.lines)
        if count == end - start:
            ends = self.ends[start:end]
        else:
            ends = [self._end_near(start, end)] * count
            self._keep_final_newline(start, end, ends)
        self.lines[start:end] = hunk.lines
        self.ends[start:end] = ends
        self.origins[start:end] = [None] * count

    def _end_near(self, start: int, end: int) -> str:
        near = [*self.ends[start:end], *self.ends[max(0, start - 1) : start], *self.ends[end : end + 1]]
        return next((each for each in near if each), self.source.usual_end)

    def _keep_final_newline(self, start: int, end: int, ends: list[str]) -> None:
        """At the end of the file: it has a final newline afterwards if it had one before."""
        if end < len(self.lines) or not self.ends or self.ends[-1]:
            return
        if ends:
            ends[-1] = ""
            if start == end:
                self.ends[-1] = self.source.usual_end
        elif start > 0:
            self.ends[start - 1] = ""


def _trimmed(hunk: Hunk, lines: Sequence[str]) -> Hunk:
    """The hunk without the leading and trailing lines that it does not change."""
    start, end = hunk.start, hunk.end
    low, high = 0, len(hunk.lines)
    while start < end and low < high and lines[start] == hunk.lines[low]:
        start, low = start + 1, low + 1
    while start < end and low < high and lines[end - 1] == hunk.lines[high - 1]:
        end, high = end - 1, high - 1
    return Hunk(start, end, hunk.lines[low:high])
