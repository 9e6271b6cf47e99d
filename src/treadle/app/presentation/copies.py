"""What a command changed in its throw-away copy, in words."""

import posixpath
from collections.abc import Iterator, Sequence

from treadle.app.presentation.escape import exact_line, printable
from treadle.app.presentation.words import counted
from treadle.protocol.tools import ChangeKind, CopyChange, CopyChanges

_MOST = 20
"""Files that are listed; of more, the folders."""

_MARKS = {ChangeKind.ADDED: "A", ChangeKind.CHANGED: "M", ChangeKind.DELETED: "D"}


def changes_of(copy: CopyChanges, roots: Sequence[str]) -> Iterator[str]:
    """Say what would be applied and what not, a line each; paths in the first of the roots are relative to it."""
    yield from _applied([change for change in copy.changes if not change.held], roots)
    held = [change for change in copy.changes if change.held]
    yield from (f"Not applied: {_below(one.path, roots)}, {printable(one.held)}" for one in held[:_MOST])
    if len(held) > _MOST:
        yield f"Not applied: {counted(len(held) - _MOST, 'more path')}"
    if copy.ignored:
        yield f"Thrown away: {counted(copy.ignored, 'file')} that git ignores or a tool caches"
    if copy.trouble:
        yield copy.trouble


def lines_of(copy: CopyChanges) -> str:
    """Count the lines that would be added and removed: `+3 -1`."""
    return _sum([change for change in copy.changes if not change.held])


def _applied(changes: Sequence[CopyChange], roots: Sequence[str]) -> Iterator[str]:
    if len(changes) <= _MOST:
        for one in changes:
            lines = "" if one.added is None or one.removed is None else f"  +{one.added} -{one.removed}"
            yield f"{_MARKS[one.kind]} {_below(one.path, roots)}{lines}"
        return
    folders: dict[str, list[CopyChange]] = {}
    for one in changes:
        folders.setdefault(posixpath.dirname(_below(one.path, roots)) or ".", []).append(one)
    for folder, found in list(folders.items())[:_MOST]:
        yield f"{folder}/  {counted(len(found), 'file')}  {_sum(found)}"
    if len(folders) > _MOST:
        yield f"and {counted(len(folders) - _MOST, 'more folder')}"


def _below(path: str, roots: Sequence[str]) -> str:
    return exact_line(path.removeprefix(f"{next(iter(roots), '')}/"))


def _sum(changes: Sequence[CopyChange]) -> str:
    return f"+{sum(one.added or 0 for one in changes)} -{sum(one.removed or 0 for one in changes)}"
