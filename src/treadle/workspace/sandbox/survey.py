"""What a folder has of control files, secrets and installed programs: looked for once, and then kept current.

A folder is read again only when its time of change (ctime, which no program sets back) differs from the one it had.
"""

import os
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from pathlib import Path
from typing import assert_never

from treadle.protocol.name_lists import ENVIRONMENT_MARK

_MOST_ENTRIES = 200_000
_MOST_SECRETS_IN_A_FOLDER = 200
_SETTLED = 20_000_000  # nanoseconds; the kernel's clock for files ticks every 4 to 10 ms
_INSTALLED = frozenset({"__pycache__", ".tox", ".nox", "target", "site-packages"})
"""Folders that tools fill, which are not looked into."""

PathFilter = Callable[[str], bool]
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


class _Role(Enum):
    """What a folder is looked into for."""

    PLAIN = auto()
    SECRETS = auto()
    NODE = auto()


@dataclass(slots=True)
class _Folder:
    """What one folder itself holds, as it was when its stamp was taken; `below` are those to look into next."""

    stamp: tuple[int, int, int]
    role: _Role
    control: list[tuple[str, str]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    node: list[str] = field(default_factory=list)
    below: list[tuple[str, _Role]] = field(default_factory=list)
    entries: int = 0


class Surveyor:
    """Looks through one folder, again and again. `is_control` and `is_secret` judge paths relative to it."""

    def __init__(self, root: str, *, is_control: PathFilter, is_secret: PathFilter) -> None:
        self.root = root
        self._is_control = is_control
        self._is_secret = is_secret
        self._known: dict[str, _Folder] = {}

    def look(self) -> Survey:
        """Find what is there now."""
        known, entries = {}, 0
        folders = [(self.root, _Role.PLAIN)]
        for path, role in folders:  # grows meanwhile
            found = self._folder(path, role)
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

    def _folder(self, path: str, role: _Role) -> _Folder | None:
        try:
            facts = os.lstat(path)
        except OSError:
            return None
        if not stat.S_ISDIR(facts.st_mode):
            return None
        stamp = (facts.st_dev, facts.st_ino, facts.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp and known.role is role:
            return known
        settled = time.time_ns() - facts.st_ctime_ns > _SETTLED
        found = _Folder(stamp if settled else (0, 0, 0), role)
        inner = _entries(path)
        found.entries = len(inner)
        match role:
            case _Role.PLAIN:
                self._sort(path, inner, found)
            case _Role.SECRETS:
                many = len(inner) > _MOST_SECRETS_IN_A_FOLDER or any(each.is_dir() for each in inner)
                found.secrets = [path] if many else [each.path for each in inner]
            case _Role.NODE:
                found.node = [each.path for each in inner if each.name == ".bin"]
            case _:
                assert_never(role)
        return found

    def _sort(self, path: str, inner: Sequence[os.DirEntry[str]], found: _Folder) -> None:
        """Note what stands in a folder, and which folders are to be looked into."""
        if path != self.root and any(entry.name == ENVIRONMENT_MARK for entry in inner):
            found.python.append(path)
            return
        prefix = "" if path == self.root else f"{path[len(self.root) :].lstrip('/')}/"
        for entry in inner:
            name = prefix + entry.name
            secret, control = self._is_secret(name), self._is_control(name)
            folder = entry.is_dir(follow_symlinks=False)
            if control:
                found.control.append((entry.path, _target(entry)))
            if secret and not folder:
                found.secrets.append(entry.path)
            elif folder and entry.name == "node_modules":
                found.below.append((entry.path, _Role.NODE))
            elif folder and (secret or not (control or entry.name in _INSTALLED)):
                found.below.append((entry.path, _Role.SECRETS if secret else _Role.PLAIN))


def _target(entry: os.DirEntry[str]) -> str:
    """Give where a link leads; empty for what is none."""
    try:
        return str(Path(entry.path).readlink()) if entry.is_symlink() else ""
    except OSError:
        return ""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
