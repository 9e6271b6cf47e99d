"""Reading a folder into a tree: what did not change since the last time is not read again, and no link is followed."""

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
from treadle.workspace.checkpoints.trees import NO_TREE, TreeEntry, TreeKind
from treadle.workspace.git_index import checkout_of, tracked_names
from treadle.workspace.ignoring import Ignoring

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

TOO_DEEP = "It is too deep in folders."
_UNREADABLE = "It cannot be read."
GIT_DATA = "It is the data of a git repository."
SPECIAL = "It is a pipe, a socket or a device."


class NotCovered(Struct, frozen=True):
    """A path that a checkpoint does not hold, and that no restore touches; and why."""

    path: bytes
    why: str


class _Known(Struct, frozen=True, array_like=True):
    """A name as it was seen: when it was changed (0: look again), and what is stored of it; None where it is hidden."""

    changed: int
    inode: int
    size: int
    is_folder: bool
    entry: TreeEntry | None


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
    """One look at a root. `largest` are the bytes of a file beyond which it is not covered."""

    def __init__(
        self, objects: Objects, memory: FolderMemory, root: str, *, covers_ignored: bool, largest: int
    ) -> None:
        self._objects = objects
        self._last = memory.folders
        self._root = root
        self._covers_ignored = covers_ignored
        self._largest = largest
        self._started = time.time_ns()
        self._top = checkout_of(root) or Path(root)
        self._ignoring: Ignoring | None = None
        self._tracked_names: frozenset[str] | None = None
        self.folders: dict[str, _Seen] = {}
        self.not_covered: list[NotCovered] = []

    def scan(self) -> str:
        """Store what changed, and give the tree. Raises `OSError` when the root cannot be read."""
        fd = os.open(self._root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            return self._folder(fd, "", self._ignores_above(), 0)
        finally:
            os.close(fd)

    def _ignores_above(self) -> int:
        """Give what stands for the ignore files in the folders above the root, up to its checkout."""
        above = [folder for folder in Path(self._root).parents if folder.is_relative_to(self._top)]
        signs = -1 if self._covers_ignored else 0
        for folder in reversed(above):
            for name in _IGNORES[0]:
                signs = hash((signs, _sign(str(folder / name), None)))
        return signs

    def _folder(self, fd: int, path: str, ignores: int, depth: int) -> str:
        """Look through a folder; `path` is empty or ends with a slash. Gives its tree."""
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
        names: dict[bytes, _Known] = {}
        for entry in entries:
            if entry.name in _GIT_NAMES or (entry.name[0] == "." and _TEMPORARY.fullmatch(entry.name)):
                continue
            name = os.fsencode(entry.name)
            try:
                now = self._name(entry, fd, (path, ignores, depth), known.get(name), trusted=trusted)
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
        self, entry: "os.DirEntry[str]", fd: int, place: tuple[str, int, int], known: _Known | None, *, trusted: bool
    ) -> _Known | None:
        """Look at one name; None for a folder with nothing in it."""
        path = place[0] + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if not self._covers_ignored:
            if trusted and known is not None and known.is_folder == is_folder:
                hidden = known.entry is None
                hidden = hidden and not self._is_tracked(path, is_folder=is_folder)
            else:
                hidden = self._is_hidden(path, is_folder=is_folder)
            if hidden:
                return _Known(0, 0, 0, is_folder, None)
        if is_folder:
            return self._below(entry.name, fd, place)
        status = entry.stat(follow_symlinks=False)
        if (
            known is not None
            and known.changed == status.st_ctime_ns
            and known.size == status.st_size
            and known.inode == status.st_ino
            and status.st_size <= self._largest
        ):
            return known
        stored, status = self._store(fd, entry.name, status, known)
        if stored.kind is TreeKind.NOT_COVERED:
            self.not_covered.append(NotCovered(os.fsencode(path), stored.what))
            return _Known(0, 0, 0, False, stored)
        since = _TICK if status.st_ctime_ns % 1_000_000_000 else _WHOLE_SECONDS
        changed = status.st_ctime_ns if status.st_ctime_ns < self._started - since else 0
        return _Known(changed, status.st_ino, status.st_size, False, stored)

    def _below(self, name: str, fd: int, place: tuple[str, int, int]) -> _Known | None:
        path, ignores, depth = place
        try:
            if depth >= _DEEPEST:
                raise _UncoveredError(TOO_DEEP)
            below = os.open(name, FOLDER_FLAGS, dir_fd=fd)
            try:
                tree = self._folder(below, f"{path}{name}/", ignores, depth + 1)
            finally:
                os.close(below)
        except (_UncoveredError, PermissionError) as error:
            why = error.why if isinstance(error, _UncoveredError) else _UNREADABLE
            self.not_covered.append(NotCovered(os.fsencode(path + name), why))
            return _Known(0, 0, 0, True, TreeEntry(TreeKind.NOT_COVERED, what=why))
        return _Known(0, 0, 0, True, TreeEntry(TreeKind.FOLDER, what=tree)) if tree != NO_TREE else None

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
