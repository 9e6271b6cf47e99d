"""The lines of a change as HTML: coloured as code, with the words marked that differ."""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from treadle.door.review import FileConflict, ReviewedHunk, defined_in
from treadle.present.changed_words import Spans, changed_words
from treadle.present.code_colours import ColouredPlaces, coloured_places, lexer_of
from treadle.present.escape import printable
from treadle.present.words import counted, shorten_middle
from treadle.protocol.patterns import regex
from treadle.web.markup import MOST_CHARACTERS, MOST_LINES, coloured_line

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
    return coloured_line(text, pieces, marks, tag)


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


class DiffBlock(Struct, frozen=True):
    """Rows of a diff that stand together: each has its number, its kind (add, del, note or empty) and its line as HTML.

    `title` is what stands above them: the name of a file, or how many lines between are the same; `is_file` says which.
    `skipped` is how many lines above them are the same, as far as that is known.
    """

    rows: Sequence[tuple[int | str, str, Markup]]
    title: str = ""
    is_file: bool = False
    skipped: int = 0


_HUNK = regex(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MOST_COLOURED = 40_000
"""Characters of a diff that is coloured."""


class _DiffReader:
    """Reads a unified diff line by line, and puts its blocks together."""

    def __init__(self, *, coloured: bool) -> None:
        self.blocks: list[DiffBlock] = []
        self.files: set[str] = set()
        self._coloured = coloured
        self._lexer: Any = None
        self._held: list[str] = []
        self._old = self._new = self._old_left = self._new_left = self._end = 0
        self._title, self._is_file, self._skipped = "", False, 0

    def take(self, line: str) -> None:
        """Take the next line; within a change, whose size its head says, no line is the head of a file."""
        inside = self._old_left > 0 or self._new_left > 0
        if not inside and line.startswith("--- "):
            self.close()
        elif not inside and line.startswith("+++ "):
            self.close()
            name = line[4:].removeprefix("b/").partition("\t")[0]
            self.files.add(name)
            self._lexer, self._end = lexer_of("", name) if self._coloured else None, 0
            self._title, self._is_file = printable(name), True
        elif not inside and (found := _HUNK.match(line)):
            self._begin(*(int(number or 1) for number in found.groups()))
        else:
            self._held.append(line)
            sign = line[:1]
            self._old_left -= sign in ("-", " ", "")
            self._new_left -= sign in ("+", " ", "")
            self._end += sign in ("+", " ", "")
            if sign == "…":
                self._old_left = self._new_left = 0  # its middle is left out

    def _begin(self, old: int, olds: int, new: int, news: int) -> None:
        if self._held:
            self.close()
        self._old, self._new, self._old_left, self._new_left = old, new, olds, news
        self._skipped = max(0, new - self._end) if self._end else 0
        if self._skipped and not self._title:
            self._title = counted(self._skipped, "unchanged line")
        self._end = new

    def close(self) -> None:
        """End the block that is read."""
        if self._held or self._is_file:
            rows = _numbered(self._held, self._old, self._new, self._lexer)
            self.blocks.append(DiffBlock(rows, self._title, self._is_file, self._skipped))
        self._held, self._title, self._is_file, self._skipped = [], "", False, 0


def diff_blocks(text: str) -> list[DiffBlock]:
    """Cut a unified diff into blocks with numbers, colours and marked words."""
    reader = _DiffReader(coloured=len(text) <= _MOST_COLOURED)
    for line in shorten_middle(text.removesuffix("\n"), lines=MOST_LINES, characters=MOST_CHARACTERS).split("\n"):
        reader.take(line)
    reader.close()
    if len(reader.files) > 1:
        return reader.blocks
    return [replace(one, title="", is_file=False) if one.is_file else one for one in reader.blocks]


def definitions(diff: str) -> list[str]:
    """Name the definitions that a unified diff changes something in, as far as it shows where they begin."""
    found: dict[str, None] = {}
    within = ""
    for line in diff.split("\n"):
        if line.startswith(("@@", "--- ", "+++ ")):
            within = ""
            continue
        within = (defined_in(line[1:]) if line[:1] in (" ", "-", "+") else "") or within
        if within and line[:1] in ("-", "+"):
            found[printable(within)] = None
    return list(found)


def near_changes(blocks: Sequence[DiffBlock], around: int = 1) -> list[DiffBlock]:
    """Leave of the lines around each change only the nearest ones, so that what changes comes sooner."""
    found: list[DiffBlock] = []
    same = 0
    for block in blocks:
        same = 0 if block.is_file else same + block.skipped
        title, is_file = (block.title, True) if block.is_file else ("", False)
        near = _near([kind for _, kind, _ in block.rows], around)
        for kept, run in groupby(range(len(block.rows)), key=near.__contains__):
            rows = [block.rows[at] for at in run]
            if not kept:
                same += len(rows)
                continue
            between = counted(same, "unchanged line") if found and same and not is_file else ""
            found.append(DiffBlock(rows, title or between, is_file, same))
            title, is_file, same = "", False, 0
    return found


def _near(kinds: Sequence[str], around: int) -> Collection[int]:
    """Give the rows that change something, those near them, and a single one between two of those."""
    changed = [at for at, kind in enumerate(kinds) if kind]
    if not changed:
        return range(len(kinds))
    near = {at for one in changed for at in range(max(0, one - around), min(len(kinds), one + around + 1))}
    return near | {at + 1 for at in near if at + 2 in near}


def _numbered(lines: Sequence[str], old: int, new: int, lexer: Any) -> list[tuple[int | str, str, Markup]]:
    """Number lines of a diff from these of the old and the new file on, colour them, and mark the words that differ."""
    sides = {sign: [(at, line[1:]) for at, line in enumerate(lines) if line[:1] in (sign, " ")] for sign in ("-", "+")}
    colours: dict[tuple[str, int], ColouredPlaces] = {}
    if lexer is not None and not any(len(line) > _LONGEST for line in lines):
        for sign, found in sides.items():
            places = coloured_places(lexer, [line for _, line in found])
            colours |= {(sign, at): place for (at, _), place in zip(found, places, strict=True)}
    marks = _marked(lines)
    rows: list[tuple[int | str, str, Markup]] = []
    for at, line in enumerate(lines):
        sign, rest = line[:1], line[1:]
        if sign == "-":
            rows.append((old, "del", line_html(rest, colours.get(("-", at), ()), marks.get(at, ()), "del")))
            old += 1
        elif sign == "+":
            rows.append((new, "add", line_html(rest, colours.get(("+", at), ()), marks.get(at, ()), "ins")))
            new += 1
        elif sign in (" ", ""):
            rows.append((new or "", "", line_html(rest, colours.get(("+", at), ()))))
            old, new = old + 1, new + 1
        else:
            rows.append(("", "note", line_html(line)))
    return rows


def _marked(lines: Sequence[str]) -> dict[int, Spans]:
    """Give the words that differ between removed lines and the added ones right behind them, by the line."""
    marks: dict[int, Spans] = {}
    at = 0
    while at < len(lines):
        gone = at
        while at < len(lines) and lines[at].startswith("-"):
            at += 1
        come = at
        while at < len(lines) and lines[at].startswith("+"):
            at += 1
        if gone < come < at:
            before, after = changed_words(
                [line[1:] for line in lines[gone:come]], [line[1:] for line in lines[come:at]]
            )
            marks |= {gone + number: spans for number, spans in before.items()}
            marks |= {come + number: spans for number, spans in after.items()}
        at = max(at, gone + 1)
    return marks


def hunk_blocks(hunks: Sequence[Mapping[str, Any]]) -> list[DiffBlock]:
    """Give the changes of a file, as `hunk_html` makes them, in the blocks of a diff."""
    blocks: list[DiffBlock] = []
    end = 1
    for shown in hunks:
        rows: list[tuple[int | str, str, Markup]] = [(new, "", line) for _, new, line in shown["above"]]
        rows += [(number, "del", line) for number, line in shown["old"]]
        rows += [(number, "add", line) for number, line in shown["new"]]
        rows += [(new, "", line) for _, new, line in shown["below"]]
        hunk: ReviewedHunk = shown["hunk"]
        first = hunk.new_first - len(hunk.above)
        title = counted(first - end, "unchanged line") if blocks and first > end else ""
        blocks.append(DiffBlock(rows, title))
        end = hunk.new_first + len(hunk.new) + len(hunk.below)
    return blocks


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
