"""A copy's changes as a person is shown them: a row for each, first what runs or loads something, and the diffs."""

import codecs
import os
import posixpath
from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from treadle.protocol.name_lists import PROJECT_SCRIPTS
from treadle.protocol.tools import ChangeKind, CopyChange
from treadle.workspace.checkpoints.trees import LARGEST_KEPT, folders_above
from treadle.workspace.copies.choosing_changes import Shown
from treadle.workspace.copies.making import Copy
from treadle.workspace.copies.staging import Contents, Difference, EntryState
from treadle.workspace.copies.tree import Tree
from treadle.workspace.files.diffs import Diff, compare
from treadle.workspace.files.text import visible_name

LARGEST_TEXT = 1024 * 1024
_MOST_COMPARED = 4_000_000
"""Lines of one text times lines of the other, between their first and last difference."""

_MOST_SHOWN = 400_000
"""Characters of all differences together; what does not fit takes a yes of its own."""

_EXECUTABLE = 0o111
_PEEK = 8_192


def show_changes(copy: Copy, shown: Sequence[Shown]) -> tuple[tuple[CopyChange, ...], str]:
    """Give a row for each change, in the order in which they are shown, and the differences of all that fit."""
    rows: list[CopyChange] = []
    texts: list[str] = []
    room = _MOST_SHOWN
    with CopyTexts(copy) as reader:
        for one in sorted(_telling(shown), key=lambda one: (not one.held, not _stands_first(one), one.change.path)):
            row, text = _shown(copy, one, reader)
            if len(text) > room:
                row = replace(row, unshown=True, about=_joined(row.about, "too large to show"))
                text = f"{_name(one.change)}: {row.about}\n"
            room = max(0, room - len(text))
            rows.append(row)
            texts.append(text)
    return tuple(rows), "".join(texts)


def _telling(shown: Sequence[Shown]) -> list[Shown]:
    """Leave out folders that were made for, or went with, something that is listed."""
    above = {(one.change.root, folder) for one in shown for folder in folders_above(one.change.path)}
    return [
        one
        for one in shown
        if one.held or not _is_whole_folder(one.change) or (one.change.root, one.change.path) not in above
    ]


def _is_whole_folder(change: Difference) -> bool:
    """Whether a folder was made or removed, and nothing else was or is there."""
    return set(change.kinds) == {"", "d"}


def _stands_first(one: Shown) -> bool:
    """Whether a change runs or loads something later, leads elsewhere, or loses what git has no copy of."""
    was, new = one.change.before, one.change.after
    if one.ignored and was is not None:
        return True
    if new is None:
        return False
    by_others = new.kind == "f" and posixpath.basename(os.fsdecode(one.change.path)).lower() in PROJECT_SCRIPTS
    return by_others or new.kind == "l" or bool(_modes(was, new)) or (new.kind == "f" and bool(new.mode & _EXECUTABLE))


def _shown(copy: Copy, one: Shown, texts: "CopyTexts") -> tuple[CopyChange, str]:
    """Give the row of a change, and its differences as text."""
    change = one.change
    diff = texts.diff(change) if is_about_text(change) else None
    is_text = texts.is_text(change) if diff is None else None
    size = "" if is_text is None else f"{'text' if is_text else 'binary'}, {change.size:,} bytes"
    about = _joined(*_facts(one, size), _unkept(change, change.place(copy.roots)))
    row = CopyChange(
        path=change.place(copy.roots),
        kind=_kind(change),
        added=None if diff is None else diff.added,
        removed=None if diff is None else diff.removed,
        held=one.held,
        about=about,
        first=_stands_first(one),
        unshown=bool(is_text),
    )
    lines = [f"{_name(change)}: {_joined(one.held, about)}"] if one.held or about else []
    if diff is not None and diff.hunks:
        lines.append(diff.unified(os.fsdecode(change.path)).rstrip("\n"))
    lines = lines or [f"{_name(change)}: {row.kind.value}"]
    lines += [f"{_name(inner)}: deleted" for inner in one.inner]
    return row, "\n".join(lines) + "\n"


