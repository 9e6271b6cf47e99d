"""Saving files: all or nothing, only over the bytes that were expected, never through a swapped-in link."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath

from treadle.protocol.errors import ToolError
from treadle.workspace.files.temporary_files import TemporaryFiles, temporary_name
from treadle.workspace.files.text_files import sha256

_CHUNK = 1024 * 1024
_NOT_NOTED = TemporaryFiles()
_LOOK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def save(
    target: str,
    data: bytes,
    *,
    expected: str,
    name: str,
    temporary_files: TemporaryFiles = _NOT_NOTED,
    mode: int | None = None,
) -> None:
    """Replace the file `target`, or create it and its directories, by `data`.

    `target` is absolute with every link resolved. `expected` is the SHA-256 of the bytes to replace, empty for no
    file. Mode, owner and extended attributes stay; a new file gets the given `mode`. `temporary_files` notes the new
    file until it has its name. Raises `ToolError`, calling the file `name`, and then the file is as it was.
    """
    path = PurePosixPath(target)
    try:
        with _directory(path.parent, create=not expected) as directory:
            before = _check(directory, path.name, expected, name)
            temporary = temporary_name()
            with temporary_files.noted(str(path.parent / temporary)):
                temporary_files.saved(target)
                _replace(directory, (temporary, path.name), data, before or mode)
    except OSError as error:
        raise ToolError(_explain(error, name)) from error


def remove(target: str, *, expected: str, name: str) -> None:
    """Remove the file `target` if its bytes still have the SHA-256 `expected`. Raises `ToolError`."""
    path = PurePosixPath(target)
    try:
        with _directory(path.parent, create=False) as directory:
            _check(directory, path.name, expected, name)
            os.unlink(path.name, dir_fd=directory)
            _sync(directory)
    except OSError as error:
        raise ToolError(_explain(error, name)) from error


@contextlib.contextmanager
def _directory(path: PurePosixPath, *, create: bool) -> Iterator[int]:
    """Open a directory part by part; a link on the way, put there after the path was resolved, is refused."""
    descriptor = os.open("/", _LOOK)
    try:
        for part in path.parts[1:]:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            below = os.open(part, _LOOK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _check(directory: int, file_name: str, expected: str, name: str) -> os.stat_result | None:
    """Make sure that the file is still what was expected, and give what is known of it."""
    try:
        descriptor = os.open(file_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        if expected:
            raise ToolError(
                f"{name} was deleted in the meantime. Nothing was written; look at what is there now."
            ) from None
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{name} is not a regular file. Nothing was written; choose another path.")
        if not expected:
            raise ToolError(f"{name} was created by someone else in the meantime. Nothing was written; read it first.")
        if sha256(file.read()) != expected:
            raise ToolError(
                f"{name} was changed by someone else in the meantime. Nothing was written; "
                "their text stays. Read the file again and base the change on it."
            )
    if not status.st_mode & 0o222 or not os.access(file_name, os.W_OK, dir_fd=directory):
        raise PermissionError(errno.EACCES, "it is read-only")
    return status


def _replace(directory: int, names: tuple[str, str], data: bytes, like: os.stat_result | int | None) -> None:
    """Write a file under the first name and give it the second one; `like` is what it replaces, or a new one's mode."""
    temporary, file_name = names
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o666 if like is None else 0o600
    descriptor = os.open(temporary, flags, mode, dir_fd=directory)
    try:
        try:
            _write(descriptor, data)
            match like:
                case int():
                    os.fchmod(descriptor, like)
                case os.stat_result() if _keeps_group(like):
                    copy_facts(directory, file_name, descriptor, like)
                case os.stat_result():
                    os.fsync(descriptor)
                    _overwrite(directory, file_name, data, like)
                    os.unlink(temporary, dir_fd=directory)
                    return
                case None:
                    pass
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, file_name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    _sync(directory)


def _keeps_group(like: os.stat_result) -> bool:
    """Whether a new file can have the group of the one that it replaces, or that one cannot be written in place."""
    groups = (os.getegid(), *os.getgroups())
    in_place = like.st_uid == os.geteuid() != 0 and like.st_nlink == 1
    return not in_place or like.st_gid in groups


def _overwrite(directory: int, file_name: str, data: bytes, like: os.stat_result) -> None:
    """Write over the user's own file with a group that the user is not in, which no new file could have.

    Until it is done the new text is in the temporary file as well. What cannot be written whole is as it was before.
    """
    descriptor = os.open(file_name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        if not os.path.samestat(os.fstat(descriptor), like):
            raise OSError(errno.ESTALE, "it was replaced in the meantime")
        old = os.pread(descriptor, like.st_size, 0)
        try:
            _write(descriptor, data)
            os.ftruncate(descriptor, len(data))
        except BaseException:
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.ftruncate(descriptor, len(old))
            _write(descriptor, old)
            raise
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(directory: int) -> None:
    """Make the rename survive a power cut; a directory that may not be read cannot be asked for it."""
    with contextlib.suppress(PermissionError):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest[:_CHUNK]) :]


def copy_facts(directory: int, file_name: str, descriptor: int, before: os.stat_result) -> None:
    """Give the new file the old one's owner, mode and extended attributes."""
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
    if not hasattr(os, "listxattr"):
        return
    old = os.open(file_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        for attribute in _attributes(old):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, attribute, os.getxattr(old, attribute))
    finally:
        os.close(old)


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError:
        return []


_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "it would be larger than the system allows",
    errno.EROFS: "the file system is read-only",
    errno.ELOOP: "its path now leads through a link that was not there when the change was shown",
    errno.ENOTDIR: "a part of its path is not a directory, or became a link after the change was shown",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EPERM: "it, or its group, belongs to somebody else",
}


def _explain(error: OSError, name: str) -> str:
    reason = _REASONS.get(error.errno or 0) or error.strerror or "unknown error"
    return f"{name} cannot be saved: {reason}. Nothing was changed; tell the user if this keeps you from the task."
