"""Which words of changed lines differ, so that a small change in a long line is seen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from treadle.protocol.patterns import regex
from treadle.workspace.checkpoints.merging import line_edits

_WORD = regex(r"\w+|\s+|[^\w\s]")

_MOST_COMPARED, _MOST_LOOKED_FOR = 4_000_000, 400_000
"""Pairs of words of one change that are compared, and words that are looked for in lines; no words are marked in a
larger change."""

_LEAST_ALIKE = 0.4
"""Share of two lines that must be the same: what was written anew is no change of some words."""

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Places in a line, by their first character and the one behind the last."""


class _Word(NamedTuple):
    start: int
    end: int
    text: str


def changed_words(old: Sequence[str], new: Sequence[str]) -> tuple[dict[int, Spans], dict[int, Spans]]:
    """Give what differs in lines that were changed in parts: of the old ones and the new ones, by index.

    A line is compared with the one that is most like it, wherever that stands. What it is indented by is no word.
    """
    left, right = ([list(_words(line)) for line in lines] for lines in (old, new))
    size = sum(map(len, left))
    if size * sum(map(len, right)) > _MOST_COMPARED or size * len(right) > _MOST_LOOKED_FOR:
        return {}, {}
    gone: dict[int, Spans] = {}
    come: dict[int, Spans] = {}
    for before, after in _pairs(left, right):
        same = list(_common(left[before], right[after]))
        if marks := _changed(left[before], {one for one, _ in same}):
            gone[before] = marks
        if marks := _changed(right[after], {other for _, other in same}):
            come[after] = marks
    return gone, come


def _pairs(left: Sequence[Sequence[_Word]], right: Sequence[Sequence[_Word]]) -> Iterator[tuple[int, int]]:
    """Pair the lines that are alike enough, those that are most alike first, of equals those that stand alike."""
    bags = [[Counter(word.text for word in line if not word.text.isspace()) for line in side] for side in (left, right)]
    weights = [[sum(len(text) * count for text, count in bag.items()) for bag in side] for side in bags]
    found: list[tuple[float, int, int, int]] = []
    for before, one in enumerate(bags[0]):
        for after, other in enumerate(bags[1]):
            whole = weights[0][before] + weights[1][after]
            common = sum(len(text) * min(count, other[text]) for text, count in one.items() if text in other)
            if common and 2 * common >= _LEAST_ALIKE * whole:
                found.append((-2 * common / whole, abs(before - after), before, after))
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, _, before, after in sorted(found):
        if before not in taken[0] and after not in taken[1]:
            taken[0].add(before)
            taken[1].add(after)
            yield before, after


def _words(line: str) -> Iterator[_Word]:
    for found in _WORD.finditer(line, len(line) - len(line.lstrip())):
        yield _Word(found.start(), found.end(), found[0])


def _common(left: Sequence[_Word], right: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Give the words that are the same in both, in their order."""
    one = other = 0
    for change in line_edits(
        *([word.text.encode(errors="surrogatepass") for word in words] for words in (left, right))
    ):
        yield from zip(range(one, change.start), range(other, change.new_start), strict=True)
        one, other = change.end, change.new_end
    yield from zip(range(one, len(left)), range(other, len(right)), strict=True)


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
