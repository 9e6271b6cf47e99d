"""Moving a file out of folders whose modes do not allow that, through no link: a command may have set them so."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from treadle.workspace.files.names import clipped_path
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.files.whole_folders import copy_tree, remove_tree

_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = _OPEN | os.O_DIRECTORY
_ENTER, _CHANGE, _LIST = stat.S_IXUSR, stat.S_IXUSR | stat.S_IWUSR, stat.S_IXUSR | stat.S_IRUSR


@contextlib.contextmanager
def opened_folder(root: str, below: str) -> Iterator[int]:
    """Open a folder part by part to change what is in it: a command that still runs may put a link in its place.

    Modes that are in the way are set back afterwards.
    """
    with contextlib.ExitStack() as stack:
        descriptor = _open(stack, root)
        for part in filter(None, below.split("/")):
            _allowed(stack, descriptor, _ENTER)
            descriptor = _open(stack, part, descriptor)
        _allowed(stack, descriptor, _CHANGE)
        yield descriptor


def move_out(root: str, path: str, place: Path, *, link: str, verb: str) -> tuple[str, bool]:
    """Move a path of a folder away to `place`; gives what to say, and whether it is gone.

    `link` is where the link led that it replaced, which is made again.
    """
    name = os.path.relpath(path, root)
    above, _, last = name.rpartition("/")
    target = place / name
    try:
        with opened_folder(root, above) as folder:
            _move(folder, last, target)
            if link:
                os.symlink(link, last, dir_fd=folder)
    except OSError as error:
        said = f"{clipped_path(name)} was {verb} while the command ran. It can change what tools do. It cannot be moved"
        return f"{said}: {error.strerror or error}.", False
    if link:
        said = f"{name} was replaced while the command ran. It is the link to {link} again; the other is {target}."
    else:
        said = f"{name} was {verb} while the command ran. It can change what tools do, so it was moved to {target}."
    return said, True


def restore_link(root: str, path: str, link: str) -> list[str]:
    """Make a link again that was removed, and say so."""
    name = os.path.relpath(path, root)
    above, _, last = name.rpartition("/")
    try:
        with opened_folder(root, above) as folder:
            os.symlink(link, last, dir_fd=folder)
    except OSError:
        return []
    return [f"{name}, a link to {link}, was removed while the command ran. It was made again."]


def _move(folder: int, name: str, target: Path) -> None:
    """Move what a folder holds, to another file system by a copy."""
    make_private_folder(target.parent)
    writable_entry(folder, name)
    try:
        os.rename(name, target, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        aside = f".{name}.{secrets.token_hex(4)}"
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        copy_over(Path(f"/proc/self/fd/{folder}/{aside}"), target)


def make_listable(root: str, name: str) -> None:
    """Let the user list a folder, and go into it, from now on. Raises `OSError`."""
    above, _, last = os.path.normpath(name).rpartition("/")
    with contextlib.ExitStack() as stack:
        if last == ".":
            folder = _open(stack, root)
        else:
            folder = _open(stack, last, stack.enter_context(opened_folder(root, above)))
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        _set_mode(folder, mode | _LIST)


def writable_entry(folder: int, name: str) -> None:
    """Let a folder be moved to another one, which changes what `..` is in it; what is no folder needs nothing."""
    with contextlib.ExitStack() as stack:
        try:
            entry = _open(stack, name, folder)
        except OSError:
            return
        mode = stat.S_IMODE(os.fstat(entry).st_mode)
        if mode & _CHANGE != _CHANGE:
            _set_mode(entry, mode | _CHANGE)


def copy_over(source: Path, target: Path) -> None:
    """Move a file or folder by a copy, whatever its modes are."""
    if source.is_symlink():
        shutil.copy2(source, target, follow_symlinks=False)
        source.unlink()
    elif source.is_dir():
        _make_readable(source)
        copy_tree(source, target)
        remove_tree(source)
    else:
        _make_readable(source)
        shutil.copy2(source, target, follow_symlinks=False)
        source.unlink()


def _make_readable(place: Path) -> None:
    """Let the user read a file, or a folder with all that it holds."""
    left = [place]
    while left:
        path = left.pop()
        descriptor = os.open(path, _OPEN)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                _set_mode(descriptor, stat.S_IMODE(mode) | stat.S_IRWXU)
            elif stat.S_ISREG(mode):
                _set_mode(descriptor, stat.S_IMODE(mode) | stat.S_IRUSR)
        finally:
            os.close(descriptor)
        if stat.S_ISDIR(mode):
            left += path.iterdir()


def _open(stack: contextlib.ExitStack, name: str, folder: int | None = None) -> int:
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _allowed(stack: contextlib.ExitStack, folder: int, wanted: int) -> None:
    """Have a folder allow something to its user until the stack ends."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & wanted != wanted:
        _set_mode(folder, mode | wanted)
        stack.callback(_set_mode, folder, mode)


def _set_mode(descriptor: int, mode: int) -> None:
    """Set a mode by a descriptor that may only name the folder."""
    if hasattr(os, "O_PATH"):
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - no path of the file system
    else:
        os.fchmod(descriptor, mode)
