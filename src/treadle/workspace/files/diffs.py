"""Differences between two texts: for a person as a unified diff, for the model as the new lines with their numbers."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

_CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file"
_ECHOED = 200


class DiffHunk(Struct, frozen=True):
    """Lines `old_start` to `old_end` became `new_start` to `new_end`; counted from 0, the ends not included."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Diff(Struct, frozen=True):
    """The changed places between two texts, in order, and the lines of both."""

    old: Sequence[str]
    new: Sequence[str]
    hunks: tuple[DiffHunk, ...]

    @property
    def added(self) -> int:
        """How many lines are new."""
        return sum(hunk.new_end - hunk.new_start for hunk in self.hunks)

    @property
    def removed(self) -> int:
        """How many lines are gone."""
        return sum(hunk.old_end - hunk.old_start for hunk in self.hunks)

    def unified(self, name: str) -> str:
        """Write a unified diff; a missing file on one side is `/dev/null`."""
        lines = [f"--- {f'a/{name}' if self.old else '/dev/null'}", f"+++ {f'b/{name}' if self.new else '/dev/null'}"]
        for group in _groups(self.hunks):
            lines += self._group(group)
        return "\n".join(lines) + "\n"

    def _group(self, group: Sequence[DiffHunk]) -> Iterator[str]:
        start = max(0, group[0].old_start - _CONTEXT)
        end = min(len(self.old), group[-1].old_end + _CONTEXT)
        shift_start = group[0].new_start - group[0].old_start
        shift_end = group[-1].new_end - group[-1].old_end
        yield f"@@ -{_range(start, end)} +{_range(start + shift_start, end + shift_end)} @@"
        at = start
        for hunk in group:
            yield from (f" {line}" for line in self.old[at : hunk.old_start])
            yield from (f"-{line}" for line in self.old[hunk.old_start : hunk.old_end])
            yield from (f"+{line}" for line in self.new[hunk.new_start : hunk.new_end])
            at = hunk.old_end
        yield from (f" {line}" for line in self.old[at:end])

    def echo(self) -> str:
        """Show the changed places of the new text with line numbers and some lines around, within bounds."""
        shown: list[str] = []
        last = 0
        for hunk in self.hunks:
            start = max(last, hunk.new_start - _CONTEXT)
            end = min(len(self.new), hunk.new_end + _CONTEXT)
            if start > last or not shown:
                shown += ["..."] if start else []
            shown += number_lines(self.new[start:end], start + 1)
            last = max(last, end)
            if len(shown) > _ECHOED:
                return "\n".join([*shown[:_ECHOED], "[... the other changes are not shown; use read_file]"])
        return "\n".join([*shown, "..."] if last < len(self.new) else shown)


def compare(before: str, after: str) -> Diff:
    """Find the differences by lines; line ends count only where a text does not use one kind throughout."""
    plain = _uses_crlf(before) and _uses_crlf(after)
    old, new = _lines(before, plain=plain), _lines(after, plain=plain)
    same = _same_start(old, new)
    old_rest, new_rest = old[same:], new[same:]
    tail = _same_start(old_rest[::-1], new_rest[::-1])
    matcher = SequenceMatcher(None, old_rest[: len(old_rest) - tail], new_rest[: len(new_rest) - tail])
    hunks = (
        DiffHunk(same + old_start, same + old_end, same + new_start, same + new_end)
        for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    )
    return Diff(old, new, tuple(hunks))


def number_lines(lines: Sequence[str], first: int) -> list[str]:
    """Put its number before each line: `12 | text`."""
    return [f"{number} | {line}" for number, line in enumerate(lines, first)]


def _same_start(one: Sequence[str], other: Sequence[str]) -> int:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _uses_crlf(text: str) -> bool:
    return text.count("\r\n") == text.count("\n")


def _lines(text: str, *, plain: bool) -> list[str]:
    if not text:
        return []
    lines = (text.replace("\r\n", "\n") if plain else text).split("\n")
    if lines[-1]:
        lines[-1] += _NO_NEWLINE
        return lines
    return lines[:-1]


def _groups(hunks: Sequence[DiffHunk]) -> Iterator[list[DiffHunk]]:
    group: list[DiffHunk] = []
    for hunk in hunks:
        if group and hunk.old_start - group[-1].old_end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"
