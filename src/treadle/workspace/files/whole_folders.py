"""Folders with all that is in them, however deep: removed and copied without a call in a call."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from treadle.workspace.files.walking import walk

_NAMED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY
_LISTED = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY


def remove_tree(place: Path) -> None:
    """Remove a folder with what is in it, or a file, be it write-protected; no link is followed. Raises `OSError`."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    problems: list[OSError] = []
    with _opened(place) as top:
        _empty(top, problems)
    if problems:
        raise problems[0]
    place.rmdir()


def try_remove_tree(place: Path) -> None:
    """Remove what can be removed of a folder with what is in it, or of a file; no link is followed."""
    with contextlib.suppress(OSError):
        remove_tree(place)


def _empty(top: int, problems: list[OSError]) -> None:
    """Remove what is in a folder: the folders in each of its folders come up into it, so none is deep.

    A path may be longer than the system takes, and the way back through `..` may lead elsewhere by then.
    """
    left = _folders_alone(top, problems)
    while left:
        name = left.pop()
        try:
            with _opened(name, top) as folder:
                for inner in _folders_alone(folder, problems):
                    moved = f".{secrets.token_hex(8)}"
                    try:
                        with _opened(inner, folder):  # one that is write-protected cannot be moved
                            os.rename(inner, moved, src_dir_fd=folder, dst_dir_fd=top)
                    except OSError as error:
                        problems.append(error)
                    else:
                        left.append(moved)
            os.rmdir(name, dir_fd=top)
        except OSError as error:
            problems.append(error)


def _folders_alone(folder: int, problems: list[OSError]) -> list[str]:
    """Remove all from a folder but the folders in it; gives their names."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                pass
            except OSError as error:
                problems.append(error)
    return [name for name, is_folder in found if is_folder]


@contextlib.contextmanager
def _opened(name: str | Path, above: int | None = None) -> Iterator[int]:
    """Open a folder to change what is in it, whatever its mode is."""
    with contextlib.ExitStack() as stack:
        named = os.open(name, _NAMED, dir_fd=above)
        stack.callback(os.close, named)
        mode = stat.S_IMODE(os.fstat(named).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            with contextlib.suppress(OSError):
                # By a descriptor that may only name the folder.
                os.chmod(f"/proc/self/fd/{named}" if hasattr(os, "O_PATH") else named, mode | stat.S_IRWXU)  # noqa: PTH101
        listed = os.open(".", _LISTED, dir_fd=named)
        stack.callback(os.close, listed)
        yield listed


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder with what is in it to where nothing is; links stay links. Raises `OSError`."""
    made: list[tuple[str, Path]] = []
    for folder, folders, others in walk(str(source)):
        new = target / os.path.relpath(folder, source)
        new.mkdir(parents=not made)
        made.append((folder, new))
        for name in (*others, *filter(lambda one: Path(folder, one).is_symlink(), folders)):
            shutil.copy2(Path(folder, name), new / name, follow_symlinks=False)
    for folder, new in reversed(made):
        shutil.copystat(folder, new)
