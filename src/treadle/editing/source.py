"""A file's text as lines that remember their line ends, and the working copy that blocks are applied to."""

import operator
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.edit_results import Change, LineRange
from treadle.editing.line_keys import TextViews

BOM = "\ufeff"


class Hunk(Struct, frozen=True):
    """Replace lines `start` to `end` (from 0, `end` excluded) by `lines`; insert when they are equal.

    Of an `exact` hunk nothing is left out, and its last line takes the line end of the last one that it replaces.
    `closed` says whether the text ends in a line end afterwards; None: as before.
    """

    start: int
    end: int
    lines: tuple[str, ...]
    exact: bool = False
    closed: bool | None = None


class KeptLines(Struct, frozen=True):
    """A run of original lines still in the text: `count` lines from `old` on, now from `new` on (from 0)."""

    old: int
    new: int
    count: int

    def without(self, start: int, end: int, added: int) -> Iterator["KeptLines"]:
        """What is left of the run when current lines `start` to `end` give way to `added` new ones."""
        before = min(self.count, max(0, start - self.new))
        after = min(self.count, max(0, self.new + self.count - end))
        if before:
            yield KeptLines(self.old, self.new, before)
        if after and before + after <= self.count:
            skipped = self.count - after
            yield KeptLines(self.old + skipped, self.new + skipped + added - (end - start), after)


class SourceText(Struct, frozen=True):
    """Lines and their ends (`\\n`, `\\r\\n`, or nothing at the end of a file without a final newline)."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    bom: bool

    @property
    def usual_end(self) -> str:
        """The line end most lines have, `\\n` for a file of one line."""
        return "\r\n" if self.ends.count("\r\n") > self.ends.count("\n") else "\n"


def read_source(text: str) -> SourceText:
    """Split at `\n` and `\r\n` only; form feeds and lone returns are content."""
    bom = text.startswith(BOM)
    lines = text.removeprefix(BOM).split("\n")
    last = lines.pop()
    ends = ["\n"] * len(lines)
    if "\r" in text:
        ends = ["\r\n" if line.endswith("\r") else "\n" for line in lines]
        lines = [line.removesuffix("\r") for line in lines]
    if last:
        lines.append(last)
        ends.append("")
    return SourceText(tuple(lines), tuple(ends), bom)


def plain_lines(text: str) -> tuple[str, ...]:
    """The lines of a model's text, without line ends and byte order mark."""
    return read_source(text).lines


class WorkingText:
    """The text while blocks are applied; it knows which original lines are still there.

    `added` holds every line that a block brought, stripped.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.lines = list(source.lines)
        self.ends = list(source.ends)
        self.kept = [KeptLines(0, 0, len(source.lines))]
        self.original = TextViews(source.lines)
        self.views = self.original
        self.added: set[str] = set()

    def splice(self, hunks: Sequence[Hunk]) -> None:
        """Apply hunks that do not overlap; lines which stay keep their bytes."""
        for hunk in sorted(hunks, key=lambda each: each.start, reverse=True):
            trimmed = _trimmed(hunk, self.lines)
            self._splice_one(trimmed)
            self.added.update(map(str.strip, trimmed.lines))
            self.views = self.views.spliced(trimmed.start, trimmed.end, trimmed.lines)

    def text(self) -> str:
        """The whole text with its line ends and byte order mark."""
        if self.ends.count("\n") == len(self.ends):
            body = "\n".join([*self.lines, ""])
        else:
            body = "".join(map(operator.add, self.lines, self.ends))
        return BOM + body if self.source.bom else body

    def is_original(self, start: int, end: int) -> bool:
        """Whether no block has changed current lines `start` to `end` (from 0, excluded)."""
        at = bisect_right(self.kept, start, key=lambda run: run.new) - 1
        run = self.kept[at] if at >= 0 else KeptLines(0, 0, 0)
        return run.new <= start and end <= run.new + run.count

    def translate(self, hunks: Sequence[Hunk]) -> list[Hunk] | None:
        """Hunks on the original lines as hunks on the current ones; None when those were changed."""
        if self.views is self.original:
            return list(hunks)
        moved = [self._translate_one(_trimmed(hunk, self.source.lines)) for hunk in hunks]
        return None if None in moved else [hunk for hunk in moved if hunk is not None]

    def changes(self) -> tuple[Change, ...]:
        """The changed regions between the original and the current lines."""
        found: list[Change] = []
        old = new = 0
        for run in (*self.kept, KeptLines(len(self.source.lines), len(self.lines), 0)):
            if run.old > old or run.new > new:
                found.append(Change(LineRange(old + 1, run.old), LineRange(new + 1, run.new)))
            old, new = run.old + run.count, run.new + run.count
        return tuple(found)

    def _translate_one(self, hunk: Hunk) -> Hunk | None:
        if hunk.start == hunk.end:
            at = self._now(hunk.start)
            if at is None:
                before = -1 if hunk.start == 0 else self._now(hunk.start - 1)
                at = None if before is None else before + 1
            return None if at is None else replace(hunk, start=at, end=at)
        first, last = self._now(hunk.start), self._now(hunk.end - 1)
        if first is None or last is None or last - first != hunk.end - 1 - hunk.start:
            return None
        return replace(hunk, start=first, end=last + 1)

    def _now(self, old: int) -> int | None:
        """Where an original line is now; None when it was changed."""
        at = bisect_right(self.kept, old, key=lambda run: run.old) - 1
        run = self.kept[at] if at >= 0 else KeptLines(0, 0, 0)
        return run.new + old - run.old if run.old <= old < run.old + run.count else None

    def _splice_one(self, hunk: Hunk) -> None:
        start, end, count = hunk.start, hunk.end, len(hunk.lines)
        near, last = self._end_near(start, end), end == len(self.lines)
        if count == end - start:
            ends = self.ends[start:end]
        else:
            ends = [near] * count
            if hunk.exact and ends:
                ends[-1] = self.ends[end - 1]
            if hunk.closed is None:
                self._keep_final_newline(start, end, ends)
        self.lines[start:end] = hunk.lines
        self.ends[start:end] = ends
        if hunk.closed is not None and last and self.ends:
            self.ends[-1] = (self.ends[-1] or near) if hunk.closed else ""
        self.kept = [part for run in self.kept for part in run.without(start, end, count)]

    def _end_near(self, start: int, end: int) -> str:
        near = [*self.ends[start:end], *self.ends[max(0, start - 1) : start], *self.ends[end : end + 1]]
        return next(filter(None, near), None) or self.source.usual_end

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
    if hunk.exact:
        return hunk
    start, end = hunk.start, hunk.end
    low, high = 0, len(hunk.lines)
    while start < end and low < high and lines[start] == hunk.lines[low]:
        start, low = start + 1, low + 1
    while start < end and low < high and lines[end - 1] == hunk.lines[high - 1]:
        end, high = end - 1, high - 1
    return Hunk(start, end, hunk.lines[low:high])
