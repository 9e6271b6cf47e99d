"""What becomes of a copy: its changes as they are shown, the differences in a file, applying, and throwing away."""

import contextlib
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct, structs

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ChangeKind, CopyChange, CopyChanges, FileChange
from treadle.workspace.copies.applying import carry_out, take_back
from treadle.workspace.copies.choosing import ChangeSelection, Hold, new_ignore_files, select_changes
from treadle.workspace.copies.git_index import is_same_index, read_plain
from treadle.workspace.copies.making import Copy
from treadle.workspace.copies.staging import (
    Contents,
    Difference,
    EntryState,
    Manifest,
    read_manifest,
    remove_folder,
    take_abandoned,
)
from treadle.workspace.copies.tree import Tree
from treadle.workspace.copies.upper import INDEX
from treadle.workspace.diffs import Diff, compare
from treadle.workspace.text import visible_name

_MOST_NAMED = 10
_LARGEST_TEXT = 1024 * 1024
_MOST_LINES = 2_000
_MOST_COMPARED = 4_000_000
"""Lines of one text times lines of the other, between their first and last difference."""

_NEEDS_WORK = "It needs `work`, where commands run in the workspace itself."
_LOST = f"What it changed in its copy is lost: it was stopped before that was read. {_NEEDS_WORK}"
_FULL = f"The copy is full: it is kept in memory and bounded. {_NEEDS_WORK}"
_LIMITS = (
    (re.compile(r"no space left on device|\bENOSPC\b|os error 28\b|\[Errno 28\]", re.IGNORECASE), _FULL),
    (
        re.compile(r"invalid cross-device link|\bEXDEV\b|os error 18\b|\[Errno 18\]", re.IGNORECASE),
        f"A folder that was there before cannot be renamed in the copy. {_NEEDS_WORK}",
    ),
    (
        re.compile(r"value too large for defined data type|\bEOVERFLOW\b|os error 75\b|\[Errno 75\]", re.IGNORECASE),
        f"A file or folder of another user or group cannot be changed in the copy. {_NEEDS_WORK}",
    ),
)


class TakenBack(Struct, frozen=True):
    """An application of changes that a kill had cut short; `left` are paths that somebody changed since."""

    left: tuple[str, ...]

    @property
    def text(self) -> str:
        """Say for a person what was done."""
        said = "Treadle was killed while it applied the changes of a command. What it had applied was undone."
        names = ", ".join(map(repr, self.left[:_MOST_NAMED]))
        more = f" and {len(self.left) - _MOST_NAMED:,} more" if len(self.left) > _MOST_NAMED else ""
        return f"{said} Changed since by somebody, so left as it is: {names}{more}." if self.left else said


def read_changes(copy: Copy, hold: Hold, *, output: str = "", failed: bool = False) -> CopyChanges:
    """Say what a command changed in its copy, once it has ended. `output` is searched for the copy's own limits.

    `hold` says of an absolute path why it must not be changed; empty for what may be. Looks at the disk.
    """
    manifest = read_manifest(copy.folder)
    trouble = _trouble(manifest, output, failed=failed)
    if manifest is None or manifest.trouble:
        return CopyChanges(trouble=trouble)
    choice = _choice(copy, manifest, hold)
    all_of_them = (*choice.chosen, *(change for change, _ in choice.held))
    folders = {path_of(copy, change) for change in all_of_them if _is_whole_folder(change)}
    with _Texts(copy) as texts:
        shown = [_shown(copy, change, "", texts) for change in choice.chosen]
        shown += [_shown(copy, change, reason, texts) for change, reason in choice.held]
    return CopyChanges(
        digest=choice.digest,
        changes=tuple(sorted(_telling(shown, folders), key=lambda change: change.path)),
        ignored=choice.ignored,
        trouble=trouble,
    )


def _is_whole_folder(change: Difference) -> bool:
    """Whether a folder was made or removed, and nothing else was or is there."""
    return {state.kind if state is not None else "" for state in (change.before, change.after)} == {"", "d"}


