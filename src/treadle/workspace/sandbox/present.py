"""What is there when a command is about to start: the facts that its wrapping is computed from."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.workspace.sandbox.profile import Profile, is_within

_LARGEST_BESIDE = 128
"""Bytes of a file that may lie beside sockets: a key, a lock, the number of a process."""

TMP = "/tmp"  # noqa: S108 - to be hidden, not to be used
"""The folder in whose place a private one is shown."""

SHARED_FOLDERS = ("/run", "/var/tmp")  # noqa: S108 - as above
"""Folders where other programs leave sockets and files; a sandboxed command has empty ones of its own."""


_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/acpi", "/proc/driver", "/proc/fs", "/proc/mtrr", "/proc/scsi")
"""Settings of the whole system: a process of root writes them without any capability, nobody else does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The places of a profile that are there. `sockets` lead to other programs, `kernel` to settings of the system.

    `closed` are those of them that a command of root cannot get to once it has no capabilities, nor can a mount.
    """

    protected: tuple[str, ...] = ()
    masked_files: tuple[str, ...] = ()
    masked_folders: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    closed: frozenset[str] = frozenset()

    @property
    def masked(self) -> tuple[str, ...]:
        """Everything that cannot be read."""
        return (*self.masked_files, *self.masked_folders)


def look(profile: Profile) -> Present:
    """Look at every path that a profile names."""
    sockets = _sockets()
    masked = _outermost(_existing((*profile.masked, *_folders_of(sockets, (TMP, *profile.folders)))))
    is_root = os.geteuid() == 0
    return Present(
        protected=_existing(profile.protected),
        masked_files=tuple(path for path in masked if not _is_folder(path)),
        masked_folders=tuple(path for path in masked if _is_folder(path)),
        hidden=tuple(path for path in profile.hidden if _is_folder(path)),
        shared=tuple(path for path in SHARED_FOLDERS if _is_folder(path)),
        readable=tuple(sorted({*filter(_is_bindable, profile.shown), *_existing(profile.readable)})),
        writable=_existing(profile.writable),
        sockets=sockets,
        kernel=tuple(filter(_is_bindable, _KERNEL)) if is_root else (),
        closed=frozenset(path for path in (*masked, *sockets) if is_root and closed_above(path)),
    )


def closed_above(path: str) -> str:
    """Name the outermost folder on the way to a path that root cannot pass without capabilities; empty for none.

    It is one of another user: what root owns a command of root can open again.
    """
    groups = {os.getegid(), *os.getgroups()}
    for above in reversed(Path(path).parents):
        try:
            status = above.stat()
        except OSError:
            return ""  # unknown is covered
        passes = stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
        if status.st_uid != 0 and not status.st_mode & passes:
            return str(above)
    return ""


def _existing(paths: Sequence[str]) -> tuple[str, ...]:
    """Follow links to what really is there, in order: a folder before what lies in it."""
    resolved = {os.path.realpath(path) for path in paths}
    return tuple(sorted(path for path in resolved if _is_bindable(path)))


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Leave out what lies in a folder of these, which is masked whole."""
    kept: list[str] = []
    for path in paths:
        if not any(is_within(path, above) for above in kept):
            kept.append(path)
    return tuple(kept)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _is_bindable(path: str) -> bool:
    mode = _mode(path)
    return bool(mode) and not stat.S_ISLNK(mode)


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(_mode(path))


def _sockets() -> tuple[str, ...]:
    """List the Unix sockets with a path: a read-only file system does not keep anybody from talking to them."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    found = {fields[7] for line in lines if len(fields := line.split(maxsplit=7)) == 8}
    paths = {os.path.realpath(path) for path in found if path.startswith("/")}
    return tuple(sorted(path for path in paths if stat.S_ISSOCK(_mode(path))))


def _folders_of(sockets: Sequence[str], left: Sequence[str]) -> list[str]:
    """Give the folders, but for what is `left`, in which there is nothing but sockets, and their keys and locks.

    Sockets come and go, and one that has gone when the mounts are made cannot be covered: of these the folder is.
    """
    folders = dict.fromkeys(os.path.dirname(path) for path in sockets)  # noqa: PTH120 - a command waits
    return [one for one in folders if _holds_only_sockets(one) and not any(is_within(one, each) for each in left)]


def _holds_only_sockets(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return all(map(_is_of_sockets, entries))
    except OSError:
        return False


def _is_of_sockets(entry: "os.DirEntry[str]") -> bool:
    """Whether something in a folder is a socket, a small file as beside one, or has gone since."""
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return True
    return stat.S_ISSOCK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BESIDE)
