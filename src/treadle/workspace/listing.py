"""One look into a folder: what it holds, or that this is not known, which is never the same as that it is empty."""

import errno
import os
import stat

from msgspec import Struct

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What is said of a path where no folder is, and of a link that leads to none."""


class Entry(Struct, frozen=True):
    """One name in a folder, and what stands there; a link is no folder."""

    name: str
    is_folder: bool
    is_link: bool


class Listed(Struct, frozen=True):
    """What a folder holds, by name; `stamp` is its device, its number, and its time of change (ctime, nanoseconds)."""

    entries: tuple[Entry, ...]
    stamp: tuple[int, int, int]


class NoFolder(Struct, frozen=True):
    """No folder is there."""


class Unlisted(Struct, frozen=True):
    """A folder that cannot be listed, or in which nothing can be looked at: what it holds is not known."""

    why: str


Listing = Listed | NoFolder | Unlisted


def list_folder(path: str | os.PathLike[str], *, follow: bool = False) -> Listing:
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
            entries = [Entry(one.name, one.is_dir(follow_symlinks=False), one.is_symlink()) for one in found]
    except OSError as error:
        return Unlisted(error.strerror or str(error))
    finally:
        os.close(descriptor)
    entries.sort(key=lambda one: one.name)
    return Listed(tuple(entries), (facts.st_dev, facts.st_ino, facts.st_ctime_ns))


def _failed(error: OSError) -> NoFolder | Unlisted:
    return NoFolder() if error.errno in _NOTHING_THERE else Unlisted(error.strerror or str(error))


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
            return "" if error.errno in _NOTHING_THERE else folder
        if not stat.S_ISDIR(mode):
            return ""
    return ""
