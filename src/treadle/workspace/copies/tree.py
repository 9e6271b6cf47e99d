"""The real files of a workspace, reached part by part from its roots, so that no link on the way is ever followed."""

import contextlib
import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from treadle.workspace.copies.staging import EntryState
from treadle.workspace.files.saving import copy_facts

_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o777
_CHUNK = 1024 * 1024


_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
_libc = ctypes.CDLL(None, use_errno=True)


class WriteTarget(NamedTuple):
    """Where something is written, and the name that it has in its folder until then."""

    root: int
    path: bytes
    temporary: bytes


class Tree:
    """The roots, each held open: what takes the place of one later is not touched. Methods raise `OSError`."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [os.open(root, _LOOK & ~os.O_NOFOLLOW) for root in roots]

    def close(self) -> None:
        """Let go of the roots."""
        for fd in self._roots:
            os.close(fd)

    @contextlib.contextmanager
    def parent(self, root: int, path: bytes) -> Iterator[tuple[int, bytes]]:
        """Open the folder that a path is in; gives it with the last name. The root itself is `.` in itself."""
        *above, name = path.split(b"/")
        fd = os.dup(self._roots[root])
        try:
            for part in above:
                below = os.open(part, _LOOK, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)

    def status(self, root: int, path: bytes) -> os.stat_result | None:
        """Look at a path; None where nothing is, or where what should be a folder on the way is none."""
        try:
            with self.parent(root, path) as (fd, name):
                return os.lstat(name, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise

    def state(self, root: int, path: bytes) -> EntryState | None:
        """Look at a path, with the hash of a file."""
        found = self.status(root, path)
        if found is None:
            return None
        if stat.S_ISREG(found.st_mode):
            with self.parent(root, path) as (fd, name), self.reading(fd, name) as file:
                digest = hashlib.sha256()
                while data := os.read(file, _CHUNK):
                    digest.update(data)
                return EntryState("f", found.st_mode & _MODE, digest.hexdigest())
        if stat.S_ISLNK(found.st_mode):
            with self.parent(root, path) as (fd, name):
                return EntryState("l", 0, os.readlink(name, dir_fd=fd).hex())
        return EntryState("d" if stat.S_ISDIR(found.st_mode) else "s", found.st_mode & _MODE, "")

    @contextlib.contextmanager
    def reading(self, fd: int, name: bytes) -> Iterator[int]:
        """Open a regular file."""
        file = os.open(name, _READ, dir_fd=fd)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FileExistsError("it is no regular file")
            yield file
        finally:
            os.close(file)

    def names(self, root: int, path: bytes) -> list[bytes]:
        """List a folder."""
        with self.parent(root, path) as (fd, name):
            folder = os.open(name, _LIST, dir_fd=fd)
            try:
                return [os.fsencode(each) for each in os.listdir(folder)]  # noqa: PTH208 - by a descriptor
            finally:
                os.close(folder)

    def set_mode(self, root: int, path: bytes, mode: int) -> None:
        """Set the rights of a file or folder; its other bits stay."""
        with self.parent(root, path) as (fd, name):
            at = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            try:
                found = os.fstat(at).st_mode
                if not stat.S_ISLNK(found):
                    os.chmod(f"/proc/self/fd/{at}", (stat.S_IMODE(found) & ~_MODE) | mode)  # noqa: PTH101 - by a descriptor
            finally:
                os.close(at)

    def make_folder(self, root: int, path: bytes) -> None:
        """Make a folder that is its owner's alone until it gets its mode."""
        with self.parent(root, path) as (fd, name):
            os.mkdir(name, 0o700, dir_fd=fd)

    def remove(self, root: int, path: bytes, *, folder: bool) -> None:
        """Remove a file, a link or an empty folder."""
        with self.parent(root, path) as (fd, name):
            if folder:
                os.rmdir(name, dir_fd=fd)
            else:
                os.unlink(name, dir_fd=fd)

    def write(self, at: WriteTarget, content: Iterable[bytes], *, mode: int, over: bool, sync: bool) -> None:
        """Write a file under another name, then give it its own: `over` what is there, or where nothing must be."""
        with self.parent(at.root, at.path) as (fd, name):
            file = os.open(at.temporary, _NEW, 0o600, dir_fd=fd)
            try:
                for data in content:
                    _write_all(file, data)
                if over:
                    _take_facts(fd, name, file)
                os.fchmod(file, mode)
                if sync:
                    os.fsync(file)
            finally:
                os.close(file)
            self._name(fd, at.temporary, name, over=over)

    def link(self, at: WriteTarget, target: bytes, *, over: bool) -> None:
        """Make a link: `over` what is there, or where nothing must be."""
        with self.parent(at.root, at.path) as (fd, name):
            os.symlink(target, at.temporary, dir_fd=fd)
            self._name(fd, at.temporary, name, over=over)

    def _name(self, fd: int, temporary: bytes, name: bytes, *, over: bool) -> None:
        if not over:
            try:
                os.link(temporary, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
            else:
                os.unlink(temporary, dir_fd=fd)
                return
        os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)

    def remove_temporary(self, at: WriteTarget) -> None:
        """Remove what a killed `write` or `link` left beside a path."""
        with contextlib.suppress(OSError), self.parent(at.root, at.path) as (fd, _):
            os.unlink(at.temporary, dir_fd=fd)

    def sync(self) -> None:
        """Make everything survive a power cut."""
        for root in self._roots:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
            try:
                _sync_file_system(fd)
            finally:
                os.close(fd)


def _sync_file_system(fd: int) -> None:
    if _libc.syncfs(fd) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _take_facts(fd: int, name: bytes, file: int) -> None:
    """Give a new file the owner and the attributes of the one that it replaces, as far as that can be done."""
    before = os.lstat(name, dir_fd=fd)
    if stat.S_ISREG(before.st_mode):
        with contextlib.suppress(PermissionError):
            copy_facts(fd, os.fsdecode(name), file, before)
