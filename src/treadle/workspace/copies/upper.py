"""Reading what a command changed in a throw-away copy: loaded by `overlay.py`, where its layers can be seen.

`keep` writes two files into the staging folder: `contents`, the bytes of new and changed files one after the other, and
`manifest`, which comes into being whole. The manifest is JSON: `start` (nanoseconds since 1970 by the clock of files),
`trouble` (why nothing was kept; empty), `full` (whether the memory disk has no room left), `skipped` (caches of
tools), and `changes`, a list of `[root, path, before, after, offset, size, note, recent]`. A path is relative
to its root, and written in hex; `before` and `after` are null for nothing, or `[kind, mode, what]`: a file (`f`) with
its SHA-256, a link (`l`) with its target in hex, a folder (`d`) or something else (`s`) with nothing. A note says why a
change is never applied, or that it is in a cache; `recent`, that the original was changed after the start.

Only the standard library. Every folder is read through a descriptor, so no link is followed in either layer.
"""

import os
import stat
from collections.abc import Iterator

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1024 * 1024
_DEEPEST = 200
_MODE = 0o777
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPAQUE = "user.overlay.opaque"
_MARKS = frozenset(f"user.overlay.{name}" for name in ("redirect", "metacopy", "whiteout"))

MASKED, REPOSITORY, CACHE, LARGE = "masked", "repository", "cache", "large"
"""The notes: the command did not see the original; git's own data; a cache; too large to keep."""

_State = tuple[str, int, str]


class _RefusedError(Exception):
    """The copy cannot be kept."""


