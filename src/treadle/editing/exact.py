"""An exact text: every place where it is, and the lines that replace it at one of them as it stands."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.editing.line_keys import TextViews
from treadle.editing.merge import line_changes
from treadle.editing.source import Hunk

# How the lines of an exact match are divided changes nothing, so little time is spent on it.
_MOST_CELLS = 40_000
_TELLING = 2


class TextRange(Struct, frozen=True):
    """A place in the text: characters `start` to `end`, and its first and last line, from 0."""

    start: int
    end: int
    first: int
    last: int


def find_places(text: str, wanted: str) -> Iterator[TextRange]:
    """Every place of `wanted` in the joined lines of a text, also those that overlap."""
    counted = row = 0
    at = text.find(wanted, 1)
    while at >= 0:
        row, counted = row + text.count("\n", counted, at), at
        yield TextRange(at, at + len(wanted), row - 1, row - 1 + wanted.count("\n"))
        at = text.find(wanted, at + 1)


def in_file(places: Iterator[TextRange], views: TextViews, ends: Sequence[str]) -> Iterator[TextRange]:
    """The places that do not take a line end which the file, by having no final one, lacks."""
    real = len(views.exact.joined) - (0 if ends and ends[-1] else 1)
    return (place for place in places if ends and place.end <= real)


def is_whole_lines(text: str, place: TextRange) -> bool:
    """Whether a place begins and ends with a line."""
    return text[place.start - 1] == "\n" and (text[place.end : place.end + 1] or text[-1]) == "\n"


def reads_already(text: str, old: str, new: str, place: TextRange) -> bool:
    """Whether the text around a place of `old` is `new` already; added blanks or lines of brackets do not tell."""
    at = new.find(old)
    while at >= 0:
        added = new[:at] + new[at + len(old) :]
        tells = sum(map(str.isalnum, added)) > _TELLING if "\n" in added else bool(added.strip())
        if tells and place.start > at and text.startswith(new, place.start - at):
            return True
        at = new.find(old, at + 1)
    return False


def replaced(place: TextRange, new: str, views: TextViews, ends: Sequence[str]) -> tuple[Hunk, ...]:
    """The hunks that put `new` at a place, and change no other character of the file."""
    text = views.exact.joined
    end = text.find("\n", place.end) if place.end < len(text) else len(text)
    written = text[text.rindex("\n", 0, place.start) + 1 : place.start] + new + text[place.end : end]
    first, stop = place.first, min(place.last + 1, len(ends))
    closed = None
    if place.end == len(text) or (stop == len(ends) and not ends[-1]):
        # Nothing of the file follows, so what is written says whether it has a final line end.
        closed = not written or written.endswith("\n")
    rows = tuple(written.removesuffix("\n" if closed else "").split("\n")) if written or closed is None else ()
    if closed == bool(ends[-1]):
        closed = None
    if closed is not None or len(set(ends[first:stop])) > 1:
        return (Hunk(first, stop, rows, exact=True, closed=closed),)
    changes = line_changes(views.lines[first:stop], rows, most=_MOST_CELLS)
    return tuple(Hunk(first + low, first + high, rows[start:end]) for _, low, high, start, end in changes)
