"""What is there when a command is about to start: the facts that its wrapping is computed from."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from treadle.workspace.sandbox.box import is_placeholder
from treadle.workspace.sandbox.profile import Profile, is_within


class Kind(Enum):
    """What stands at a path."""

    FILE = auto()
    FOLDER = auto()
    MISSING_FILE = auto()
    MISSING_FOLDER = auto()
    LINK = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """A path whose folder is resolved, and what stands there."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The places of a profile as they are now. `sockets` are those through which other programs can be reached."""

    protected: tuple[Place, ...]
    masked: tuple[Place, ...]
    writable: tuple[Place, ...]
    readable: tuple[Place, ...]
    folders: frozenset[str]
    sockets: tuple[str, ...]


TMP = "/tmp"  # noqa: S108 - to be hidden, not to be used
"""The folder in whose place a private one is shown."""

HIDDEN_FOLDERS = ("/run", "/var/tmp")  # noqa: S108 - as above
"""Folders where other programs leave sockets and files; a sandboxed command has empty ones of its own."""


def look(profile: Profile) -> Ground:
    """Look at every path that a profile names."""
    protected = [place for path in profile.protected for place in _places(path)]
    return Ground(
        protected=_unique(place for place in protected if profile.root_of(place.path)),
        masked=_outermost(_unique(_existing(profile.masked))),
        writable=_unique(_existing(profile.writable)),
        readable=_unique(_existing(profile.readable)),
        folders=frozenset(path for path in (*HIDDEN_FOLDERS, *profile.scratch) if _is_real_folder(path)),
        sockets=_sockets(),
    )


def _unique(places: Iterable[Place]) -> tuple[Place, ...]:
    """Order places so that a folder comes before what lies in it."""
    return tuple(sorted(dict.fromkeys(places), key=lambda place: place.path))


def _outermost(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Leave out what lies in a folder of these, which is masked whole."""
    kept: list[Place] = []
    for place in places:
        if not any(is_within(place.path, above.path) for above in kept):
            kept.append(place)
    return tuple(kept)


def _existing(paths: Sequence[str]) -> list[Place]:
    """Follow links to what really is there; what is missing needs nothing."""
    resolved = [Place(path, _kind(path)) for path in map(os.path.realpath, paths)]
    return [place for place in resolved if place.kind in (Kind.FILE, Kind.FOLDER)]


def _places(path: str) -> list[Place]:
    """Give the place of a protected path, and of a link the place that it leads to besides."""
    folder, name = os.path.split(path.rstrip("/"))
    at = str(Path(os.path.realpath(folder)) / name)
    kind = _kind(at, folder=path.endswith("/"))
    target = _existing([at]) if kind is Kind.LINK else []
    return [Place(at, kind), *target]


def _kind(path: str, *, folder: bool = False) -> Kind:
    """Tell what stands at a path; a placeholder, of a command that still runs or was killed, is nothing."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        mode = 0
    if not mode or is_placeholder(path):
        return Kind.MISSING_FOLDER if folder else Kind.MISSING_FILE
    if stat.S_ISLNK(mode):
        return Kind.LINK
    return Kind.FOLDER if stat.S_ISDIR(mode) else Kind.FILE


def _is_real_folder(path: str) -> bool:
    return _kind(path) is Kind.FOLDER


def _sockets() -> tuple[str, ...]:
    """List the Unix sockets with a path: a read-only file system does not keep anybody from talking to them."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    found = {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}
    paths = {os.path.realpath(path) for path in found if path.startswith("/")}
    return tuple(sorted(path for path in paths if Path(path).is_socket()))
