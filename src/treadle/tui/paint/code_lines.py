"""Code in roles of the theme, by its language or the name of its file. Pygments is loaded with the first of it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from treadle.tui.paint.lines import Line

MOST_COLOURED = 40_000
"""Characters of one code block, or of what is shown of one file, that are coloured; more of it is plain."""

_LONGEST_LINE = 2_000
_TAB = 4

_ROLES = MappingProxyType(
    {
        "c": "code-comment",
        "k": "code-keyword",
        "kt": "code-type",
        "s": "code-string",
        "m": "code-number",
        "nf": "code-name",
        "nc": "code-type",
        "gi": "add",
        "gd": "del",
    }
)

CodePlaces: TypeAlias = tuple[tuple[int, int, str], ...]
"""The places of a line that have a role of their own."""


def code_places(lines: Sequence[str], *, name: str = "", language: str = "") -> Sequence[CodePlaces]:
    """Give the places of each of these lines that have a role; none where they are too many, or of no known kind."""
    size = sum(len(one) + 1 for one in lines)
    if not size or size > MOST_COLOURED or any(len(one) > _LONGEST_LINE for one in lines):
        return ()
    return _places("\n".join(lines), name, language)


@lru_cache(maxsize=32)
def _places(text: str, name: str, language: str) -> Sequence[CodePlaces]:
    """Find them once: what moves is drawn many times."""
    from treadle.present.code_colours import coloured_places, lexer_of

    lexer = lexer_of(language, name.rpartition("/")[2])
    if lexer is None:
        return ()
    found = coloured_places(lexer, text.split("\n"))
    return [tuple((start, end, _ROLES[kind]) for start, end, kind in places) for places in found]


def in_roles(
    pieces: Iterable[tuple[str, bool]], places: CodePlaces, plain: str = "", marked: str = ""
) -> Iterator[tuple[str, str]]:
    """Cut the pieces of a line where its roles change; `marked` goes to pieces that are marked, `plain` to every one.

    A comment that is marked has the colour of plain text: its own is too weak on a mark.
    """
    at, waiting = 0, iter(places)
    now = next(waiting, None)
    for text, is_marked in pieces:
        start, end = at, at + len(text)
        while at < end:
            while now is not None and now[1] <= at:
                now = next(waiting, None)
            inside = now is not None and now[0] <= at
            role = now[2] if inside and now is not None else ""
            stop = end if now is None else min(end, now[1] if inside else now[0])
            if is_marked:
                role = f"{marked} {role if role != 'code-comment' else ''}"
            yield f"{plain} {role}".strip(), text[at - start : stop - start]
            at = stop


def without_tabs(pieces: Iterable[tuple[str, str]]) -> Line:
    """Put blanks in the place of tabs, up to every fourth column."""
    column, row = 0, list[tuple[str, str]]()
    for roles, text in pieces:
        before = column % _TAB
        shown = f"{' ' * before}{text}".expandtabs(_TAB)[before:]
        column += len(shown)
        row.append((roles, shown))
    return tuple(row)


def code_lines(text: str, *, name: str = "", language: str = "") -> Sequence[Line]:
    """Give code that is harmless to show as lines with roles."""
    lines = text.split("\n")
    places = code_places(lines, name=name, language=language) or [()] * len(lines)
    return [without_tabs(in_roles([(one, False)], of)) for one, of in zip(lines, places, strict=True)]