def _kind(change: Difference) -> ChangeKind:
    if change.before is None:
        return ChangeKind.ADDED
    return ChangeKind.DELETED if change.after is None else ChangeKind.CHANGED


def _name(change: Difference) -> str:
    return visible_name(os.fsdecode(change.path))


def _joined(*facts: str) -> str:
    return ", ".join(filter(None, facts))


def _facts(one: Shown, size: str) -> Iterator[str]:
    """Say what a diff does not: kinds, targets of links, modes, sizes, and what nothing brings back."""
    was, new = one.change.before, one.change.after
    if was is not None and new is not None and was.kind != new.kind:
        yield f"was a {_KINDS[was.kind]}"
    if new is not None and new.kind == "l":
        target = visible_name(os.fsdecode(bytes.fromhex(new.what)))
        yield f"link to {target}, which may lead out of the workspace" if one.leads_out else f"link to {target}"
    elif new is not None and (new.kind != "f" or (was is not None and was.kind != new.kind)):
        yield _KINDS[new.kind]
    if new is not None and (modes := _modes(was, new)):
        yield modes
    if size:
        yield size
    if one.ignored and was is not None:
        files = sum(is_about_text(change) for change in one.inner)
        what = f"{files:,} {'file' if files == 1 else 'files'} that git ignores" if one.inner else "git ignores it"
        yield what


def _unkept(change: Difference, path: str) -> str:
    """Say that no checkpoint holds what a file is as long as the change is not made."""
    if change.before is None or change.before.kind != "f" or change.before == change.after:
        return ""
    try:
        size = os.lstat(path).st_size
    except OSError:
        return ""
    return "too large for a checkpoint: /undo does not restore it" if size > LARGEST_KEPT else ""


_KINDS = {"f": "file", "d": "folder", "l": "link", "s": "pipe, socket or device"}


def _modes(was: EntryState | None, new: EntryState) -> str:
    """Say what of the rights is out of the ordinary."""
    if was is None or was.kind != new.kind:
        return "executable" if new.kind == "f" and new.mode & _EXECUTABLE else ""
    return f"mode {was.mode:o} -> {new.mode:o}" if was.mode != new.mode else ""


class CopyTexts:
    """The old and the new text of changed files."""

    def __init__(self, copy: Copy) -> None:
        self._tree = Tree(copy.roots)
        self._contents = Contents(copy.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tree.close()
        self._contents.close()

    def is_text(self, change: Difference) -> bool | None:
        """Whether a file without a diff is a text by its beginning, so too large for one; None where none was kept."""
        if change.kinds[1] != "f" or change.note:
            return None
        begins = next(iter(self._contents.read(change)), b"")[:_PEEK]
        try:
            return b"\0" not in begins and codecs.getincrementaldecoder("utf-8")().decode(begins) is not None
        except UnicodeDecodeError:
            return False

    def diff(self, change: Difference) -> Diff | None:
        """Compare the texts; None where one is none, is too large, or differs in too many lines."""
        old, new = self.old(change), self.new(change)
        if old is None or new is None:
            return None
        return compare(old, new) if _is_comparable(old, new) else None

    def old(self, change: Difference) -> str | None:
        """Read the real file, if it still is what it was."""
        if change.kinds[0] != "f":
            return ""
        try:
            found = self._tree.status(change.root, change.path)
            if found is None or found.st_size > LARGEST_TEXT:
                return None
            with self._tree.parent(change.root, change.path) as (fd, name), self._tree.reading(fd, name) as file:
                return _text(os.read(file, LARGEST_TEXT))
        except OSError:
            return None

    def new(self, change: Difference) -> str | None:
        """Read what was kept."""
        if change.kinds[1] != "f":
            return ""
        if change.note or change.size > LARGEST_TEXT:
            return None
        return _text(self._contents.whole(change))


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


def is_about_text(change: Difference) -> bool:
    """Whether a file is or was there."""
    return "f" in change.kinds
