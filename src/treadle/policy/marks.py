"""Strings with parts that are not known, and what they could stand for.

Control characters stand for what is unknown: `UNKNOWN` any text, `STAR` and `ANY` the glob characters, `SPLIT` a place
where an unquoted value falls apart.
A shell line cannot hold them: the pre-check refuses control characters.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

UNKNOWN = "\0"
STAR = "\1"
ANY = "\2"
SPLIT = "\4"

MARKS = frozenset((UNKNOWN, STAR, ANY, SPLIT))


def is_static(text: str) -> bool:
    """Whether nothing in a text is unknown."""
    return MARKS.isdisjoint(text)


def is_glob(text: str) -> bool:
    """Whether a text is known but for its glob characters."""
    return UNKNOWN not in text and (STAR in text or ANY in text)


def as_glob(text: str) -> str:
    """Read `*` and `?` in a text as glob characters, as a program does that gets a quoted pattern."""
    return text.replace("*", STAR).replace("?", ANY)


def fits(pattern: str, name: str) -> bool:
    """Whether a pattern could stand for one name without slashes."""
    return fits_glob(pattern.translate(_GLOBS), name)


_GLOBS = str.maketrans({UNKNOWN: "*", STAR: "*", ANY: "?"})
_split_glob = lru_cache(maxsize=1024)(re.compile(r"(\*\*/|\*\*|\*|\?)").split)


def fits_glob(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern: `*` and `?` stay in a directory, `**` crosses them.

    Keeps all the places in the text that may have been reached; takes time in proportion to both lengths.
    """
    parts = _split_glob(pattern)
    if not (text.startswith(parts[0]) and text.endswith(parts[-1])):
        return False
    places = {0}
    for part in parts:
        match part:
            case "**/":
                places |= {place + 1 for place in range(min(places), len(text)) if text[place] == "/"}
            case "**":
                places = set(range(min(places), len(text) + 1))
            case "*":
                places = _to_ends(places, text)
            case "?":
                places = {place + 1 for place in places if text[place : place + 1] not in ("", "/")}
            case _:
                places = {place + len(part) for place in places if text.startswith(part, place)}
        if not places:
            return False
    return len(text) in places


def _to_ends(places: set[int], text: str) -> set[int]:
    """Give the places from each of these to the end of its part of the path; each is looked at once."""
    reached: set[int] = set()
    end = -1
    for place in sorted(places):
        if place > end:
            end = text.find("/", place)
            end = len(text) if end < 0 else end
            reached.update(range(place, end + 1))
    return reached


_SHOWN = {UNKNOWN: "…", STAR: "*", ANY: "?", SPLIT: " "}


def shown(text: str) -> str:
    """Write a text as a person would read it: `…` for what is unknown."""
    return "".join(_SHOWN.get(char, char) for char in text)


def split_words(text: str) -> list[str]:
    """Split a table that is written as running text into its words."""
    return text.split()


def word_set(text: str) -> frozenset[str]:
    """Give the words of such a table where their order says nothing."""
    return frozenset(text.split())


def table_rows(text: str) -> list[tuple[str, str]]:
    """Read a table of rows `left = right`; a line that is indented continues a row."""
    rows = (row.partition(" =") for row in text.strip().replace("\n    ", " ").splitlines())
    return [(left, right) for left, _, right in rows]


def rows_by_name(text: str) -> dict[str, str]:
    """Read a table of rows `names = what holds for each of them`."""
    return {name: rest for names, rest in table_rows(text) for name in names.split()}


def from_both_ends(texts: Iterable[str]) -> list[str]:
    """Give each text once, from both ends inwards: what is to be hidden stands at an end."""
    listed = list(dict.fromkeys(texts))
    half = (len(listed) + 1) // 2
    ends = zip(listed[:half], reversed(listed), strict=False)
    return list(dict.fromkeys(text for pair in ends for text in pair))
