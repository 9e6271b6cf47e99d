"""A writer's changes and the files as they are now: what of the one goes into the other, and what does not."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from treadle.app.checkpoints.conflicts import FileConflict, FileVersion, conflict_of
from treadle.protocol.protected_names import later_name, secret_name
from treadle.workspace.checkpoints.merging import is_binary
from treadle.workspace.checkpoints.planning import (
    ClashError,
    PlannedRemoval,
    PlannedWrite,
    RestorePlan,
    WantedFile,
    without_change,
)
from treadle.workspace.checkpoints.scanning import FOLDER_FLAGS, MODE_BITS, READ_FLAGS, read_all
from treadle.workspace.checkpoints.trees import BlobReader, TreeEntry, TreeKind
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.walking import walk

LARGEST = 50_000_000
"""Bytes of a file that is compared and merged."""

_FOLDER = TreeEntry(TreeKind.FOLDER)


class WriterChange(Struct, frozen=True, kw_only=True):
    """A path that a writer changed in one of its folders: what it was when the writer began, and what it is.

    `kept` is the entry as it is stored of the copy, in which links into it have other targets.
    """

    root: int
    path: bytes
    before: TreeEntry | None
    after: TreeEntry | None
    kept: TreeEntry | None = None


class PersonsPaths(Struct, frozen=True):
    """The absolute paths that a person `approved` although they are protected, and those with `unsaved` text."""

    approved: frozenset[str] = frozenset()
    unsaved: frozenset[str] = frozenset()


class MergePlan(Struct, frozen=True, kw_only=True):
    """What becomes of one folder: `restore` has what is written and removed, `same` what is so already.

    `held` are paths that are not changed without a person's yes, each with the reason.
    """

    restore: RestorePlan
    same: tuple[bytes, ...] = ()
    conflicts: tuple[bytes, ...] = ()
    held: Mapping[bytes, str] = {}


class MergePlanner:
    """Plans for one folder, held open; reads what is at the paths that a writer changed, and follows no link."""

    def __init__(self, root: str, changes: Sequence[WriterChange], blob: BlobReader, persons: PersonsPaths) -> None:
        self._root = root
        self._changes = {change.path: change for change in changes}
        self._stored = blob
        self._persons = persons
        self._contents: dict[str, bytes] = {}
        self._fd = os.open(root, FOLDER_FLAGS)
        self._now: dict[bytes, TreeEntry | None] = {}
        self._blocking: dict[bytes, bytes] = {}

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._fd)

    def read(self, what: str) -> bytes:
        """Give bytes by their SHA-256: of the writer's versions, or of what is in the folder."""
        found = self._contents.get(what)
        return self._stored(what) if found is None else found

    def plan(self) -> MergePlan:
        """Decide for each path by the three versions of it, then between them."""
        held: dict[bytes, str] = {}
        desired: dict[bytes, WantedFile] = {}
        same: list[bytes] = []
        conflicts: list[bytes] = []
        for path, change in sorted(self._changes.items()):
            now = self._look(path)
            if now == change.after:
                same.append(path)
            elif why := self._why_held(path):
                held[path] = why
            else:
                try:
                    wanted = without_change(change.before, WantedFile(_place(now)), change.after, self.read)
                except ClashError:
                    conflicts.append(path)
                    continue
                if wanted.entry == _place(now):
                    same.append(path)
                else:
                    desired[path] = wanted
        removed = {path for path, wanted in desired.items() if wanted.entry is None}
        for path in [path for path in desired if path not in removed and not self._is_free(path, removed)]:
            del desired[path]
            conflicts.append(path)
        return MergePlan(
            restore=RestorePlan(writes=tuple(self._writes(desired)), removals=tuple(self._removals(desired))),
            same=tuple(same),
            conflicts=tuple(conflicts),
            held=held,
        )

    def _why_held(self, path: bytes) -> str:
        whole = f"{self._root}/{os.fsdecode(path)}"
        if whole in self._persons.unsaved:
            return "it has changes in the editor that are not saved"
        name = protecting_name(path)
        return f"{name} is protected" if name and whole not in self._persons.approved else ""

    def conflict(self, path: bytes) -> FileConflict:
        """Compare the three versions of a path: when the writer began, the writer's, and as it is in the folder."""
        change, now = self._changes[path], self._look(path)
        name = shown_name(f"{self._root}/{os.fsdecode(path)}")
        return conflict_of(name, *(self._version(entry) for entry in (change.before, change.after, now)))

    def _version(self, entry: TreeEntry | None) -> FileVersion:
        if entry is None:
            return FileVersion(about="It is not there.")
        match entry.kind:
            case TreeKind.FOLDER:
                return FileVersion(about="It is a folder.")
            case TreeKind.NOT_COVERED:
                return FileVersion(about=entry.what)
            case TreeKind.LINK:
                return FileVersion(about=f"It is a link to {shown_name(os.fsdecode(self.read(entry.what)))}.")
            case TreeKind.FILE:
                content = self.read(entry.what)
                binary = f"It is binary: {entry.size:,} bytes."
                return FileVersion(about=binary) if is_binary(content) else FileVersion(content=content)

    def _writes(self, desired: Mapping[bytes, WantedFile]) -> Iterator[PlannedWrite]:
        for path, wanted in desired.items():
            if wanted.entry is not None:
                now = _place(self._now[path])
                yield PlannedWrite(path=path, entry=wanted.entry, now=now, content=wanted.content)

    def _removals(self, desired: Mapping[bytes, WantedFile]) -> Iterator[PlannedRemoval]:
        for path, wanted in desired.items():
            if wanted.entry is None and (now := _place(self._now[path])) is not None:
                yield PlannedRemoval(path=path, now=now)

    def _is_free(self, path: bytes, removed: set[bytes]) -> bool:
        """Whether something can be put at a path: what is there instead, or on the way to it, goes along."""
        if (above := self._blocking.get(path)) is not None:
            return above in removed
        return self._now[path] != _FOLDER or all(below in removed for below in self._below(path))

    def _below(self, path: bytes) -> Iterator[bytes]:
        """Give what a folder holds but folders."""
        for folder, folders, files in walk(os.fsencode(self._root) + b"/" + path):
            links = [name for name in folders if os.path.islink(folder + b"/" + name)]  # noqa: PTH114 - bytes
            for name in (*files, *links):
                yield (folder + b"/" + name)[len(os.fsencode(self._root)) + 1 :]

    def _look(self, path: bytes) -> TreeEntry | None:
        """Give what is at a path now. What stands on the way to it is remembered."""
        *above, name = path.split(b"/")
        fd, at = os.dup(self._fd), b""
        try:
            for part in above:
                at = at + b"/" + part if at else part
                try:
                    below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
                except FileNotFoundError:
                    return self._seen(path, None)
                except OSError:
                    self._blocking[path] = at
                    return self._seen(path, None)
                os.close(fd)
                fd = below
            return self._seen(path, self._entry(fd, name))
        finally:
            os.close(fd)

    def _seen(self, path: bytes, entry: TreeEntry | None) -> TreeEntry | None:
        self._now[path] = entry
        return entry

    def _entry(self, fd: int, name: bytes) -> TreeEntry | None:
        try:
            status = os.lstat(name, dir_fd=fd)
            if stat.S_ISDIR(status.st_mode):
                return _FOLDER
            if stat.S_ISLNK(status.st_mode):
                return self._kept(TreeKind.LINK, 0, os.fsencode(os.readlink(name, dir_fd=fd)))
            file = os.open(name, READ_FLAGS, dir_fd=fd)
        except FileNotFoundError:
            return None
        except OSError:
            return TreeEntry(TreeKind.NOT_COVERED, what="It cannot be read.")
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                return TreeEntry(TreeKind.NOT_COVERED, what="It is a pipe, a socket or a device.")
            data = read_all(file, status.st_size, LARGEST)
        finally:
            os.close(file)
        if data is None:
            return TreeEntry(TreeKind.NOT_COVERED, what=f"It is larger than {LARGEST:,} bytes.")
        return self._kept(TreeKind.FILE, status.st_mode & MODE_BITS, data)

    def _kept(self, kind: TreeKind, mode: int, data: bytes) -> TreeEntry:
        digest = sha256(data).hexdigest()
        self._contents[digest] = data
        return TreeEntry(kind, mode, len(data), digest)


def protecting_name(path: bytes) -> str:
    """Give the name by which a path is not changed without a person's yes; empty for what may be."""
    text = os.fsdecode(path)
    return later_name(text) or secret_name(text) or ""


def _place(now: TreeEntry | None) -> TreeEntry | None:
    """Take a folder for nothing: what it holds is looked at by itself."""
    return None if now == _FOLDER else now
