"""Which words of changed lines differ, so that a small change in a long line is seen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from treadle.protocol.patterns import regex
from treadle.workspace.checkpoints.merging import line_edits

_WORD = regex(r"\w+|\s+|[^\w\s]")

_MOST_COMPARED = 4_000_000
"""Pairs of words of one change that are compared; no words are marked in a larger one."""

_LEAST_ALIKE = 0.4
"""Share of two lines that must be the same: what was written anew is no change of some words."""

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Places in a line, by their first character and the one behind the last."""


class _Word(NamedTuple):
    line: int
    start: int
    end: int
    text: str


def changed_words(old: Sequence[str], new: Sequence[str]) -> tuple[dict[int, Spans], dict[int, Spans]]:
    """Give what differs in lines that were changed in parts: of the old ones and the new ones, by index."""
    left, right = (list(_words(lines)) for lines in (old, new))
    if not left or not right or len(left) * len(right) > _MOST_COMPARED:
        return {}, {}
    common = list(_common(left, right))
    alike: Counter[tuple[int, int]] = Counter()
    for one, other in common:
        alike[left[one].line, right[other].line] += len(left[one].text.strip())
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for (before, after), size in alike.most_common():
        whole = _weight(old[before]) + _weight(new[after])
        if before not in pairs and after not in taken and 2 * size >= _LEAST_ALIKE * whole:
            pairs[before] = after
            taken.add(after)
    gone: dict[int, Spans] = {}
    come: dict[int, Spans] = {}
    for before, after in pairs.items():  # a word may be in the other line, too, though that of another line was nearer
        lines = (list(_words([old[before]])), list(_words([new[after]])))
        same = list(_common(*lines))
        gone[before] = _changed(lines[0], {one for one, _ in same})
        come[after] = _changed(lines[1], {other for _, other in same})
    gone, come = ({line: spans for line, spans in found.items() if spans} for found in (gone, come))
    return gone, come


def _words(lines: Sequence[str]) -> Iterator[_Word]:
    for number, line in enumerate(lines):
        for found in _WORD.finditer(line):
            yield _Word(number, found.start(), found.end(), found[0])


def _common(left: Sequence[_Word], right: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Give the words that are the same in both, in their order."""
    one = other = 0
    for change in line_edits(
        *([word.text.encode(errors="surrogatepass") for word in words] for words in (left, right))
    ):
        yield from zip(range(one, change.start), range(other, change.new_start), strict=True)
        one, other = change.end, change.new_end
    yield from zip(range(one, len(left)), range(other, len(right)), strict=True)


def _weight(line: str) -> int:
    return sum(len(piece) for piece in line.split())


def _changed(words: Sequence[_Word], same: set[int]) -> Spans:
    """Give the places of words that are not the same; what is blank between two of them belongs to both."""
    spans: list[tuple[int, int]] = []
    for number, word in enumerate(words):
        if number in same:
            continue
        last = words[number - 1] if number else word
        if spans and (spans[-1][1] == word.start or (last.text.isspace() and spans[-1][1] == last.start)):
            spans[-1] = (spans[-1][0], word.end)
        else:
            spans.append((word.start, word.end))
    return tuple(spans)
