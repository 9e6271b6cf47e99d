"""Files of long outputs, a folder for each session: how much there is, and which of them go."""

import contextlib
import os
import time
from collections.abc import Collection
from itertools import count
from pathlib import Path

from msgspec import Struct

from treadle.protocol.patterns import regex
from treadle.workspace.commands.background_jobs import read_jobs
from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.whole_folders import try_remove_tree

DAYS = 30
"""Days after which a session's outputs go, counted from the last one."""

MOST_BYTES = 1024**3
"""What all outputs may have together; above it those of the sessions go first whose last output is oldest."""

_HOUR = 3600
_DAY = 24 * _HOUR
_STAMP = ".tidied"
_TRY = "try-"
_OF_TRY = regex(r"try-(\d{1,9})-(\d{1,20})(?:-\d{1,9})?")
_tries = count(1)


class Outputs(Struct, frozen=True, kw_only=True):
    """The outputs of one session; `used` is when the last one was written, in seconds since 1970."""

    folder: Path
    bytes: int
    used: float


def read_outputs(place: Path) -> list[Outputs]:
    """Measure the folders in `place`, the one used last at the end; what cannot be read is left out."""
    found = []
    with contextlib.suppress(OSError):
        found = [entry for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
    return sorted((_measure(Path(entry.path)) for entry in found), key=lambda one: one.used)


def _measure(folder: Path) -> Outputs:
    size, used = 0, 0.0
    with contextlib.suppress(OSError):
        used = folder.stat().st_mtime
        for path in folder.rglob("*"):
            found = path.lstat()
            size, used = size + found.st_blocks * 512, max(used, found.st_mtime)
    return Outputs(folder=folder, bytes=size, used=used)


def remove_old_outputs(place: Path, running: Collection[str], *, now: float) -> int:
    """Remove what is too old or too much, but nothing of sessions that run or left something running; gives the bytes.

    `running` are names of folders. Looks once a day at most, since it may take long.
    """
    stamp = place / _STAMP
    if not place.is_dir() or _age(stamp, now) < _DAY:
        return 0
    with contextlib.suppress(OSError):
        stamp.touch(mode=0o600)
        os.utime(stamp, (now, now))
    found = read_outputs(place)
    total, freed = sum(one.bytes for one in found), 0
    for one in found:
        old = now - one.used > DAYS * _DAY
        if (old or total - freed > MOST_BYTES) and one.folder.name not in running and not _runs(one.folder):
            try_remove_tree(one.folder)
            freed += one.bytes
    return freed


def remove_left(place: Path, pattern: str, running: Collection[str], *, now: float) -> None:
    """Remove files of a pattern from folders of sessions that do not run: those that were killed left them.

    What is younger than an hour stays: its session may have begun since `running` was asked for.
    """
    for file in place.glob(f"*/{pattern}"):
        if file.relative_to(place).parts[0] not in running and _age(file, now) > _HOUR:
            with contextlib.suppress(OSError):
                file.unlink()


def try_folder(place: Path) -> Path:
    """Name a folder for what this process tries out, after the process; another one each time: it is removed."""
    owner = owner_of(os.getpid())
    return place / f"{_TRY}{owner.pid}-{owner.started}-{next(_tries)}"


def remove_ended_tries(place: Path) -> None:
    """Remove the folders of processes that were killed while they tried something out."""
    for folder in place.glob(f"{_TRY}*"):
        if not _runs_try(folder):
            try_remove_tree(folder)


def _runs_try(folder: Path) -> bool:
    named = _OF_TRY.fullmatch(folder.name)
    return named is not None and lives(Owner(int(named[1]), int(named[2])))


def _age(stamp: Path, now: float) -> float:
    try:
        return abs(now - stamp.stat().st_mtime)
    except OSError:
        return float("inf")


def _runs(folder: Path) -> bool:
    return _runs_try(folder) or any(job.runs for job in read_jobs(folder))


def remove_old_outputs_now(place: Path, running: Collection[str]) -> int:
    """Do it by the clock of this machine, and remove what killed sessions and trials left."""
    now = time.time()
    remove_ended_tries(place)
    remove_left(place, "hooks/hook-*", running, now=now)
    return remove_old_outputs(place, running, now=now)
