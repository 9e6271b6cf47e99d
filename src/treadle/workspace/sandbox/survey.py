"""What a folder has of control files, secrets and installed programs: looked for once, and then kept current.

A folder is read again only when its time of change (ctime, which no program sets back) differs from the one it had.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from pathlib import Path
from typing import assert_never

from treadle.protocol.name_lists import ENVIRONMENT_MARK
from treadle.protocol.protected_names import is_git_data
from treadle.workspace.files.paths import FolderEntry, Listed, NoFolder, Unlisted, list_folder

_MOST_ENTRIES = 1_000_000
_MOST_SECRETS_IN_A_FOLDER = 200
_MOST_UNLISTED = 100
_SETTLED = 20_000_000  # nanoseconds; the kernel's clock for files ticks every 4 to 10 ms
_INSTALLED = frozenset({"__pycache__", ".tox", ".nox", "target", "site-packages"})
"""Folders that tools fill: control files are not looked for there, but secrets are, since anybody can give a name."""

_LARGEST_PUBLIC = 1024 * 1024  # bytes
_NEVER = (0, 0, 0)
"""The stamp of what is to be read again."""

PathFilter = Callable[[str], bool]
"""Whether a path relative to the folder is one of the wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found, as absolute paths.

    `control` are files, folders and links that make tools do something, with where a link leads; `secrets` are files.
    `repositories` are folders that git takes for one by what is in them, whatever they are called.
    `python` and `node` are what interpreters and shells pick up by themselves: virtual environments and their like.
    `unlisted` are folders of which nobody knows what they hold: they cannot be listed, or there is too much.
    """

    control: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    @property
    def control_paths(self) -> tuple[str, ...]:
        """The control files alone."""
        return tuple(path for path, _ in self.control)


class _Role(Enum):
    """What a folder is looked into for."""

    PLAIN = auto()
    SECRETS = auto()
    NODE = auto()
    INSTALLED = auto()
    INSTALLED_SECRETS = auto()


@dataclass(slots=True)
class _Folder:
    """What one folder itself holds, as it was when its stamp was taken; `below` are those to look into next."""

    stamp: tuple[int, int, int]
    role: _Role
    control: list[tuple[str, str]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    node: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    below: list[tuple[str, _Role]] = field(default_factory=list)
    is_repository: bool = False
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
        folders, passed = [(self.root, _Role.PLAIN)], 0
        for path, role in folders:  # grows meanwhile
            if entries > _MOST_ENTRIES:
                break
            passed += 1
            found = self._folder(path, role)
            if found is None:
                continue
            known[path] = found
            entries += found.entries
            folders += found.below
        self._known = known
        all_found = known.values()
        unlisted = [*chain.from_iterable(each.unlisted for each in all_found), *(path for path, _ in folders[passed:])]
        return Survey(
            control=tuple(chain.from_iterable(each.control for each in all_found)),
            secrets=tuple(chain.from_iterable(each.secrets for each in all_found)),
            repositories=tuple(path for path, each in known.items() if each.is_repository),
            python=tuple(chain.from_iterable(each.python for each in all_found)),
            node=tuple(chain.from_iterable(each.node for each in all_found)),
            unlisted=tuple(unlisted if len(unlisted) <= _MOST_UNLISTED else (self.root,)),
        )

    def _folder(self, path: str, role: _Role) -> _Folder | None:
        known = self._known.get(path)
        if known is not None and known.role is role and known.stamp == _stamp(path):
            return known
        match list_folder(path):
            case NoFolder():
                return None
            case Unlisted():
                return _Folder(_NEVER, role, unlisted=[path])
            case Listed(entries=inner, stamp=stamp):
                settled = time.time_ns() - stamp[2] > _SETTLED
                found = _Folder(stamp if settled else _NEVER, role, entries=len(inner))
                self._sort(path, inner, found)
                return found
            case unknown:
                assert_never(unknown)

    def _sort(self, path: str, inner: Sequence[FolderEntry], found: _Folder) -> None:
        """Note what stands in a folder, and which folders are to be looked into."""
        found.is_repository = is_git_data(entry.name for entry in inner)
        match found.role:
            case _Role.PLAIN:
                self._sort_plain(path, inner, found)
            case _Role.SECRETS:
                many = len(inner) > _MOST_SECRETS_IN_A_FOLDER or any(each.is_folder for each in inner)
                found.secrets = [path] if many else [f"{path}/{each.name}" for each in inner]
            case _Role.NODE:
                found.node = [f"{path}/{each.name}" for each in inner if each.name == ".bin"]
                self._sort_installed(path, inner, found)
            case _Role.INSTALLED | _Role.INSTALLED_SECRETS:
                self._sort_installed(path, inner, found)
            case unknown:
                assert_never(unknown)

    def _sort_plain(self, path: str, inner: Sequence[FolderEntry], found: _Folder) -> None:
        if path != self.root and any(entry.name == ENVIRONMENT_MARK for entry in inner):
            found.python.append(path)
        for entry, at, name in self._named(path, inner):
            secret, control = self._is_secret(name), self._is_control(name)
            if control:
                found.control.append((at, _target(at) if entry.is_link else ""))
            if secret and not entry.is_folder:
                found.secrets.append(at)
            elif entry.is_folder and entry.name == "node_modules":
                found.below.append((at, _Role.NODE))
            elif entry.is_folder and (secret or not control):
                usual = _Role.INSTALLED if entry.name in _INSTALLED else _Role.PLAIN
                found.below.append((at, _Role.SECRETS if secret else usual))
            elif entry.is_folder and entry.name != ".git":
                # Nothing in it is written, but credentials may lie there, such as those of `.composer`.
                found.below.append((at, _Role.INSTALLED))

    def _sort_installed(self, path: str, inner: Sequence[FolderEntry], found: _Folder) -> None:
        """Look for secrets among what tools put there; what is public by its content is none.

        Packages have folders such as `credentials` with their own program texts, which are none either.
        """
        among = found.role is _Role.INSTALLED_SECRETS
        for entry, at, name in self._named(path, inner):
            secret = self._is_secret(f"secrets/{entry.name}" if among else name)
            if entry.is_folder:
                found.below.append((at, _Role.INSTALLED_SECRETS if among or secret else _Role.INSTALLED))
            elif secret:
                if _is_public(at):
                    found.stamp = _NEVER  # a folder does not tell when what is in a file of it changes
                else:
                    found.secrets.append(at)

    def _named(self, path: str, inner: Sequence[FolderEntry]) -> Iterator[tuple[FolderEntry, str, str]]:
        """Give each entry with its absolute path, and the one relative to the root."""
        prefix = "" if path == self.root else f"{path[len(self.root) :].lstrip('/')}/"
        above = path.rstrip("/")
        return ((entry, f"{above}/{entry.name}", prefix + entry.name) for entry in inner)


def _stamp(path: str) -> tuple[int, int, int]:
    """Give what tells a folder that has not changed; of what cannot be looked at, a stamp that no folder has."""
    try:
        facts = os.lstat(path)
    except OSError:
        return (-1, -1, -1)
    return facts.st_dev, facts.st_ino, facts.st_ctime_ns


def _target(path: str) -> str:
    """Give where a link leads; empty for what is none any more."""
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _is_public(path: str) -> bool:
    """Whether a file holds certificates and no private key, compiled Python, or a map of a program's source."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(_LARGEST_PUBLIC + 1)
    except OSError:
        return False
    match Path(path).suffix:
        case ".pem" | ".crt" | ".cer":
            return len(text) <= _LARGEST_PUBLIC and b"BEGIN CERTIFICATE" in text and b"PRIVATE KEY" not in text
        case ".pyc":
            return text[2:4] == b"\r\n" and text[16:17] in (b"\xe3", b"c")  # the code of a module
        case ".map":
            return text.startswith(b'{"version":3,')
        case _:
            return False