def _telling(changes: Sequence[CopyChange], folders: Collection[str]) -> list[CopyChange]:
    """Leave out folders that were made for, or went with, something that is listed."""
    inner = {above for change in changes for above in _above(change.path)}
    return [change for change in changes if change.path not in folders or change.path not in inner]


def _above(path: str) -> Iterator[str]:
    while path != (path := posixpath.dirname(path)):
        yield path


def _trouble(manifest: Manifest | None, output: str, *, failed: bool) -> str:
    if manifest is None:
        return _LOST
    if manifest.trouble:
        return f"{manifest.trouble} {_NEEDS_WORK}"
    if manifest.full:
        return _FULL
    return next((text for found, text in _LIMITS if found.search(output)), "") if failed else ""


def _choice(copy: Copy, manifest: Manifest, hold: Hold) -> ChangeSelection:
    with contextlib.closing(Contents(copy.folder)) as contents:
        rows = tuple(change for change in manifest.changes if not _is_refreshed_index(copy, change, contents))
        ignore_files = {
            (change.root, change.path.rpartition(b"/")[0]): contents.whole(change)
            for change in new_ignore_files(rows)
            if change.after is not None and change.after.kind == "f" and change.size < _LARGEST_TEXT
        }
    return select_changes(copy.roots, structs.replace(manifest, changes=rows), hold, ignore_files)


def _is_refreshed_index(copy: Copy, change: Difference, contents: Contents) -> bool:
    """Whether git only wrote its index anew, as it does when it looks."""
    if change.note != INDEX:
        return False
    return is_same_index(read_plain(Path(path_of(copy, change), "index")), contents.whole(change))


def path_of(copy: Copy, change: Difference) -> str:
    """Give the absolute path of a change."""
    root = copy.roots[change.root]
    return root if change.path == b"." else posixpath.join(root, os.fsdecode(change.path))


def _shown(copy: Copy, change: Difference, held: str, texts: "_Texts") -> CopyChange:
    kind = ChangeKind.CHANGED
    if change.before is None:
        kind = ChangeKind.ADDED
    elif change.after is None:
        kind = ChangeKind.DELETED
    added, removed = texts.count(change)
    return CopyChange(path=path_of(copy, change), kind=kind, added=added, removed=removed, held=held)


class _Texts:
    """The old and the new text of changed files."""

    def __init__(self, copy: Copy) -> None:
        self._tree = Tree(copy.roots)
        self._contents = Contents(copy.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tree.close()
        self._contents.close()

    def count(self, change: Difference) -> tuple[int | None, int | None]:
        """Count the lines that are new and those that are gone; None for what is no text."""
        if not any(state is not None and state.kind == "f" for state in (change.before, change.after)):
            return None, None
        old, new = self.old(change), self.new(change)
        if old is None or new is None or not _is_comparable(old, new):
            return None, None
        if not old or not new:
            return _lines(new), _lines(old)
        diff = compare(old, new)
        return diff.added, diff.removed

    def diff(self, change: Difference) -> Diff | None:
        """Compare the texts; None where one is none, is too large, or differs in too many lines."""
        old, new = self.old(change), self.new(change)
        if old is None or new is None:
            return None
        return compare(old, new) if _is_comparable(old, new) else None

    def old(self, change: Difference) -> str | None:
        """Read the real file, if it still is what it was."""
        if change.before is None or change.before.kind != "f":
            return ""
        try:
            found = self._tree.status(change.root, change.path)
            if found is None or found.st_size > _LARGEST_TEXT:
                return None
            with self._tree.parent(change.root, change.path) as (fd, name), self._tree.reading(fd, name) as file:
                return _text(os.read(file, _LARGEST_TEXT))
        except OSError:
            return None

    def new(self, change: Difference) -> str | None:
        """Read what was kept."""
        if change.after is None or change.after.kind != "f":
            return ""
        if change.note or change.size > _LARGEST_TEXT:
            return None
        return _text(self._contents.whole(change))


def _lines(text: str) -> int:
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _is_comparable(old: str, new: str) -> bool:
    """Whether comparing takes no time to speak of."""
    return not (old and new) or (old.count("\n") + 1) * (new.count("\n") + 1) <= _MOST_COMPARED


def show_difference(copy: Copy, path: str) -> str:
    """Show one change as a unified diff, or in a line where it is no text, within bounds.

    Raises `ToolError` where the command did not change this path.
    """
    manifest = read_manifest(copy.folder)
    changes = manifest.changes if manifest is not None else ()
    change = next((change for change in changes if path_of(copy, change) == path), None)
    if change is None:
        raise ToolError(f"{path} is not among the changes of this copy. Name one that is listed.")
    name = os.fsdecode(change.path)
    with _Texts(copy) as texts:
        diff = texts.diff(change) if _is_about_text(change) else None
    lines = [*_facts(change, visible_name(name))]
    if diff is not None and diff.hunks:
        lines += diff.unified(name).splitlines()
    elif not lines:
        lines.append(f"{name}: binary, or too large to show.")
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"[... {len(lines) - _MOST_LINES:,} more lines]"]
    return "\n".join(lines) + "\n"


