"""Characters that SEARCH and REPLACE share, in the form that the file has them: quotes, blanks, dashes, accents."""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from msgspec.structs import replace
from rapidfuzz import distance

from treadle.editing.edit_results import EditBlock
from treadle.editing.line_keys import TYPOGRAPHIC
from treadle.editing.regions import Alignment

_MOST_CELLS = 25_000_000
"""Pairs of words up to which two texts are compared; only their whole lines, beginnings and ends beyond."""

_WORD = re.compile(r"\w+|\W", re.DOTALL)
_FOLD = str.maketrans(TYPOGRAPHIC)

Form = tuple[int, int, str]
"""Characters `start` to `end` of a text, and how the file writes them."""
SharedRun = tuple[int, int, int]
"""Characters `start` to `end` of SEARCH, which stand in REPLACE from the third on."""


def in_form_of_file(block: EditBlock, found: Alignment, lines: Sequence[str]) -> EditBlock:
    """The block with look-alikes as the file has them, wherever REPLACE keeps what SEARCH has."""
    forms = [
        [] if pair is None else list(_forms(line, lines[pair]))
        for line, pair in zip(block.search, found.pairs, strict=True)
    ]
    if not any(forms):
        return block
    search = tuple(map(_with, block.search, forms))
    return replace(block, search=search, replace=_replaced(block, forms, search))


def _replaced(block: EditBlock, forms: Sequence[Sequence[Form]], search: Sequence[str]) -> tuple[str, ...]:
    """REPLACE with the forms of the shared text; a line that only moved has them as well."""
    at, wanted = 0, []
    for line, found in zip(block.search, forms, strict=True):
        wanted += [(at + start, at + end, raw) for start, end, raw in found]
        at += len(line) + 1
    new = "\n".join(block.replace)
    runs = iter(shared("\n".join(block.search), new))
    run, taken = next(runs, None), []
    for start, end, raw in wanted:
        while run is not None and run[1] < end:
            run = next(runs, None)
        if run is not None and run[0] <= start:
            taken.append((run[2] + start - run[0], run[2] + end - run[0], raw))
    moved: dict[str, set[str]] = {}
    for mine, theirs in zip(block.search, search, strict=True):
        moved.setdefault(mine.strip(), set()).add(theirs.strip())
    return tuple(
        _moved(line, moved.get(line.strip(), set())) or kept
        for line, kept in zip(block.replace, _with(new, taken).split("\n"), strict=False)
    )


def _moved(line: str, forms: set[str]) -> str:
    """A line of REPLACE that is one of SEARCH, as the file has it; empty where the file has several forms, or none."""
    text = line.strip()
    if not text or len(forms) != 1:
        return ""
    before, _, after = line.partition(text)
    return before + next(iter(forms)) + after


def _with(text: str, forms: Sequence[Form]) -> str:
    parts, done = [], 0
    for start, end, raw in forms:
        parts += [text[done:start], raw]
        done = end
    return "".join(parts) + text[done:]


def _forms(mine: str, theirs: str) -> Iterator[Form]:
    """Where a line of SEARCH writes otherwise what the file's line has: the same characters, in another form."""
    if mine.isascii() and theirs.isascii():
        return
    begin, end = len(mine) - len(mine.lstrip()), len(mine.rstrip())
    content = theirs.strip()
    ours, files = _units(mine[begin:end]), _units(content)
    folded, wanted = ("".join(fold for _, fold in units) for units in (ours, files))
    for low, high, beside in shared(folded, wanted):
        bounds = _bounds(ours, begin, low, high), _bounds(files, 0, beside, beside + high - low)
        yield from _other_forms(*bounds, mine, content)


def _bounds(units: Sequence[tuple[str, str]], at: int, low: int, high: int) -> dict[int, int]:
    """Between which characters of a line the folded characters `low` to `high` can be divided, counted from `low`."""
    folded, found = 0, {}
    for raw, fold in units:
        if low <= folded <= high:
            found[folded - low] = at
        folded, at = folded + len(fold), at + len(raw)
    if low <= folded <= high:
        found[folded - low] = at
    return found


def _other_forms(ours: dict[int, int], files: dict[int, int], mine: str, theirs: str) -> Iterator[Form]:
    both = [bound for bound in ours if bound in files]
    for low, high in pairwise(both):
        raw = theirs[files[low] : files[high]]
        if mine[ours[low] : ours[high]] != raw:
            yield ours[low], ours[high], raw