class _Layer:
    """A folder of the original that the copy's folder is compared with."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def look(self, name: bytes) -> os.stat_result | None:
        """Find an entry."""
        try:
            return os.lstat(name, dir_fd=self.fd)
        except FileNotFoundError:
            return None

    def open(self, name: bytes) -> int:
        """Open a folder in it."""
        return os.open(name, _FOLDER, dir_fd=self.fd)

    def names(self) -> list[bytes]:
        """List it."""
        return sorted(os.fsencode(name) for name in os.listdir(self.fd))  # noqa: PTH208 - by a descriptor


class _Reader:
    """Compares a copy with its original, and keeps what differs."""

    def __init__(self, contents: int, job: "dict[str, Any]", start: int) -> None:
        self.contents = contents
        self.start = start
        self.caches: frozenset[bytes] = job["caches"]
        self.room: int = job["keep_bytes"]
        self.most: int = job["keep_entries"]
        self.at = 0
        self.rows: list[str] = []
        self.skipped = 0
        self.root = 0
        self.masks: dict[bytes, str | None] = {}

    def read_root(self, root: bytes, number: int, masks: list[tuple[bytes, bytes | None]]) -> None:
        """Read all changes of one root."""
        self.root = number
        self.masks = {path: None if data is None else _hash_of(data) for path, data in masks}
        upper, lower = os.open(f"{number}/up", _FOLDER), _Layer(os.open(root, _FOLDER))
        before, after = os.fstat(lower.fd), os.fstat(upper)
        self.note(b".", self.known(before), self.known(after))
        self.read(upper, lower, b"", depth=0, replaced=False)
        os.close(upper)
        os.close(lower.fd)

    def read(self, upper: int, lower: _Layer | None, above: bytes, *, depth: int, replaced: bool) -> None:
        """Read one folder; `replaced` says that nothing of the original shines through."""
        if depth > _DEEPEST:
            raise _RefusedError(f"It made folders more than {_DEEPEST} levels deep.")
        names = sorted(os.fsencode(name) for name in os.listdir(upper))
        for name in names:
            found = os.lstat(name, dir_fd=upper)
            path = above + name
            if path in self.masks:
                self.read_masked(upper, name, path, found)
            elif name == b".git":
                self.read_repository(upper, lower, path, found)
            elif name in self.caches and not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
                self.skipped += 1
            elif stat.S_ISDIR(found.st_mode):
                self.read_folder(upper, lower, path, depth=depth, replaced=replaced)
            else:
                self.read_leaf(upper, lower, path, depth)
        if replaced and lower is not None:
            for name in set(lower.names()) - set(names):
                self.read_removed(lower, above + name, depth)

    def read_folder(self, upper: int, lower: _Layer | None, path: bytes, *, depth: int, replaced: bool) -> None:
        """Read a folder of the copy: of its own, or over the original's."""
        name = path.rpartition(b"/")[2]
        was = lower.look(name) if lower is not None else None
        fd = os.open(name, _FOLDER, dir_fd=upper)
        opaque = self.is_opaque(fd, path) or replaced
        below = (
            _Layer(lower.open(name)) if lower is not None and was is not None and stat.S_ISDIR(was.st_mode) else None
        )
        before = self.original(lower, name, was)
        self.note(path, before, self.known(os.fstat(fd)), recent=self.is_recent(was) and below is None)
        self.read(fd, below, path + b"/", depth=depth + 1, replaced=opaque)
        os.close(fd)
        if below is not None:
            os.close(below.fd)

    def is_opaque(self, fd: int, path: bytes) -> bool:
        """Read the marks of the overlay on a folder."""
        marks = set(os.listxattr(fd))
        if marks & _MARKS:
            raise _RefusedError(f"The copy of {os.fsdecode(path)!r} has a form that cannot be read.")
        return _OPAQUE in marks and os.getxattr(fd, _OPAQUE) == b"y"

    def read_leaf(self, upper: int, lower: _Layer | None, path: bytes, depth: int) -> None:
        """Read what is no folder, or the mark of the overlay that something is gone."""
        name = path.rpartition(b"/")[2]
        found, was = os.lstat(name, dir_fd=upper), lower.look(name) if lower is not None else None
        gone = stat.S_ISCHR(found.st_mode) and found.st_rdev == 0
        if lower is not None and was is not None and (gone or stat.S_ISDIR(was.st_mode)):
            self.read_removed(lower, path, depth, itself=gone)
        if gone:
            return
        before, recent = self.original(lower, name, was), self.is_recent(was)
        if not stat.S_ISREG(found.st_mode):
            self.note(path, before, self.known(found, self.target(upper, name, found)), recent=recent)
            return
        with os.fdopen(os.open(name, _FILE, dir_fd=upper), "rb", buffering=0) as file:
            if set(os.listxattr(file.fileno())) & _MARKS:
                raise _RefusedError(f"The copy of {os.fsdecode(path)!r} has a form that cannot be read.")
            large = found.st_size > self.room or (before is not None and before[0] == "f" and not before[2])
            if large:
                self.note(path, before, self.known(found), note=LARGE, recent=recent)
                return
            if was is not None and was.st_size == found.st_size:
                after = self.known(found, _hash(file))
                if after == before:
                    return
                file.seek(0)
            offset = self.at
            digest = self.copy(file)
        self.note(path, before, self.known(found, digest), place=(offset, self.at - offset), recent=recent)

    def copy(self, file: "Any") -> str:
        """Append a file to the contents; gives its hash."""
        digest = _new_hash()
        while data := file.read(_CHUNK):
            digest.update(data)
            _write_all(self.contents, data)
            self.at += len(data)
            self.room -= len(data)
        return str(digest.hexdigest())

    def read_removed(
        self, lower: _Layer, path: bytes, depth: int, *, itself: bool = True, cached: bool = False
    ) -> None:
        """Note that something of the original is gone, with all that is in it."""
        name = path.rpartition(b"/")[2]
        was = lower.look(name)
        if was is None:
            return
        if path in self.masks:
            self.note(path, self.known(was), None, note=MASKED)
            return
        if name == b".git":
            self.note(path, self.known(was), None, note=REPOSITORY)
            return
        before, cached = self.original(lower, name, was), cached or name in self.caches
        large = before is not None and before[0] == "f" and not before[2]
        if itself:
            self.note(path, before, None, note=LARGE if large else CACHE if cached else "", recent=self.is_recent(was))
        if stat.S_ISDIR(was.st_mode):
            if depth > _DEEPEST:
                raise _RefusedError(f"It removed folders more than {_DEEPEST} levels deep.")
            below = _Layer(lower.open(name))
            for each in below.names():
                self.read_removed(below, path + b"/" + each, depth + 1, cached=cached)
            os.close(below.fd)

    def read_masked(self, upper: int, name: bytes, path: bytes, found: os.stat_result) -> None:
        """Note a change of what the command saw only a stand-in of."""
        shown, after = self.masks[path], self.known(found)
        if stat.S_ISREG(found.st_mode) and shown is not None:
            with os.fdopen(os.open(name, _FILE, dir_fd=upper), "rb", buffering=0) as file:
                after = self.known(found, _hash(file))
            if after[2] == shown:
                return
        gone = stat.S_ISCHR(found.st_mode) and found.st_rdev == 0
        self.note(path, ("f" if shown is not None else "d", 0, ""), None if gone else after, note=MASKED)

    def read_repository(self, upper: int, lower: _Layer | None, path: bytes, found: os.stat_result) -> None:
        """Note in one line that git's data changed; a folder that was only looked into says nothing."""
        was = lower.look(b".git") if lower is not None else None
        if was is not None and stat.S_ISDIR(was.st_mode) and stat.S_ISDIR(found.st_mode):
            fd = os.open(b".git", _FOLDER, dir_fd=upper)
            untouched = not os.listdir(fd) and not self.is_opaque(fd, path)  # noqa: PTH208 - by a descriptor
            os.close(fd)
            if untouched:
                return
        gone = stat.S_ISCHR(found.st_mode)
        self.note(path, None if was is None else self.known(was), None if gone else self.known(found), note=REPOSITORY)

    def original(self, lower: _Layer | None, name: bytes, was: os.stat_result | None) -> _State | None:
        """Say what the original is; a file that is too large to keep has no hash."""
        if lower is None or was is None:
            return None
        if not stat.S_ISREG(was.st_mode):
            return self.known(was, self.target(lower.fd, name, was))
        if was.st_size > self.room:
            return self.known(was)
        with os.fdopen(os.open(name, _FILE, dir_fd=lower.fd), "rb", buffering=0) as file:
            return self.known(was, _hash(file))

    def target(self, fd: int, name: bytes, found: os.stat_result) -> str:
        """Read a link."""
        return os.readlink(name, dir_fd=fd).hex() if stat.S_ISLNK(found.st_mode) else ""

    def known(self, found: os.stat_result, what: str = "") -> _State:
        """Say what is known of an entry."""
        for kind, test in (("f", stat.S_ISREG), ("d", stat.S_ISDIR), ("l", stat.S_ISLNK)):
            if test(found.st_mode):
                return kind, 0 if kind == "l" else found.st_mode & _MODE, what
        return "s", 0, ""

    def is_recent(self, was: os.stat_result | None) -> bool:
        """Whether the original was changed after the start: programs cannot set this time back."""
        return was is not None and was.st_ctime_ns >= self.start

    def note(
        self,
        path: bytes,
        before: _State | None,
        after: _State | None,
        *,
        place: tuple[int, int] = (0, 0),
        note: str = "",
        recent: bool = False,
    ) -> None:
        """Write down one change, if it is one; what has a note was found to be one."""
        if before == after and not note:
            return
        if len(self.rows) >= self.most:
            raise _RefusedError(f"It changed more than {self.most:,} files.")
        flag = "true" if recent else "false"
        row = (self.root, path.hex(), _json(before), _json(after), *place, note, flag)
        self.rows.append('[%d,"%s",%s,%s,%d,%d,"%s",%s]' % row)  # noqa: UP031 - reads best


