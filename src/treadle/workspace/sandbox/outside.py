"""What would have been possible without a sandbox: looked up by Treadle itself, which has none."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from treadle.protocol.opened_paths import FolderEntries
from treadle.workspace.files.paths import Listed, list_folder

_LISTENING = "0A"  # a state in /proc/net/tcp
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathAccess:
    """What stands at a path, links followed, and what its user may do with it."""

    is_folder: bool
    is_socket: bool
    readable: bool
    writable: bool


def look_at(path: str) -> PathAccess | None:
    """Look at an absolute path; None when nothing is there, or nothing that can be seen."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return None
    return PathAccess(
        is_folder=stat.S_ISDIR(mode),
        is_socket=stat.S_ISSOCK(mode),
        readable=os.access(path, os.R_OK),
        writable=os.access(path, os.W_OK),
    )


def listens(port: int) -> bool:
    """Whether a server of this machine listens on a TCP port."""
    wanted = f"{port:04X}"
    for table in _TABLES:
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            _, local, _, state, *_ = row.split()
            if state == _LISTENING and local.rpartition(":")[2] == wanted:
                return True
    return False


def entries_of(path: str) -> list[tuple[str, bool]] | None:
    """List a folder as `FolderEntries` says."""
    match list_folder(path):
        case Listed(entries=entries):
            return [(entry.name, entry.is_folder) for entry in entries]
        case _:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The system as it is without a sandbox."""

    look_at: Callable[[str], PathAccess | None] = look_at
    listens: Callable[[int], bool] = listens
    entries: FolderEntries = entries_of

    def can_write(self, path: str) -> bool:
        """Whether the user may change what is at a path, or make it."""
        found = self.look_at(self._nearest(path, folder=False))
        return found is not None and found.writable

    def folder(self, path: str) -> str:
        """Give the folder in which something missing would be made, or the nearest one above that is there."""
        return self._nearest(path, folder=True)

    def _nearest(self, path: str, *, folder: bool) -> str:
        """Give the path itself, or the nearest one above it that is there."""
        for each in (path, *map(str, Path(path).parents)):
            found = self.look_at(each)
            if found is not None and (found.is_folder or not folder):
                return each
        return path


DISK = Outside()
"""The real one."""
