"""A file that could not be merged: where its three versions differ from each other in the same place."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from treadle.workspace.checkpoints.merging import LineChange, line_edits, split_lines

_AROUND = 2
"""Lines that are the same before and behind a place."""


class FileVersion(Struct, frozen=True, kw_only=True):
    """One version of a file: its bytes, or in words what there is that is no text."""

    content: bytes | None = None
    about: str = ""


class ConflictPart(Struct, frozen=True):
    """The lines of one version in a place; `first` is the number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]


class ConflictPlace(Struct, frozen=True):
    """A place that differs in all versions, or in which two of them changed adjoining lines."""

    before: ConflictPart
    session: ConflictPart
    now: ConflictPart


class FileConflict(Struct, frozen=True, kw_only=True):
    """A file in its three versions: before the session, as the session left it, and as it is in the folder.

    `about` says of each that is no text what it is, else nothing; with all of text there are `places`.
    """

    path: str
    about: tuple[str, str, str]
    places: tuple[ConflictPlace, ...] = ()


def conflict_of(path: str, before: FileVersion, session: FileVersion, now: FileVersion) -> FileConflict:
    """Compare the versions of a file."""
    about = (before.about, session.about, now.about)
    if before.content is None or session.content is None or now.content is None:
        return FileConflict(path=path, about=about)
    texts = split_lines(before.content), split_lines(session.content), split_lines(now.content)
    return FileConflict(path=path, about=about, places=tuple(_places(*texts)))


class _Edit(NamedTuple):
    """A change of the session's version that leads to one of the others."""

    change: LineChange
    now: bool


def _places(before: Sequence[bytes], session: Sequence[bytes], now: Sequence[bytes]) -> Iterator[ConflictPlace]:
    edits = sorted(
        [
            *(_Edit(change, now=False) for change in line_edits(session, before)),
            *(_Edit(change, now=True) for change in line_edits(session, now)),
        ]
    )
    groups = list(_touching(edits))
    moved = {False: 0, True: 0}
    last = 0
    for number, group in enumerate(groups):
        start, end = group[0].change.start, max(edit.change.end for edit in group)
        above, last = max(last, start - _AROUND), end
        below = min(groups[number + 1][0].change.start if number + 1 < len(groups) else len(session), end + _AROUND)
        grown = {side: sum(_growth(edit.change) for edit in group if edit.now is side) for side in (False, True)}
        if len({edit.now for edit in group}) > 1:
            yield ConflictPlace(
                _part(before, above + moved[False], below + moved[False] + grown[False]),
                _part(session, above, below),
                _part(now, above + moved[True], below + moved[True] + grown[True]),
            )
        moved = {side: moved[side] + grown[side] for side in moved}


def _touching(edits: Sequence[_Edit]) -> Iterator[list[_Edit]]:
    """Put together what changes the same or adjoining lines."""
    group: list[_Edit] = []
    end = -1
    for edit in edits:
        if group and edit.change.start > end:
            yield group
            group = []
        group.append(edit)
        end = max(end, edit.change.end)
    if group:
        yield group


def _growth(change: LineChange) -> int:
    return (change.new_end - change.new_start) - (change.end - change.start)


def _part(lines: Sequence[bytes], start: int, end: int) -> ConflictPart:
    shown = (line.decode(errors="backslashreplace").removesuffix("\n").removesuffix("\r") for line in lines[start:end])
    return ConflictPart(start + 1, tuple(shown))