def _units(text: str) -> list[tuple[str, str]]:
    """The text in parts that are one character to a reader, each with its folded form, which is never empty."""
    if text.isascii():
        return [(char, char) for char in text]
    units: list[tuple[str, str]] = []
    pending = ""
    for char in text:
        before = units[-1][0] if units else ""
        if not char.translate(_FOLD):
            if units:
                units[-1] = (before + char, units[-1][1])
            else:
                pending += char
        elif units and _composes(before, char):
            units[-1] = (before + char, _folded(before + char))
        else:
            units.append((pending + char, _folded(char)))
            pending = ""
    return units


def _composes(before: str, char: str) -> bool:
    if char.isascii():
        return False
    return bool(unicodedata.combining(char)) or _folded(before + char) != _folded(before) + _folded(char)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.translate(_FOLD))


def shared(old: str, new: str) -> list[SharedRun]:
    """The runs that two texts share, in order: their beginnings, their ends, and words and characters between."""
    head, tail = _ends_alike(old, new)
    runs = [(0, head, 0), *_between(old[head : len(old) - tail], new[head : len(new) - tail], head)]
    runs.append((len(old) - tail, len(old), len(new) - tail))
    joined: list[SharedRun] = []
    for start, end, at in runs:
        if joined and joined[-1][1] == start and joined[-1][2] + start - joined[-1][0] == at:
            joined[-1] = (joined[-1][0], end, joined[-1][2])
        elif start < end:
            joined.append((start, end, at))
    return joined


def _between(old: str, new: str, offset: int) -> Iterator[SharedRun]:
    """The runs shared within two texts: words that each has once hold the rest in place."""
    ours, theirs = _WORD.findall(old), _WORD.findall(new)
    at, to, word, beside = offset, offset, 0, 0
    for mine, other in [*_anchors(ours, theirs), (len(ours), len(theirs))]:
        gap, new_gap = ours[word:mine], theirs[beside:other]
        yield from _in_gap(gap, new_gap, at, to)
        at, to = at + sum(map(len, gap)), to + sum(map(len, new_gap))
        if mine < len(ours):
            yield at, at + len(ours[mine]), to
            at, to = at + len(ours[mine]), to + len(ours[mine])
        word, beside = mine + 1, other + 1


def _anchors(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """The places of words that stand once in both texts, as many as are in the same order."""
    mine, other = Counter(ours), Counter(theirs)
    places = {word: at for at, word in enumerate(theirs) if other[word] == 1}
    pairs = [(at, places[word]) for at, word in enumerate(ours) if mine[word] == 1 and word in places]
    ends: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        height = bisect_left(ends, place)
        before.append(tops[height - 1] if height else -1)
        ends[height : height + 1], tops[height : height + 1] = [place], [number]
    chain: list[tuple[int, int]] = []
    number = tops[-1] if tops else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _in_gap(ours: Sequence[str], theirs: Sequence[str], at: int, to: int) -> Iterator[SharedRun]:
    """The runs between two words that hold their place: what begins and ends alike, and words between."""
    old, new = "".join(ours), "".join(theirs)
    head, tail = _ends_alike(old, new)
    yield at, at + head, to
    yield from _in_middle(old[head : len(old) - tail], new[head : len(new) - tail], at + head, to + head)
    yield at + len(old) - tail, at + len(old), to + len(new) - tail


def _in_middle(old: str, new: str, at: int, to: int) -> Iterator[SharedRun]:
    """The longest row of words that both have, and what changed words begin and end with."""
    ours, theirs = _WORD.findall(old), _WORD.findall(new)
    if not ours or not theirs or len(ours) * len(theirs) > _MOST_CELLS:
        return
    starts, new_starts = ([0, *accumulate(map(len, words))] for words in (ours, theirs))
    equal = [op for op in distance.Indel.opcodes(ours, theirs) if op.tag == "equal"]
    bounds = [(starts[op.src_start], starts[op.src_end], new_starts[op.dest_start]) for op in equal]
    done, new_done = 0, 0
    for start, end, beside in [*bounds, (len(old), len(old), len(new))]:
        head, tail = _ends_alike(old[done:start], new[new_done:beside])
        yield at + done, at + done + head, to + new_done
        yield at + start - tail, at + end, to + beside - tail
        done, new_done = end, beside + end - start


def _ends_alike(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts share at their beginnings, and of the rest at their ends."""
    head = _common(old, new)
    return head, _common(old[head:][::-1], new[head:][::-1])


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    if one == other:
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:  # by halves, so that the comparing itself is done by the interpreter
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low