def _json(state: _State | None) -> str:
    return "null" if state is None else f'["{state[0]}",{state[1]},"{state[2]}"]'


def _new_hash(data: bytes = b"") -> "Any":
    """Begin a SHA-256; the library is loaded only now, since most commands change nothing."""
    from hashlib import sha256

    return sha256(data)


def _hash_of(data: bytes) -> str:
    return str(_new_hash(data).hexdigest())


def _hash(file: "Any") -> str:
    digest = _new_hash()
    while data := file.read(_CHUNK):
        digest.update(data)
    return str(digest.hexdigest())


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _text(words: str) -> str:
    """Write words of our own, in which names are escaped already, as JSON."""
    return '"{}"'.format(words.replace("\\", "\\\\").replace('"', '\\"'))


def _chunks(reader: _Reader, trouble: str, *, full: bool) -> Iterator[str]:
    flag = "true" if full else "false"
    yield f'{{"start":{reader.start},"trouble":{_text(trouble)},"full":{flag},"skipped":{reader.skipped},"changes":['
    yield ",\n".join(reader.rows)
    yield "]}\n"


def keep(folder: int, job: "dict[str, Any]", start: int) -> None:
    """Read the copies below the current directory, and write what changed into the staging folder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    contents = os.open("contents", flags, 0o600, dir_fd=folder)
    space = os.statvfs(".")
    reader = _Reader(contents, job, start)
    trouble = ""
    try:
        for number, root in enumerate(job["roots"]):
            reader.read_root(root, number, job["masks"][number])
    except _RefusedError as error:
        trouble = str(error)
    except OSError as error:
        trouble = f"What it changed could not be read: {error.strerror}."
    if trouble:
        reader.rows = []
    full = space.f_bavail == 0 or space.f_ffree == 0
    with os.fdopen(os.open("manifest.new", flags, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        file.writelines(_chunks(reader, trouble, full=full))
    os.rename("manifest.new", "manifest", src_dir_fd=folder, dst_dir_fd=folder)
