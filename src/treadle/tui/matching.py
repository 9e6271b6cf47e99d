"""Finding paths by some of their characters: linear in their text, in pieces that each take a moment only."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

MOST = 50
"""The number of paths that are found; that there are more is all that is said of the others."""

_LONGEST = 128
"""Characters that are looked for; a longer text fits nothing."""

_PIECE = 128 * 1024
"""Characters of paths that are searched in one go, some thousandths of a second."""

_ENOUGH = 500
"""Paths that have the characters somewhere, after which none is looked for that has them in its last part."""

_RARE = 4_000
"""How often a character may be there so that the lines that have it are looked at one by one."""


class _Text:
    """Texts of one line each, one after the other, and where each begins."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.text = "\n" + "".join(f"{line}\n" for line in lines)
        self._begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        self._counts = Counter(self.text)

    def holding(self, part: str) -> Iterator[int | None]:
        """Give the numbers of the lines that hold a part; the line feeds around a line belong to it."""
        at = self.text.find(part)
        while at >= 0:
            yield (number := self._number(at))
            at = self.text.find(part, self._begins[number + 1])
        yield None

    def in_order(self, typed: str) -> Iterator[int | None]:
        """Give the numbers of the lines that have these characters in this order; None after each piece."""
        wanted = _in_order(typed)
        rarest = min(typed, key=self._counts.__getitem__)
        if self._counts[rarest] < _RARE:
            for number in self.holding(rarest):
                if number is None or wanted.match(self.text, self._begins[number], self._begins[number + 1]):
                    yield number
            return
        begin = 0
        while begin < len(self.text) - 1:
            end = self.text.find("\n", begin + _PIECE)
            end = len(self.text) if end < 0 else end
            yield from (self._number(found.start()) for found in wanted.finditer(self.text, begin, end))
            yield None
            begin = end

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


class Index:
    """Paths in the order in which they are offered, without line feeds; those of folders end with a slash."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._known = frozenset(paths)
        lower = [path.lower() for path in self.paths]
        self._texts = _Text(lower)
        self._names = _Text([path.rstrip("/").rpartition("/")[2] for path in lower])

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def ranked(self, typed: str) -> Iterator[int | None]:
        """Give the places of the paths that fit, the best first, some more than once; None now and then."""
        if not typed or len(typed) > _LONGEST:
            yield from range(0 if typed else min(len(self.paths), MOST + 1))
            return
        yield from self._texts.holding(f"\n{typed}\n")
        if "/" in typed:
            yield from self._texts.holding(f"\n{typed}")
        else:
            yield from self._names.holding(f"\n{typed}\n")
            yield from self._names.holding(f"\n{typed}")
            yield from self._names.holding(typed)
        yield from self._texts.holding(typed)
        others: list[int] = []
        for number in self._texts.in_order(typed):
            if number is None or self._names.has_in_order(typed, number):
                yield number
            else:
                others.append(number)
                if len(others) > _ENOUGH:
                    break
        yield from others


class Finding:
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
            elif len(self._found) < MOST:
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
