"""The forms of a line that the tiers compare, and a text searched by them in linear time."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from rapidfuzz import fuzz

MAX_PLACES = 20
_LONGEST_COMPARED = 1_000

TYPOGRAPHIC = {
    "“": '"', "”": '"', "„": '"', "‟": '"', "″": '"', "«": '"', "»": '"',
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "′": "'",
    "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "―": "-", "−": "-",
    "…": "...",
    "\u00a0": " ", "\u2002": " ", "\u2003": " ", "\u2009": " ", "\u200a": " ", "\u202f": " ", "\u3000": " ",
    "\u200b": "", "\u200c": "", "\u200d": "", "\u2060": "", "\ufeff": "", "\u00ad": "",
}  # fmt: skip
_FOLD = str.maketrans(TYPOGRAPHIC)


def fold_line(line: str) -> str:
    """The line with typographic quotes, dashes, dots and blanks as their ASCII forms, stripped."""
    if line.isascii():
        return line.strip()
    return unicodedata.normalize("NFC", line.translate(_FOLD)).strip()


def is_blank(line: str) -> bool:
    """Whether nothing but white space stands on the line."""
    return not line or line.isspace()


def indent_of(line: str) -> str:
    """The white space before the first visible character."""
    return line[: len(line) - len(line.lstrip())]


def likeness(one: str, other: str) -> float:
    """How alike two lines are, 0 to 100; 0 for lines too long to compare within bounds."""
    if max(len(one), len(other)) > _LONGEST_COMPARED:
        return 0.0
    return fuzz.ratio(one, other)


class KeyedLines:
    """Keys of some lines, each with the index of its line, searchable as one text."""

    def __init__(self, keys: Sequence[str], indexes: Sequence[int]) -> None:
        self.keys = keys
        self.indexes = indexes

    @cached_property
    def joined(self) -> str:
        """All keys between newlines."""
        return "\n" + "\n".join(self.keys) + "\n"

    def places(self, keys: Iterable[str]) -> list[int]:
        """Positions (in keys, from 0) where all `keys` stand in a row; at most MAX_PLACES."""
        needle = "\n" + "\n".join(keys) + "\n"
        found: list[int] = []
        counted_to = row = 0
        at = self.joined.find(needle)
        while at >= 0 and len(found) < MAX_PLACES:
            row += self.joined.count("\n", counted_to, at)
            counted_to = at
            found.append(row)
            at = self.joined.find(needle, at + 1)
        return found


class TextViews:
    """The lines of a text under each key, computed when first asked for."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines

    def spliced(self, start: int, end: int, lines: Sequence[str]) -> "TextViews":
        """The views of the text with `lines` instead of `start` to `end`; keys known already are kept."""
        changed = TextViews([*self.lines[:start], *lines, *self.lines[end:]])
        for name, key in (("trailing", str.rstrip), ("stripped", str.strip)):
            known = self.__dict__.get(name)
            if known is not None:
                keys = [*known.keys[:start], *map(key, lines), *known.keys[end:]]
                changed.__dict__[name] = KeyedLines(keys, range(len(keys)))
        return changed

    @cached_property
    def exact(self) -> KeyedLines:
        """Every line as it is."""
        return KeyedLines(self.lines, range(len(self.lines)))

    @cached_property
    def trailing(self) -> KeyedLines:
        """Every line without blanks at its end."""
        return self._every(str.rstrip)

    @cached_property
    def stripped(self) -> KeyedLines:
        """Every line without blanks around it."""
        return self._every(str.strip)

    @cached_property
    def spaced(self) -> KeyedLines:
        """The lines that are not blank, without blanks at their ends."""
        return KeyedLines([key for key in self.trailing.keys if key], self.visible.indexes)

    @cached_property
    def visible(self) -> KeyedLines:
        """The lines that are not blank, stripped."""
        return _visible(self.stripped.keys)

    @cached_property
    def folded(self) -> KeyedLines:
        """The lines that are not blank, stripped, in ASCII typography."""
        if self.visible.joined.isascii():
            return self.visible
        return _visible([fold_line(key) for key in self.stripped.keys])

    @cached_property
    def tab_indented(self) -> int:
        """How many lines start with a tab."""
        return sum(line[:1] == "\t" for line in self.lines)

    @cached_property
    def space_indented(self) -> int:
        """How many visible lines start with two blanks or more."""
        return sum(line[:2] == "  " and not line.isspace() for line in self.lines)

    @cached_property
    def space_width(self) -> int:
        """The usual step of an indentation by blanks: 2 where many lines need it, else 4."""
        widths = [len(indent_of(line)) for line in self.lines if line[:2] == "  " and not line.isspace()]
        return 2 if sum(width % 4 == 2 for width in widths) * 4 > len(widths) else 4

    def _every(self, key: Callable[[str], str]) -> KeyedLines:
        return KeyedLines([key(line) for line in self.lines], range(len(self.lines)))


def _visible(keys: Sequence[str]) -> KeyedLines:
    indexes = [index for index, key in enumerate(keys) if key]
    return KeyedLines([keys[index] for index in indexes], indexes)
