"""A change set in parts that can be applied by themselves: the changes of a file of text, and other files whole."""

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.checkpoints.reviewing import ReviewedHunk, TextVersions
from treadle.app.subagents.writer_changes import ChangeSet
from treadle.app.subagents.writer_merging import WriterChange, protecting_name
from treadle.app.subagents.writer_record import copy_store, writer_place, writer_record
from treadle.protocol.errors import ConfigError
from treadle.workspace.checkpoints.merging import is_binary
from treadle.workspace.checkpoints.revising import revise_lines
from treadle.workspace.checkpoints.trees import BlobReader, TreeEntry, TreeKind
from treadle.workspace.files.names import shown_name

_KEY = 4
"""Characters of a key, as long as they are enough to tell parts from each other."""

_EXECUTABLE = 0o111


class CopyHunk(Struct, frozen=True, kw_only=True):
    """A part of what a copy changed: `hunk`, or without one the file at `path` (absolute, in the workspace) as a whole.

    `key` (hex) names it by what it says, wherever it is shown. `about` says of a whole file what becomes of it, and
    of a hunk what becomes of the mode of its file; `protected` is the name by which it is applied only where a person
    names it.
    """

    key: str
    path: str
    shown: str
    hunk: ReviewedHunk | None
    about: str
    protected: str
    row: int
    """Its place in the files of the change set."""


def copy_hunks(change_set: ChangeSet) -> tuple[CopyHunk, ...]:
    """Take a change set apart, in the order of its files. For a thread. Raises `StoreError`, `SessionError`."""
    found = _whole_keys(change_set)
    keys = [one.key for one in found]
    length = next(
        (
            size
            for size in range(_KEY, max(map(len, keys), default=0))
            if len({key[:size] for key in keys}) == len(keys)
        ),
        None,
    )
    return tuple(replace(one, key=one.key[:length]) for one in found)


def _whole_keys(change_set: ChangeSet) -> Sequence[CopyHunk]:
    """Take it apart with keys that are not cut: how much of one is enough changes as parts come and go."""
    with _reader(change_set) as read:
        return [part for row, change in enumerate(change_set.files) for part in _parts(change_set, row, change, read)]


def part_of(change_set: ChangeSet, keys: Collection[str]) -> tuple[ChangeSet, frozenset[str]]:
    """Give the part of a change set with these keys, and the paths that they name.

    For a thread. Raises `ConfigError` for a key that there is not, `StoreError`, `SessionError`.
    """
    parts = _whole_keys(change_set)
    chosen = [one for key in keys for one in _named(parts, key)]
    rows = sorted({one.row for one in chosen})
    made = dict(change_set.made)
    files: list[WriterChange] = []
    with _reader(change_set) as read:
        for row in rows:
            change = change_set.files[row]
            wanted = {one.hunk.index for one in chosen if one.row == row and one.hunk is not None}
            if len(wanted) < sum(one.row == row and one.hunk is not None for one in parts):
                change = _in_part(change, wanted, read, made)
            files.append(change)
    part = replace(change_set, files=tuple(files), repositories=(), left_out=(), made=made)
    return part, frozenset(one.path for one in chosen)


def _named(parts: Sequence[CopyHunk], key: str) -> Iterator[CopyHunk]:
    found = [one for one in parts if one.key.startswith(key.lower())]
    if len(found) != 1:
        what = f"{key} names {len(found)} changes." if found else f"There is no change {key} in this copy."
        raise ConfigError("copy-change", what, fix="`treadle copies show ID` lists them; a key names one.")
    yield found[0]


def _in_part(change: WriterChange, wanted: Collection[int], read: BlobReader, made: dict[str, bytes]) -> WriterChange:
    """Leave some changes of a file of text out; its mode stays as it was until all are taken."""
    assert change.before is not None  # noqa: S101 - a file that is new has one change
    assert change.after is not None  # noqa: S101 - and so has one that is gone
    texts = TextVersions(read(change.before.what), read(change.after.what))
    others = {index: None for index in range(len(texts.changes)) if index not in wanted}
    content = revise_lines(texts.old, texts.new, texts.changes, others)
    digest = sha256(content).hexdigest()
    made[digest] = content
    entry = TreeEntry(TreeKind.FILE, change.before.mode, len(content), digest)
    return replace(change, after=entry, kept=entry)


def _parts(change_set: ChangeSet, row: int, change: WriterChange, read: BlobReader) -> Iterator[CopyHunk]:
    source = change_set.copy.roots[change.root][0]
    below = shown_name(os.fsdecode(change.path))
    part = CopyHunk(
        key="",
        path=f"{source}/{os.fsdecode(change.path)}",
        shown=f"{shown_name(str(source))}/{below}" if change.root else below,
        hunk=None,
        about=_about(change),
        protected=protecting_name(change.path),
        row=row,
    )
    texts = _texts(change, read)
    hunks = () if texts is None else tuple(texts.hunks(part.path, 3))
    mode = _mode_note(change)
    if mode and len(hunks) > 1:
        mode += ", with the last of its changes"
    yield from (replace(part, key=hunk.key, hunk=hunk, about=mode) for hunk in hunks)
    if not hunks:
        sides = [repr(entry) for entry in (change.before, change.after)]
        yield replace(part, key=sha256("\0".join((part.path, *sides)).encode(errors="surrogateescape")).hexdigest())


def _texts(change: WriterChange, read: BlobReader) -> TextVersions | None:
    sides = [entry for entry in (change.before, change.after) if entry is not None]
    if any(entry.kind is not TreeKind.FILE for entry in sides):
        return None
    old, new = (b"" if entry is None else read(entry.what) for entry in (change.before, change.after))
    return None if is_binary(old) or is_binary(new) else TextVersions(old, new)


def _about(change: WriterChange) -> str:
    before, after = change.before, change.after
    if after is None:
        return "deleted"
    mode = _mode_note(change)
    if before is not None and before.what == after.what and mode:
        return mode
    what = "a link" if after.kind is TreeKind.LINK else f"{after.size:,} bytes"
    said = f"new, {what}" if before is None else f"changed, {what} now"
    return f"{said}, {mode}" if mode else said


def _mode_note(change: WriterChange) -> str:
    """Say what becomes of the mode of a file, where applying it does something to that; empty elsewhere."""
    before, after = change.before, change.after
    if after is None or after.kind is not TreeKind.FILE:
        return ""
    if before is None or before.kind is not TreeKind.FILE:
        return f"executable, mode {after.mode:o}" if after.mode & _EXECUTABLE else ""
    return f"mode {before.mode:o} to {after.mode:o}" if before.mode != after.mode else ""


@contextlib.contextmanager
def _reader(change_set: ChangeSet) -> Iterator[BlobReader]:
    """Give bytes by their SHA-256, of any folder of the copy."""
    copy, record = change_set.copy, writer_record(change_set.copy)
    with contextlib.ExitStack() as stack:
        stores = [
            stack.enter_context(
                copy_store(writer_place(copy.child_id), number, target, covers_ignored=row.covers_ignored)
            )
            for number, ((_, target), row) in enumerate(zip(copy.roots, record.roots, strict=True))
        ]
        where = {
            entry.what: stores[change.root]
            for change in change_set.files
            for entry in (change.before, change.after)
            if entry is not None
        }
        yield lambda what: change_set.made[what] if what in change_set.made else where[what].read(what)
