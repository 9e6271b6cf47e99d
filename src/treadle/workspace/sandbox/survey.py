"""What a folder has of control files, secrets and installed programs: looked for once, and then kept current.

A folder is read again only when its time of change (ctime, which no program sets back) differs from the one it had.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

_MOST_ENTRIES = 200_000
_MOST_SECRETS_IN_A_FOLDER = 200
_SETTLED = 20_000_000  # nanoseconds; the kernel's clock for files ticks every 4 to 10 ms
_INSTALLED = frozenset({"node_modules", "__pycache__", ".tox", ".nox", "target", "site-packages"})
"""Folders that tools fill, which are not looked into."""

Judge = Callable[[str], bool]
"""Whether a path relative to the folder is one of the wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found, as absolute paths; not `complete` when the folder is too large to look through.

    `control` are files, folders and links that make tools do something, with where a link leads; `secrets` are files.
    `python` and `node` are what interpreters and shells pick up by themselves: virtual environments and their like.
    """

    control: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    complete: bool = True

    @property
    def control_paths(self) -> tuple[str, ...]:
        """The control files alone."""
        return tuple(path for path, _ in self.control)


@dataclass(slots=True)
class _Folder:
    """What one folder holds, as it was when its stamp was taken."""

    stamp: tuple[int, int, int]
    control: list[tuple[str, str]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    node: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    entries: int = 0


class Surveyor:
    """Looks through one folder, again and again. `is_control` and `is_secret` judge paths relative to it."""

    def __init__(self, root: str, *, is_control: Judge, is_secret: Judge) -> None:
        self.root = root
        self._is_control = is_control
        self._is_secret = is_secret
        self._known: dict[str, _Folder] = {}

    def look(self) -> Survey:
        """Find what is there now."""
        known, entries = {}, 0
        folders = [self.root]
        for path in folders:  # grows meanwhile
            found = self._folder(path)
            if found is None:
                continue
            known[path] = found
            entries += found.entries
            if entries > _MOST_ENTRIES:
                break
            folders += found.below
        self._known = known
        all_found = known.values()
        return Survey(
            control=tuple(chain.from_iterable(each.control for each in all_found)),
            secrets=tuple(chain.from_iterable(each.secrets for each in all_found)),
            python=tuple(chain.from_iterable(each.python for each in all_found)),
            node=tuple(chain.from_iterable(each.node for each in all_found)),
            complete=entries <= _MOST_ENTRIES,
        )

    def _folder(self, path: str) -> _Folder | None:
        try:
            stat_ = os.lstat(path)
        except OSError:
            return None
        if not stat.S_ISDIR(stat_.st_mode):
            return None
        stamp = (stat_.st_dev, stat_.st_ino, stat_.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp:
            return known
        settled = time.time_ns() - stat_.st_ctime_ns > _SETTLED
        return self._read(path, stamp if settled else (0, 0, 0))

    def _read(self, path: str, stamp: tuple[int, int, int]) -> _Folder:
        found = _Folder(stamp)
        prefix = "" if path == self.root else f"{path[len(self.root) :].lstrip('/')}/"
        for entry in _entries(path):
            found.entries += 1
            name = prefix + entry.name
            secret, control = self._is_secret(name), self._is_control(name)
            found.secrets += _files_of(entry) if secret else []
            found.control += [(entry.path, _target(entry))] if control else []
            if not (secret or control) and entry.is_dir(follow_symlinks=False):
                _sort(entry, found)
        return found


def _sort(entry: os.DirEntry[str], found: _Folder) -> None:
    """Note what tools installed, and what is to be looked into."""
    if os.path.lexists(f"{entry.path}/pyvenv.cfg"):
        found.python.append(entry.path)
    elif entry.name == "node_modules":
        found.node += [path for path in (f"{entry.path}/.bin",) if os.path.lexists(path)]
    elif entry.name not in _INSTALLED:
        found.below.append(entry.path)


def _files_of(entry: os.DirEntry[str]) -> list[str]:
    """Give a secret file; of a folder of secrets its files, or itself where it has many or a folder of its own."""
    if not entry.is_dir(follow_symlinks=False):
        return [entry.path]
    inner = list(_entries(entry.path))
    if len(inner) > _MOST_SECRETS_IN_A_FOLDER or any(each.is_dir() for each in inner):
        return [entry.path]
    return [each.path for each in inner]


def _target(entry: os.DirEntry[str]) -> str:
    """Give where a link leads; empty for what is none."""
    try:
        return str(Path(entry.path).readlink()) if entry.is_symlink() else ""
    except OSError:
        return ""


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
