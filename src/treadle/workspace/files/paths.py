"""Paths of the workspace: made absolute, resolved through links, and shown short; and what a folder holds, if known."""

import errno
import os
import stat
import unicodedata
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.files.names import existing_path, shown_name

_LONGEST = 4095
_CLOCK = regex(r" ([AP]M\b)")
"""Before it, the screenshots of macOS have a narrow blank."""
NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What is said of a path where no folder is, and of a link that leads to none."""


class Paths(Struct, frozen=True):
    """The paths as seen from one workspace; `root` is absolute and resolved."""

    root: str

    def locate(self, path: str) -> str:
        """Make a requested path absolute without resolving anything; `~/` is the home directory.

        Names are taken as `display` shows them, see `workspace/files/names.py`.
        Where there is nothing of that name, but something whose name looks the same, that is meant: models write
        letters with accents in one way, and file systems know two. Raises `ToolError` for what cannot be a path.
        """
        if not path or "\0" in path:
            raise ToolError("The path is empty or has a NUL byte. Give a path relative to the workspace.")
        if path == "~" or path.startswith("~/"):
            path = str(Path(path).expanduser())
        try:
            absolute = existing_path(self.root, path)
            length = len(os.fsencode(absolute))
        except UnicodeEncodeError:
            raise ToolError("The path has an incomplete character. Give it as list_files shows it.") from None
        if length > _LONGEST:
            raise ToolError(f"The path has {length:,} bytes, more than a path can have. Give a shorter one.")
        return absolute if absolute.isascii() and " " not in absolute else _as_it_is_named(absolute)

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are."""
        return os.path.realpath(Path(self.root) / path)

    def display(self, path: str) -> str:
        """Show a path so that `locate` finds it again: relative inside the workspace, on one line."""
        absolute = Path(os.path.normpath(path))
        shown = absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else absolute
        return shown_name(shown.as_posix())


def _as_it_is_named(path: str) -> str:
    if os.path.lexists(path):
        return path
    composed = unicodedata.normalize("NFC", path)
    others = (composed, unicodedata.normalize("NFD", path), _CLOCK.sub("\u202f\\1", composed))
    return next((other for other in others if os.path.lexists(other)), path)


class FolderEntry(Struct, frozen=True):
    """One name in a folder, and what stands there; a link is no folder."""

    name: str
    is_folder: bool
    is_link: bool


class Listed(Struct, frozen=True):
    """What a folder holds, by name; `stamp` is its device, its number, and its time of change (ctime, nanoseconds)."""

    entries: tuple[FolderEntry, ...]
    stamp: tuple[int, int, int]


class NoFolder(Struct, frozen=True):
    """No folder is there."""


class Unlisted(Struct, frozen=True):
    """A folder that cannot be listed, or in which nothing can be looked at: what it holds is not known."""

    why: str


FolderListing = Listed | NoFolder | Unlisted


def list_folder(path: str | os.PathLike[str], *, follow: bool = False) -> FolderListing:
    """List a folder; a link to one is `NoFolder`, unless links are to be followed.

    A folder that is listed can also be searched: a name without what stands there tells nothing.
    """
    kind = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, kind)
    except OSError as error:
        return _failed(error)
    try:
        facts = os.stat(".", dir_fd=descriptor)
        with os.scandir(descriptor) as found:
            entries = [FolderEntry(one.name, one.is_dir(follow_symlinks=False), one.is_symlink()) for one in found]
    except OSError as error:
        return Unlisted(error.strerror or str(error))
    finally:
        os.close(descriptor)
    entries.sort(key=lambda one: one.name)
    return Listed(tuple(entries), (facts.st_dev, facts.st_ino, facts.st_ctime_ns))


def _failed(error: OSError) -> NoFolder | Unlisted:
    return NoFolder() if error.errno in NOTHING_THERE else Unlisted(error.strerror or str(error))


def may_be_there(path: str | os.PathLike[str]) -> bool:
    """Whether something is at a path, be it a link that leads nowhere; also where that cannot be looked at."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno not in NOTHING_THERE
    return True


def first_closed(top: str, name: str) -> str:
    """Give the first folder, from `top` on the way to `name` in it, in which nothing can be looked at.

    Empty where all can be, and where one of them is not there.
    """
    folder = top
    for part in ("", *name.split("/")[:-1]):
        folder = f"{folder}/{part}" if part else folder
        try:
            mode = os.stat(f"{folder}/.").st_mode  # noqa: PTH116 - a Path would leave out the dot
        except OSError as error:
            return "" if error.errno in NOTHING_THERE else folder
        if not stat.S_ISDIR(mode):
            return ""
    return ""
