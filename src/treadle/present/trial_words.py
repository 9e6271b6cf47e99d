"""What a command changed in its throw-away copy, in words."""

import posixpath
from collections.abc import Iterator, Sequence

from treadle.present.escape import exact_line, output_of_command, printable
from treadle.present.figures import shown_figures
from treadle.present.words import counted
from treadle.protocol.tools import ChangeKind, CopyChange, CopyChanges, CopyFate

PRINTED = "| "
"""What a line begins with that the command printed."""

_MOST = 20
"""Changes that are listed one by one; of more, the folders. The differences list all."""

_MARKS = {ChangeKind.ADDED: "A", ChangeKind.CHANGED: "M", ChangeKind.DELETED: "D"}


def changes_of(copy: CopyChanges, roots: Sequence[str]) -> Iterator[str]:
    """Say what would be applied, or what stands against it, a line each, what runs or loads something first.

    Paths in the first of the roots are relative to it.
    """
    held = [change for change in copy.changes if change.held]
    if not copy.whole:
        yield "These changes cannot be applied, because not all of them can:"
    yield from (f"{_below(one.path, roots)}: {_in_line(one.held)}" for one in held[:_MOST])
    if len(held) > _MOST:
        yield f"and {counted(len(held) - _MOST, 'more path')} that cannot be changed"
    if copy.trouble:
        yield _in_line(copy.trouble)
    yield from _ended(copy)
    free = [change for change in copy.changes if not change.held]
    first = [change for change in free if change.first]
    yield from (_row(one, roots) for one in first[:_MOST])
    if len(first) > _MOST:
        yield f"and {counted(len(first) - _MOST, 'more path')} that can run or load something"
    yield from _listed([change for change in free if not change.first], roots)
    if copy.outputs:
        files = counted(sum(one.files for one in copy.outputs), "file")
        named = ", ".join(_below(one.path, roots) for one in copy.outputs[:_MOST])
        more = f" and {counted(len(copy.outputs) - _MOST, 'more place')}" if len(copy.outputs) > _MOST else ""
        yield f"Besides: {files} that git ignores, in {named}{more}"
    if copy.ignored:
        yield "Thrown away: what tools put into their caches"


def _ended(copy: CopyChanges) -> Iterator[str]:
    """Say how the command ended, with the end of what it printed."""
    if copy.ended:
        yield _in_line(copy.ended)
        yield from (f"{PRINTED}{line}" for line in output_of_command(copy.output).splitlines() if line.strip())


def figures_of(copy: CopyChanges) -> tuple[int, int] | None:
    """Count the lines that are added and removed; None where none are."""
    found = _sums(copy.changes)
    return found if any(found) else None


def is_lost(copy: CopyChanges | None) -> bool:
    """Whether a command changed something that did not come into the workspace."""
    return copy is not None and copy.fate is not CopyFate.KEPT and bool(fate_of(copy))


def fate_of(copy: CopyChanges | None) -> str:
    """Say in a few words what became of the changes; empty where there were none."""
    if copy is None or not (copy.changes or copy.outputs):
        return ""
    if not copy.changes and copy.fate is CopyFate.KEPT:
        return f"kept {counted(sum(one.files for one in copy.outputs), 'file')} that git ignores"
    match copy.fate:
        case CopyFate.KEPT:
            return "its changes were kept"
        case CopyFate.DISCARDED:
            return "its changes were discarded"
        case CopyFate.NOT_APPLIED:
            return "its changes could not be applied"


def _row(one: CopyChange, roots: Sequence[str]) -> str:
    lines = "" if one.added is None or one.removed is None else f"  {shown_figures(one.added, one.removed)}"
    about = f"  {_in_line(one.about)}" if one.about else ""
    return f"{_MARKS[one.kind]} {_below(one.path, roots)}{lines}{about}"


def _listed(changes: Sequence[CopyChange], roots: Sequence[str]) -> Iterator[str]:
    if len(changes) <= _MOST:
        yield from (_row(one, roots) for one in changes)
        return
    folders: dict[str, list[CopyChange]] = {}
    for one in changes:
        folders.setdefault(posixpath.dirname(_below(one.path, roots)) or ".", []).append(one)
    for folder, found in list(folders.items())[:_MOST]:
        yield f"{folder}/  {counted(len(found), 'file')}  {shown_figures(*_sums(found))}"
    if len(folders) > _MOST:
        yield f"and {counted(len(folders) - _MOST, 'more folder')}; the differences list each path"


def _in_line(text: str) -> str:
    return " ".join(printable(text).split())


def _below(path: str, roots: Sequence[str]) -> str:
    return exact_line(path.removeprefix(f"{next(iter(roots), '')}/"))


def _sums(changes: Sequence[CopyChange]) -> tuple[int, int]:
    return sum(one.added or 0 for one in changes), sum(one.removed or 0 for one in changes)
