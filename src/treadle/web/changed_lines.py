"""The lines of a change as HTML: coloured as code, with the words marked that differ."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from treadle.door.review import FileConflict, ReviewedHunk
from treadle.present.changed_words import Spans, changed_words
from treadle.present.code_colours import ColouredPlaces, coloured_places, lexer_of
from treadle.present.escape import printable

_MOST_OF_FILE, _MOST_OF_PAGE = 100_000, 400_000
"""Characters of one version of a file, and of all that one page shows, that are coloured; more of it is plain."""

_LONGEST = 2_000
"""Characters of a line that are shown; a file with a longer one is not coloured."""


class LineColours:
    """The colours of the lines of files, as far as one page has them."""

    def __init__(self) -> None:
        self._left = _MOST_OF_PAGE

    def of(self, path: str, lines: Sequence[str]) -> Sequence[ColouredPlaces]:
        """Give the coloured places of each line of a whole file; none where it is too large, or of no known kind."""
        size = sum(len(line) + 1 for line in lines)
        if size > min(_MOST_OF_FILE, self._left) or any(len(line) > _LONGEST for line in lines):
            return ()
        lexer = lexer_of("", path)
        if lexer is None:
            return ()
        self._left -= size
        return coloured_places(lexer, lines)


def line_html(text: str, pieces: ColouredPlaces = (), marks: Spans = (), tag: str = "") -> Markup:
    """Write one line, with its colours and the marked places in elements of the tag; what hides in it is shown."""
    more = len(text) - _LONGEST
    if more > 0:
        return escape(printable(f"{text[:_LONGEST]} … {more:,} more characters"))
    colours, marked = _at_each(pieces), _at_each([(start, end, tag) for start, end in marks])
    places = [*((start, end) for start, end, _ in pieces), *marks]
    cuts = sorted({0, len(text), *(at for place in places for at in place)})
    made: list[str] = []
    inside = ""
    for start, end in pairwise(cuts):
        if (now := marked(start)) != inside:
            made.append(f"</{inside}>" if inside else f"<{now}>")
            inside = now
        shown, colour = escape(printable(text[start:end])), colours(start)
        made.append(f'<span class="c-{colour}">{shown}</span>' if colour else shown)
    if inside:
        made.append(f"</{inside}>")
    return Markup("".join(made))  # noqa: S704 - every piece of the text was escaped


def _at_each(places: Sequence[tuple[int, int, str]]) -> Callable[[int], str]:
    """Give what says the word of the place that a character is in; asked from left to right."""
    waiting = iter(places)
    now = next(waiting, None)

    def at(character: int) -> str:
        nonlocal now
        while now is not None and now[1] <= character:
            now = next(waiting, None)
        return now[2] if now is not None and now[0] <= character else ""

    return at


def hunk_html(
    hunk: ReviewedHunk, most: int, old: Sequence[ColouredPlaces], new: Sequence[ColouredPlaces]
) -> Mapping[str, Any]:
    """Give the lines of a change with their numbers, of a long one the first `most`; `old` and `new` are colours."""
    before, after = hunk.old[:most], hunk.new[: max(0, most - len(hunk.old))]
    gone, come = changed_words(before, after)
    above = len(hunk.above)
    old_end, new_end = hunk.old_first + len(hunk.old), hunk.new_first + len(hunk.new)

    def same(at: int, first: int, line: str) -> tuple[int, int, Markup]:
        return at, first, line_html(line, _of(new, first))

    return {
        "hunk": hunk,
        "above": [
            same(hunk.old_first - above + at, hunk.new_first - above + at, line) for at, line in enumerate(hunk.above)
        ],
        "old": [
            (hunk.old_first + at, line_html(line, _of(old, hunk.old_first + at), gone.get(at, ()), "del"))
            for at, line in enumerate(before)
        ],
        "new": [
            (hunk.new_first + at, line_html(line, _of(new, hunk.new_first + at), come.get(at, ()), "ins"))
            for at, line in enumerate(after)
        ],
        "cut": len(hunk.old) + len(hunk.new) - len(before) - len(after),
        "below": [same(old_end + at, new_end + at, line) for at, line in enumerate(hunk.below)],
    }


def _of(colours: Sequence[ColouredPlaces], number: int) -> ColouredPlaces:
    return colours[number - 1] if 0 < number <= len(colours) else ()


_MOST_OF_PLACE = 200
"""Lines of one version that are shown of a place."""

_VERSIONS = ("Before the session", "As the session left it", "In the folder now")


def conflict_html(conflict: FileConflict) -> Mapping[str, Any]:
    """Give the three versions of a file where they differ; what is marked in one differs from the one before it."""
    places = []
    for place in conflict.places:
        before, session, now = (part.lines[:_MOST_OF_PLACE] for part in (place.before, place.session, place.now))
        marks: tuple[Mapping[int, Spans], ...] = ({}, changed_words(before, session)[1], changed_words(session, now)[1])
        parts = zip(_VERSIONS, (place.before, place.session, place.now), marks, strict=True)
        places.append(
            [
                {
                    "title": title,
                    "lines": [
                        (part.first + at, line_html(line, (), marked.get(at, ()), "ins"))
                        for at, line in enumerate(part.lines[:_MOST_OF_PLACE])
                    ],
                    "cut": max(0, len(part.lines) - _MOST_OF_PLACE),
                }
                for title, part, marked in parts
            ]
        )
    return {"path": conflict.path, "about": list(zip(_VERSIONS, conflict.about, strict=True)), "places": places}
