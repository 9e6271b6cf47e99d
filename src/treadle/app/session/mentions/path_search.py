"""Finding paths by some of their characters: linear in their text, in pieces that each take a moment only."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

MOST_FOUND = 50
"""The number of paths that are found; that there are more is all that is said of the others."""

_LONGEST = 128
"""Characters that are looked for; a longer text fits nothing."""

_PIECE = 128 * 1024
"""Characters of paths that are searched in one go, some thousandths of a second."""

_ENOUGH = 500
"""Paths that have the characters somewhere, after which none is looked for that has them in its last part."""

_FOLDERS = 4_096
"""Folders that are searched in one go."""

_RARE = 4_000
"""How often a character may be there so that the lines that have it are looked at one by one."""


class _Text:
    """Texts of one line each, one after the other, and where each begins; `end` is where the last one ends."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n" + "".join(f"{line}\n" for line in lines)
        self.end = len(self.text) - 1
        self._begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._counts: dict[str, int] = {}

    def count(self, char: str) -> int:
        """Say how often a character is there."""
        if char not in self._counts:
            self._counts[char] = self.text.count(char)
        return self._counts[char]

    def holding(self, part: str) -> Iterator[int | None]:
        """Give the numbers of the lines that hold a part; the line feeds around a line belong to it."""
        at = self.text.find(part)
        while at >= 0:
            yield (number := self._number(at))
            at = self.text.find(part, self._begins[number + 1])
        yield None

    def in_order(self, typed: str, first: int, last: int) -> Iterator[int | None]:
        """Give the numbers, from `first` to before `last`, of lines with these characters in order; None between."""
        if not typed:
            yield from range(first, last)
            return
        wanted = _in_order(typed)
        begin, end = self._begins[first], self._begins[last]
        while begin < end:
            piece = self.text.find("\n", begin + _PIECE, end)
            piece = end if piece < 0 else piece
            yield from (self._number(found.start()) for found in wanted.finditer(self.text, begin, piece))
            yield None
            begin = piece

    def has_in_order(self, typed: str, number: int) -> bool:
        """Whether a line has these characters in this order."""
        return _in_order(typed).match(self.text, self._begins[number]) is not None

    def _number(self, at: int) -> int:
        """Give the line that a place lies in, or the one that begins behind the line feed that is there."""
        return min(bisect_right(self._begins, at), len(self._begins) - 1) - 1


@lru_cache(8)
def _in_order(typed: str) -> re.Pattern[str]:
    """Find a line with these characters; a class leaves out what comes next, so that no line is looked at twice."""
    return re.compile("\n" + "".join(f"[^{re.escape(char)}\n]*+{re.escape(char)}" for char in typed))


@lru_cache(8)
def _beginning_in_order(typed: str) -> re.Pattern[str]:
    """Find as many of the first of these characters as a line has in this order: the number of the last group."""
    nested = "".join(f"(?:[^{re.escape(char)}\n]*+({re.escape(char)})" for char in typed)
    return re.compile("\n" + nested + ")?+" * len(typed))


class Index:
    """Paths in the order in which they are offered, without line feeds; those of folders end with a slash.

    Most paths share their folder with those beside them: it is searched once for all of them.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._known = frozenset(paths)
        lower = [path.lower() for path in self.paths]
        cuts = [path.rfind("/", 0, -1) + 1 for path in lower]
        folders = [path[:cut] for path, cut in zip(lower, cuts, strict=True)]
        self._texts = _Text(lower)
        self._ends = _Text([path[cut:] for path, cut in zip(lower, cuts, strict=True)])
        self._names = _Text([path.rstrip("/").rpartition("/")[2] for path in lower])
        self._runs = [place for place, folder in enumerate(folders) if not place or folder != folders[place - 1]]
        self._folders = _Text([folders[place] for place in self._runs])

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def ranked(self, typed: str) -> Iterator[int | None]:
        """Give the places of the paths that fit, the best first, some more than once; None now and then."""
        if not typed or len(typed) > _LONGEST:
            yield from range(0 if typed else min(len(self.paths), MOST_FOUND + 1))
            return
        if typed in self._texts.text:
            yield from self._holding(typed)
        others: list[int] = []
        for number in self._in_order(typed):
            if number is None or self._names.has_in_order(typed, number):
                yield number
            else:
                others.append(number)
                if len(others) > _ENOUGH:
                    break
        yield from others

    def _holding(self, typed: str) -> Iterator[int | None]:
        """Give the places of the paths that hold these characters as they are, the best first."""
        yield from self._texts.holding(f"\n{typed}\n")
        if "/" in typed:
            yield from self._texts.holding(f"\n{typed}")
        else:
            yield from self._names.holding(f"\n{typed}\n")
            yield from self._names.holding(f"\n{typed}")
            yield from self._names.holding(typed)
        yield from self._texts.holding(typed)

    def _in_order(self, typed: str) -> Iterator[int | None]:
        """Give the places of the paths that have these characters in this order, in their order; None now and then."""
        rarest = min(typed, key=self._texts.count)
        if self._texts.count(rarest) < _RARE:
            for place in self._texts.holding(rarest):
                if place is None or self._texts.has_in_order(typed, place):
                    yield place
            return
        begin, had = 0, 0
        for run, found in enumerate(_beginning_in_order(typed).finditer(self._folders.text, 0, self._folders.end)):
            has = found.lastindex or 0
            if has != had:
                yield from self._ends.in_order(typed[had:], begin, self._runs[run])
                begin, had = self._runs[run], has
            elif not run % _FOLDERS:
                yield None
        yield from self._ends.in_order(typed[had:], begin, len(self.paths))


class PathSearch:
    """A search for paths that have some characters in their order, in any case.

    First come those whose last part begins with the characters, then those that hold them as they are. `first` are
    offered before any others in each of these groups' order.
    """

    def __init__(self, typed: str, index: Index, first: Index | None = None) -> None:
        self.typed = typed
        self.done = False
        self.more = False
        self._found: dict[str, None] = {}
        self._places = self._each(index, first)

    @property
    def paths(self) -> tuple[str, ...]:
        """What was found until now."""
        return tuple(self._found)

    def go_on(self, enough: Callable[[], bool]) -> None:
        """Search until all is found, or `enough` says that it took long enough for now."""
        for path in self._places:
            if path is None:
                if enough():
                    return
            elif len(self._found) < MOST_FOUND:
                self._found[path] = None
            elif path not in self._found:
                self.more = True
                break
        self.done = True

    def _each(self, index: Index, first: Index | None) -> Iterator[str | None]:
        typed = self.typed.lower()
        for one in (first, index) if first is not None else (index,):
            for place in one.ranked(typed):
                yield None if place is None else one.paths[place]