def _is_about_text(change: Difference) -> bool:
    return any(state is not None and state.kind == "f" for state in (change.before, change.after))


def _facts(change: Difference, name: str) -> Iterator[str]:
    """Say what a diff does not: kinds, targets of links, modes."""
    was, new = change.before, change.after
    if not _is_about_text(change) or (was is not None and new is not None and was.kind != new.kind):
        yield f"{name}: {_named(was)} -> {_named(new)}"
    elif was is not None and new is not None and was.mode != new.mode:
        yield f"{name}: mode {was.mode:o} -> {new.mode:o}"


def _named(state: EntryState | None) -> str:
    match state:
        case None:
            return "nothing"
        case EntryState(kind="l", what=target):
            return f"link to {os.fsdecode(bytes.fromhex(target))}"
        case EntryState(kind="d", mode=mode):
            return f"folder, mode {mode:o}"
        case EntryState(kind="f", mode=mode):
            return f"file, mode {mode:o}"
        case _:
            return "something else"


def apply_changes(copy: Copy, digest: str, hold: Hold) -> tuple[FileChange, ...]:
    """Apply the changes that `digest` names: all that is not held, or nothing. Gives the files that changed.

    Raises `ToolError` when the list is another one than was shown, or a path was changed in the meantime.
    """
    manifest = read_manifest(copy.folder)
    if manifest is None or manifest.trouble:
        raise ToolError("Nothing was applied: the changes are not there any more. Try the command again.")
    choice = _choice(copy, manifest, hold)
    if choice.digest != digest:
        raise ToolError("Nothing was applied: the changes are not those that were shown. Try the command again.")
    with _Texts(copy) as texts:
        done = tuple(_file_change(copy, change, texts) for change in choice.chosen if _is_about_text(change))
    carry_out(copy.folder, copy.roots, manifest.start, (*choice.chosen, *choice.beside))
    return done


def _file_change(copy: Copy, change: Difference, texts: _Texts) -> FileChange:
    added, removed = texts.count(change)
    return FileChange(
        path=path_of(copy, change),
        before=_hash(change.before),
        after=_hash(change.after),
        added=added or 0,
        removed=removed or 0,
    )


def _hash(state: EntryState | None) -> str:
    return state.what if state is not None and state.kind == "f" else ""


def throw_away(copy: Copy) -> None:
    """Forget a copy and all that was changed in it."""
    remove_folder(copy.folder)


def recover_copies(data: Path) -> tuple[TakenBack, ...]:
    """Take back what killed processes were applying, and throw away the copies that they left."""
    found: list[TakenBack] = []
    for folder in take_abandoned(data):
        with contextlib.suppress(OSError):
            if (folder / "journal").exists():
                found.append(TakenBack(take_back(folder)))
        if not (folder / "journal").exists():
            remove_folder(folder)
    return tuple(found)
