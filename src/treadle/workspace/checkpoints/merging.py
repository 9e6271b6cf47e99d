"""Lines of two or three versions of a file: where they differ, and what both sides changed put together."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import distance  # not from the inside of it: two threads would lock each other out

_MOST_COMPARED = 400_000_000
"""Pairs of lines that are compared, an eighth of a byte each; beyond, what lies between the same ends is one change."""

_LOOKED_AT = 8000


class LineChange(NamedTuple):
    """Lines `start` to `end` of the one became `new_start` to `new_end` of the other; from 0, ends not included."""

    start: int
    end: int
    new_start: int
    new_end: int


def is_binary(data: bytes) -> bool:
    """Whether a file is no text: it has a NUL byte near its beginning."""
    return b"\0" in data[:_LOOKED_AT]


def split_lines(data: bytes) -> list[bytes]:
    """Split into lines at line feeds alone, which stay with their lines."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def line_edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange]:
    """Give the changes that lead from one text to another, in order; no two of them touch."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if not left and not right:
        return []
    if not left or not right or len(left) * len(right) > _MOST_COMPARED:
        return [LineChange(start, start + len(left), start, start + len(right))]
    numbers: dict[bytes, int] = {}
    one = [numbers.setdefault(line, len(numbers)) for line in left]
    other = [numbers.setdefault(line, len(numbers)) for line in right]
    found: list[LineChange] = []
    for step in distance.LCSseq.opcodes(one, other):
        if step.tag == "equal":
            continue
        change = LineChange(
            start + step.src_start, start + step.src_end, start + step.dest_start, start + step.dest_end
        )
        if found and found[-1].end == change.start and found[-1].new_end == change.new_start:
            change = LineChange(found[-1].start, change.end, found[-1].new_start, change.new_end)
            found.pop()
        found.append(change)
    return found


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Put together what two sides changed of `base`; None where both changed the same or adjoining lines."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if is_binary(base) or is_binary(ours) or is_binary(theirs):
        return None
    lines, mine, other = split_lines(base), split_lines(ours), split_lines(theirs)
    sides = [(line_edits(lines, mine), mine), (line_edits(lines, other), other)]
    changes = sorted(
        (change.start, change.end, tuple(text[change.new_start : change.new_end]))
        for found, text in sides
        for change in found
    )
    merged: list[bytes] = []
    at, last = 0, None
    for change in changes:
        if change == last:
            continue
        start, end, new = change
        if last is not None and start <= at:
            return None
        merged += lines[at:start]
        merged += new
        at, last = end, change
    return b"".join(merged + lines[at:])
