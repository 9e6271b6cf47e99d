"""Carrying out a restore: each path is looked at once more, then replaced in one step; no link is ever followed."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import PurePosixPath

from msgspec import Struct

from treadle.protocol.errors import StoreError
from treadle.workspace.checkpoints.planning import PlannedRemoval, PlannedWrite, RestoreConflict, RestorePlan
from treadle.workspace.checkpoints.scanning import FOLDER_FLAGS, MODE_BITS, READ_FLAGS, read_all
from treadle.workspace.checkpoints.trees import USUAL_RIGHTS, BlobReader, TreeEntry, TreeKind, folders_above
from treadle.workspace.files.saving import copy_facts
from treadle.workspace.files.temporary_files import TemporaryFiles, temporary_name

_CHANGED = "It was changed while this was prepared."
_STALE = (errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_SYNCED = 100


class RestoreFailure(Struct, frozen=True):
    """A path that could not be written or removed, and why."""

    path: bytes
    why: str


class RestoreReport(Struct, frozen=True, kw_only=True):
    """What a restore did. A path of the plan that is in none of these was already as it should be."""

    written: tuple[bytes, ...]
    removed: tuple[bytes, ...]
    conflicts: tuple[RestoreConflict, ...]
    failed: tuple[RestoreFailure, ...]


HowFar = Callable[[int, int], None]
"""Hears, in the thread of a restore, how many paths of how many are done."""


def unheard(done: int, total: int) -> None:
    """Tell nobody."""


class _StaleError(Exception):
    """A path is not as it was when the restore was planned."""


class Restorer:
    """Writes to one root, held open; what takes its place later is not touched."""

    def __init__(self, root: str, blob: BlobReader, temporary_files: TemporaryFiles, how_far: HowFar = unheard) -> None:
        self._root = root
        self._blob = blob
        self._temporary_files = temporary_files
        self._how_far = how_far
        self._written: list[bytes] = []
        self._removed: list[bytes] = []
        self._conflicts: list[RestoreConflict] = []
        self._failed: list[RestoreFailure] = []

    def carry_out(self, plan: RestorePlan) -> RestoreReport:
        """Remove, the innermost first, then write; what fails is told, and the rest goes on. Raises `OSError`."""
        self._fd = os.open(self._root, FOLDER_FLAGS & ~os.O_NOFOLLOW)
        self._rights = plan.rights
        self._synced = len(plan.writes) <= _MOST_SYNCED
        done, total = 0, len(plan.removals) + len(plan.writes)
        try:
            for removal in sorted(plan.removals, key=lambda each: each.path, reverse=True):
                with self._careful(removal):
                    self._remove(removal)
                    self._removed.append(removal.path)
                self._how_far(done := done + 1, total)
            for write in sorted(plan.writes, key=lambda each: each.path):
                with self._careful(write):
                    self._write(write)
                    self._written.append(write.path)
                self._how_far(done := done + 1, total)
        finally:
            os.close(self._fd)
        return RestoreReport(
            written=tuple(self._written),
            removed=tuple(self._removed),
            conflicts=tuple(self._conflicts),
            failed=tuple(self._failed),
        )

    @contextlib.contextmanager
    def _careful(self, each: PlannedWrite | PlannedRemoval) -> Iterator[None]:
        target = each.entry if isinstance(each, PlannedWrite) else None
        try:
            yield
        except _StaleError:
            self._conflicts.append(RestoreConflict(path=each.path, why=_CHANGED, target=target, now=each.now))
        except StoreError as error:
            self._failed.append(RestoreFailure(each.path, error.why))
        except OSError as error:
            if error.errno in _STALE:
                self._conflicts.append(RestoreConflict(path=each.path, why=_CHANGED, target=target, now=each.now))
            else:
                self._failed.append(RestoreFailure(each.path, error.strerror or str(error)))

    @contextlib.contextmanager
    def _parent(self, path: bytes, *, create: bool) -> Iterator[tuple[int, bytes]]:
        """Open the folder that a path is in, part by part; gives it with the last name."""
        *above, name = path.split(b"/")
        fd = os.dup(self._fd)
        try:
            for depth, part in enumerate(above, 1):
                made = create and self._make_folder(part, fd, b"/".join(above[:depth]))
                below = os.open(part, FOLDER_FLAGS, dir_fd=fd)
                os.close(fd)
                fd = below
                if made:
                    os.fchmod(fd, made)
            yield fd, name
        finally:
            os.close(fd)

    def _make_folder(self, name: bytes, fd: int, path: bytes) -> int:
        """Make a folder that is missing; gives the rights that it is to have, 0 for the usual ones, which it has then.

        Until then it is the user's alone. The user can always write into it.
        """
        rights = self._rights.get(path, 0)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700 if rights else USUAL_RIGHTS, dir_fd=fd)
            return rights and rights | 0o700
        return 0

    def _remove(self, removal: PlannedRemoval) -> None:
        try:
            with self._parent(removal.path, create=False) as (fd, name):
                _expect(fd, name, removal.now)
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            raise _StaleError from None
        for folder in folders_above(removal.path):
            with contextlib.suppress(OSError), self._parent(folder, create=False) as (fd, name):
                os.rmdir(name, dir_fd=fd)
                continue
            break

    def _write(self, write: PlannedWrite) -> None:
        with self._parent(write.path, create=True) as (fd, name):
            before = _expect(fd, name, write.now)
            entry = write.entry
            content = self._blob(entry.what) if write.content is None else write.content
            temporary = os.fsencode(temporary_name())
            path = PurePosixPath(self._root, os.fsdecode(write.path))
            with self._temporary_files.noted(str(path.parent / os.fsdecode(temporary))):
                self._temporary_files.saved(str(path))
                try:
                    if entry.kind is TreeKind.LINK:
                        os.symlink(content, temporary, dir_fd=fd)
                    else:
                        self._new_file((fd, temporary), content, entry, os.fsdecode(name) if before else "")
                    os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=fd)
                    raise

    def _new_file(self, at: tuple[int, bytes], content: bytes, entry: TreeEntry, before: str) -> None:
        """Write a file; of one that it replaces it takes the owner and the attributes, as far as that can be done."""
        fd, temporary = at
        file = os.open(temporary, _NEW, 0o600, dir_fd=fd)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            if before and stat.S_ISREG((status := os.lstat(before, dir_fd=fd)).st_mode):
                with contextlib.suppress(OSError):
                    copy_facts(fd, before, file, status)
            os.fchmod(file, entry.mode)
            if self._synced:
                os.fsync(file)
        finally:
            os.close(file)


def _expect(fd: int, name: bytes, now: TreeEntry | None) -> bool:
    """Make sure that a path is as it was planned for; an empty folder is nothing, and goes. Gives whether it is a file.

    Raises `_StaleError`.
    """
    try:
        status = os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        if now is not None:
            raise _StaleError from None
        return False
    if now is None:
        if not stat.S_ISDIR(status.st_mode):
            raise _StaleError
        os.rmdir(name, dir_fd=fd)
        return False
    if stat.S_ISLNK(status.st_mode):
        if now.kind is not TreeKind.LINK or sha256(os.readlink(name, dir_fd=fd)).hexdigest() != now.what:
            raise _StaleError
        return False
    if not stat.S_ISREG(status.st_mode) or now.kind is not TreeKind.FILE:
        raise _StaleError
    if status.st_size != now.size or status.st_mode & MODE_BITS != now.mode:
        raise _StaleError
    file = os.open(name, READ_FLAGS, dir_fd=fd)
    try:
        data = read_all(file, status.st_size, now.size)
    finally:
        os.close(file)
    if data is None or sha256(data).hexdigest() != now.what:
        raise _StaleError
    return True
