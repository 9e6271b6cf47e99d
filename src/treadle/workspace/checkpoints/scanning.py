"""Reading a folder into a tree: what did not change since the last time is not read again, and no link is followed."""

import contextlib
import os
import stat
import sys
import time
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.protocol.patterns import regex
from treadle.workspace.checkpoints.objects import Objects
from treadle.workspace.checkpoints.trees import NO_TREE, TreeEntry, TreeKind, folder_entry
from treadle.workspace.copies.caches import can_be_made_again
from treadle.workspace.ignore.git_index import checkout_of, tracked_names
from treadle.workspace.ignore.ignoring import Ignoring

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MODE_BITS = 0o777
_GIT = ".git"
_GIT_NAMES = frozenset((".git", ".Git", ".GIT") if sys.platform == "darwin" else (".git",))
"""Where case does not matter, each of these is the same folder."""

_GIT_DATA = frozenset(("HEAD", "objects", "refs"))
_IGNORES = ((".git/info/exclude", ".gitignore"),)
_TEMPORARY = regex(r"\.treadle-[0-9a-f]{16}\.tmp")
_DEEPEST = 200
_TICK = 50_000_000
"""Nanoseconds in which a file may change twice without its time showing it; on some disks times are whole seconds."""
_WHOLE_SECONDS = 2_000_000_000

MOST_IGNORED = 200_000_000
"""Bytes of files that git ignores which a tree holds, outside of what builds make."""

_MOST_IGNORED_ENTRIES = 5_000
TOO_MUCH_IGNORED = "Git ignores it, and it is more than checkpoints hold of that (200 MB, 5,000 files)."
TOO_DEEP = "It is too deep in folders."
_UNREADABLE = "It cannot be read."
GIT_DATA = "It is the data of a git repository."
SPECIAL = "It is a pipe, a socket or a device."


class NotCovered(Struct, frozen=True):
    """A path that a checkpoint does not hold, and that no restore touches; and why."""

    path: bytes
    why: str


class _Known(Struct, frozen=True, array_like=True):
    """A name as it was seen: when it was changed (0: look again), and what is stored of it; None where it is left out.

    `ignored`: git ignores it.
    """

    changed: int
    inode: int
    size: int
    is_folder: bool
    entry: TreeEntry | None
    ignored: bool = False


class _Seen(Struct, frozen=True, array_like=True):
    """A folder as it was seen: which ignore files were in effect, its tree, and its names."""

    ignores: int
    tree: str
    names: dict[bytes, _Known]


class FolderMemory:
    """What a root looked like last, in this process and in the database, so that the next look takes milliseconds."""

    def __init__(self) -> None:
        self.pruned = -1
        self.folders: dict[str, _Seen] = {}
        self.too_much: set[str] = set()
        """Paths that git ignores and that were found to be too much."""

    def load(self, objects: Objects) -> None:
        """Read what the database has, when it may know more, or when what is known here may have been removed there."""
        if self.pruned == (pruned := objects.pruned()):
            return
        rows = objects.connection.execute("SELECT path, seen FROM folders").fetchall()
        decode = msgspec.msgpack.Decoder(_Seen).decode
        self.folders = {os.fsdecode(path): decode(seen) for path, seen in rows}
        self.pruned = pruned

    def save(self, objects: Objects, folders: dict[str, _Seen]) -> None:
        """Remember a later look; in the database what is new in it."""
        encode = msgspec.msgpack.Encoder().encode
        new = ((os.fsencode(p), encode(seen)) for p, seen in folders.items() if self.folders.get(p) is not seen)
        objects.connection.executemany("INSERT OR REPLACE INTO folders VALUES (?, ?)", new)
        gone = ((os.fsencode(path),) for path in self.folders.keys() - folders.keys())
        objects.connection.executemany("DELETE FROM folders WHERE path = ?", gone)
        self.folders = folders


