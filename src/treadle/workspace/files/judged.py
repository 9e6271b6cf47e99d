"""A path that is read exactly as it was judged: what was put in its place since then is not followed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ReadPath

_PARENT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class JudgedPath(Struct, frozen=True, kw_only=True):
    """A path as it was asked for, and where it led when the call was prepared.

    `many` is the file's device and number when it had more than one name then. Both paths are judged, so what is
    opened is what was judged, whatever happened in between.
    """

    asked: str
    resolved: str
    many: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.resolved

    def accesses(self, *, listing: bool = False) -> tuple[ReadPath, ...]:
        """Give what is to be judged: the path, and where it leads if that is elsewhere."""
        paths = (self.asked,) if os.path.normpath(self.asked) == self.resolved else (self.asked, self.resolved)
        return tuple(ReadPath(path=path, listing=listing) for path in paths)

    def open(self, name: str) -> int:
        """Open it for reading, never through a link. Raises `OSError`, and `ToolError` when it is not what it was."""
        *parents, last = self.resolved.strip("/").split("/")
        directory = os.open("/", _PARENT)
        try:
            for part in parents:
                inner = self._enter(directory, part, _PARENT, name)
                os.close(directory)
                directory = inner
            descriptor = self._enter(directory, last or ".", _READ, name)
        finally:
            os.close(directory)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and self.many != (found.st_dev, found.st_ino):
            os.close(descriptor)
            raise _changed(name)
        return descriptor

    @contextmanager
    def unchanged(self, name: str) -> Iterator[None]:
        """Make sure that a program which reads the path by its name reads what was judged, else `ToolError`."""
        before = self._identity(name)
        yield
        if self._identity(name) != before:
            raise _changed(name)

    def _identity(self, name: str) -> tuple[int, int] | None:
        try:
            descriptor = self.open(name)
        except OSError:
            return None
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return found.st_dev, found.st_ino

    def _enter(self, directory: int, part: str, flags: int, name: str) -> int:
        try:
            return os.open(part, flags, dir_fd=directory)
        except OSError:
            if _is_link(part, directory) and os.path.realpath(self.asked) != self.resolved:
                raise _changed(name) from None
            raise


def judge_path(path: str) -> JudgedPath:
    """Note where an absolute path leads now."""
    resolved = os.path.realpath(path)
    try:
        found = os.lstat(resolved)
    except OSError:
        return JudgedPath(asked=path, resolved=resolved)
    many = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    return JudgedPath(asked=path, resolved=resolved, many=(found.st_dev, found.st_ino) if many else None)


def _is_link(part: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _changed(name: str) -> ToolError:
    return ToolError(
        f"Not read: {name} changed after this call was checked. Look at the current state and make the call again."
    )