class Scanner:
    """One look at a root. `largest` are the bytes of a file beyond which it is not covered.

    What git ignores is covered up to a bound, but for what builds and package managers make; `covers_ignored`: all of
    it. What is more than the bound is left out as a whole, be it a file or a folder, as long as the memory lasts; of a
    folder that was covered, what is new.
    """

    def __init__(
        self, objects: Objects, memory: FolderMemory, root: str, *, covers_ignored: bool, largest: int
    ) -> None:
        self._objects = objects
        self._last = memory.folders
        self._too_much = memory.too_much
        self._ignored_bytes = self._ignored_entries = 0
        self._known_only = False
        self._root = root
        self._covers_ignored = covers_ignored
        self._largest = largest
        self._started = time.time_ns()
        self._top = checkout_of(root) or Path(root)
        self._ignoring: Ignoring | None = None
        self._tracked_names: frozenset[str] | None = None
        self.folders: dict[str, _Seen] = {}
        self.not_covered: list[NotCovered] = []
        self.newly_too_much: list[str] = []

    def scan(self) -> str:
        """Store what changed, and give the tree. Raises `OSError` when the root cannot be read."""
        fd = os.open(self._root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            return self._folder(fd, "", _Place(self._ignores_above(), 0, ignored=False))
        finally:
            os.close(fd)

    def _ignores_above(self) -> int:
        """Give what stands for the ignore files in the folders above the root, up to its checkout."""
        above = [folder for folder in Path(self._root).parents if folder.is_relative_to(self._top)]
        signs = -1 if self._covers_ignored else 1
        for folder in reversed(above):
            for name in _IGNORES[0]:
                signs = hash((signs, _sign(str(folder / name), None)))
        return signs

    def _folder(self, fd: int, path: str, place: "_Place") -> str:
        """Look through a folder; `path` is empty or ends with a slash. Gives its tree."""
        ignores = place.ignores
        last = self._last.get(path)
        with os.scandir(fd) as found:
            entries = list(found)
        present = {entry.name for entry in entries}
        if path and present >= _GIT_DATA:
            raise _UncoveredError(GIT_DATA)
        if not self._covers_ignored:
            for file in _IGNORES[0]:
                if file.partition("/")[0] in present:
                    ignores = hash((ignores, _sign(file, fd)))
        known = last.names if last is not None else {}
        trusted = last is not None and last.ignores == ignores
        here = _Place(ignores, place.depth, place.ignored)
        names: dict[bytes, _Known] = {}
        for entry in entries:
            if entry.name in _GIT_NAMES or (entry.name[0] == "." and _TEMPORARY.fullmatch(entry.name)):
                continue
            name = os.fsencode(entry.name)
            try:
                now = self._name(entry, fd, (path, here), known.get(name), trusted=trusted)
            except FileNotFoundError:
                continue
            if now is not None:
                names[name] = now
        if last is not None and trusted and last.names == names:
            self.folders[path] = last
            return last.tree
        listing = {name: one.entry for name, one in names.items() if one.entry is not None}
        tree = self._objects.add_listing(listing, like=last.tree if last is not None else "")
        self.folders[path] = _Seen(ignores, tree, names)
        return tree

    def _name(
        self, entry: "os.DirEntry[str]", fd: int, at: "tuple[str, _Place]", known: _Known | None, *, trusted: bool
    ) -> _Known | None:
        """Look at one name; None for a folder with nothing in it."""
        path = at[0] + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        ignored = at[1].ignored
        if not (self._covers_ignored or ignored):
            if trusted and known is not None and known.is_folder == is_folder:
                ignored = known.ignored and not self._is_tracked(path, is_folder=is_folder)
            else:
                ignored = self._is_hidden(path, is_folder=is_folder)
        if not ignored:
            return self._covered(entry, fd, at, known, ignored=False)
        if self._known_only and known is None:
            return None
        if can_be_made_again(os.fsencode(path), is_folder=is_folder):
            return _Known(0, 0, 0, is_folder, None, ignored=True)
        if at[1].ignored:
            return self._covered(entry, fd, at, known, ignored=True)
        return self._first_ignored(entry, fd, at, known)

    def _first_ignored(
        self, entry: "os.DirEntry[str]", fd: int, at: "tuple[str, _Place]", known: _Known | None
    ) -> _Known | None:
        """Look at what git ignores, in a folder that it does not ignore: all of it is covered, or nothing."""
        path, is_folder = at[0] + entry.name, entry.is_dir(follow_symlinks=False)
        held = self._ignored_bytes, self._ignored_entries
        uncovered = len(self.not_covered)
        was_covered = is_folder and f"{path}/" in self._last
        try:
            if path in self._too_much:
                raise _TooMuchError
            if is_folder and not was_covered:
                self._measure(path)  # before the first of it is read
            return self._covered(entry, fd, at, known, ignored=True)
        except _TooMuchError:
            self._ignored_bytes, self._ignored_entries = held
            del self.not_covered[uncovered:]
            for name in [name for name in self.folders if name.startswith(f"{path}/")]:
                del self.folders[name]
        if path not in self._too_much:
            self._too_much.add(path)
            self.newly_too_much.append(f"What is new in {path}" if was_covered else path)
        self.not_covered.append(NotCovered(os.fsencode(path), TOO_MUCH_IGNORED))
        if was_covered:
            self._known_only = True
            try:
                return self._covered(entry, fd, at, known, ignored=True)
            finally:
                self._known_only = False
        return _Known(0, 0, 0, is_folder, TreeEntry(TreeKind.NOT_COVERED, what=TOO_MUCH_IGNORED), ignored=True)

    def _measure(self, path: str) -> None:
        """Raise `_TooMuchError` for a folder that does not fit; reads no file."""
        bytes_, entries, todo = self._ignored_bytes, self._ignored_entries, [f"{path}/"]
        while todo:
            folder = todo.pop()
            with contextlib.suppress(OSError), os.scandir(f"{self._root}/{folder}") as found:
                for entry in found:
                    name, is_folder = folder + entry.name, entry.is_dir(follow_symlinks=False)
                    if can_be_made_again(os.fsencode(name), is_folder=is_folder):
                        continue
                    if is_folder:
                        todo.append(f"{name}/")
                    elif (size := entry.stat(follow_symlinks=False).st_size) <= self._largest:
                        bytes_ += size
                    entries += 1
                    if bytes_ > MOST_IGNORED or entries > _MOST_IGNORED_ENTRIES:
                        raise _TooMuchError

    def _count(self, size: int) -> None:
        self._ignored_entries += 1
        self._ignored_bytes += size if size <= self._largest else 0
        too_much = self._ignored_bytes > MOST_IGNORED or self._ignored_entries > _MOST_IGNORED_ENTRIES
        if too_much and not self._known_only:
            raise _TooMuchError

    def _covered(
        self, entry: "os.DirEntry[str]", fd: int, at: "tuple[str, _Place]", known: _Known | None, *, ignored: bool
    ) -> _Known | None:
        path, place = at[0] + entry.name, at[1]
        if entry.is_dir(follow_symlinks=False):
            if ignored:
                self._count(0)
            return self._below(entry.name, fd, at[0], _Place(place.ignores, place.depth, ignored))
        status = entry.stat(follow_symlinks=False)
        if ignored:
            self._count(status.st_size)
        if (
            known is not None
            and known.changed == status.st_ctime_ns
            and known.size == status.st_size
            and known.inode == status.st_ino
            and known.ignored == ignored
            and status.st_size <= self._largest
        ):
            return known
        stored, status = self._store(fd, entry.name, status, known)
        if stored.kind is TreeKind.NOT_COVERED:
            self.not_covered.append(NotCovered(os.fsencode(path), stored.what))
            return _Known(0, 0, 0, False, stored, ignored)
        since = _TICK if status.st_ctime_ns % 1_000_000_000 else _WHOLE_SECONDS
        changed = status.st_ctime_ns if status.st_ctime_ns < self._started - since else 0
        return _Known(changed, status.st_ino, status.st_size, False, stored, ignored)

    def _below(self, name: str, fd: int, path: str, place: "_Place") -> _Known | None:
        ignored = place.ignored
        try:
            if place.depth >= _DEEPEST:
                raise _UncoveredError(TOO_DEEP)
            below = os.open(name, FOLDER_FLAGS, dir_fd=fd)
            try:
                mode = os.fstat(below).st_mode & MODE_BITS
                tree = self._folder(below, f"{path}{name}/", _Place(place.ignores, place.depth + 1, ignored))
            finally:
                os.close(below)
        except (_UncoveredError, PermissionError) as error:
            why = error.why if isinstance(error, _UncoveredError) else _UNREADABLE
            self.not_covered.append(NotCovered(os.fsencode(path + name), why))
            return _Known(0, 0, 0, True, TreeEntry(TreeKind.NOT_COVERED, what=why), ignored)
        if tree == NO_TREE:
            return None
        return _Known(0, 0, 0, True, folder_entry(tree, mode), ignored)

    def _store(
        self, fd: int, name: str, status: os.stat_result, known: _Known | None
    ) -> tuple[TreeEntry, os.stat_result]:
        """Store a file or a link; gives also what it looked like when it was read."""
        like = known.entry.what if known is not None and known.entry is not None and not known.is_folder else ""
        if stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=fd))
            return TreeEntry(TreeKind.LINK, 0, len(target), self._objects.add(target)), status
        if not stat.S_ISREG(status.st_mode):
            return TreeEntry(TreeKind.NOT_COVERED, what=SPECIAL), status
        try:
            file = os.open(name, READ_FLAGS, dir_fd=fd)
        except FileNotFoundError:
            raise
        except OSError:
            return TreeEntry(TreeKind.NOT_COVERED, what=_UNREADABLE), status
        try:
            before = os.fstat(file)
            if not stat.S_ISREG(before.st_mode):
                return TreeEntry(TreeKind.NOT_COVERED, what=SPECIAL), status
            data = read_all(file, before.st_size, self._largest)
            if data is None:
                return TreeEntry(TreeKind.NOT_COVERED, what=f"It is larger than {self._largest:,} bytes."), status
        except OSError:
            return TreeEntry(TreeKind.NOT_COVERED, what=_UNREADABLE), status
        finally:
            os.close(file)
        what = self._objects.add(data, like=like if len(like) == sha256().digest_size * 2 else "")
        return TreeEntry(TreeKind.FILE, before.st_mode & MODE_BITS, len(data), what), before

    def _is_hidden(self, path: str, *, is_folder: bool) -> bool:
        if self._ignoring is None:
            self._ignoring = Ignoring(str(self._top), self._root, _IGNORES)
        hides = self._ignoring.hides_directory if is_folder else self._ignoring.hides_file
        return hides(path) and not self._is_tracked(path, is_folder=is_folder)

    def _is_tracked(self, path: str, *, is_folder: bool) -> bool:
        """Whether git has a file, or one in a folder: what it has is covered, be it ignored."""
        if self._tracked_names is None:
            names = {os.fsdecode(name) for name in tracked_names(self._top) or ()}
            below = os.path.relpath(self._root, self._top)
            if below != ".":
                names = {name.removeprefix(f"{below}/") for name in names if name.startswith(f"{below}/")}
            folders = {name[: at + 1] for name in names for at, letter in enumerate(name) if letter == "/"}
            self._tracked_names = frozenset(names | folders)
        return (f"{path}/" if is_folder else path) in self._tracked_names


class _Place(Struct, frozen=True):
    """Where a folder is: what stands for the ignore files in effect, how deep, and whether git ignores it."""

    ignores: int
    depth: int
    ignored: bool


class _TooMuchError(Exception):
    """What git ignores is more than is covered."""


class _UncoveredError(Exception):
    """A folder that is not looked into."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _sign(name: str, fd: int | None) -> int:
    """Give what stands for the state of an ignore file."""
    try:
        found = os.stat(name, dir_fd=fd)
    except OSError:
        return 0
    return hash((found.st_ctime_ns, found.st_size, found.st_ino))


def read_all(fd: int, size: int, most: int) -> bytes | None:
    """Read a file to its end; None where it has more than `most` bytes."""
    if size > most:
        return None
    pieces, total = [], 0
    while data := os.read(fd, max(size + 1 - total, 65536)):
        pieces.append(data)
        total += len(data)
        if total > most:
            return None
    return b"".join(pieces)
