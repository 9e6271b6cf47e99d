"""The batches that this computer knows: each writes down how far it is, for whoever looks."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from treadle.app.config.places import data_directory, read_regular
from treadle.present.batch_progress import BatchProgress
from treadle.store.leases import is_alive
from treadle.workspace.files.private_file import write_private

_MOST = 50
"""Batches that are kept; the oldest go first."""

_FOLDER = "batches"

BATCH_ABOUT = "batch.json"
"""The file in the folder of a batch that names its run."""

_LARGEST_ABOUT = 64 * 1024


class _About(msgspec.Struct):
    run: str


def keep_progress(progress: BatchProgress) -> None:
    """Write down how far a batch is. Where that fails, as on a full disk, nobody sees it, and the batch goes on."""
    folder = data_directory() / _FOLDER
    with suppress(OSError):
        write_private(folder / f"{progress.run}.json", msgspec.json.encode(progress))


def known_batches() -> Sequence[tuple[BatchProgress, bool]]:
    """List the batches, the newest first, each with whether it works now: a process that was killed says no end."""
    found = [one for file in _files() if (one := _read(file)) is not None]
    found.sort(key=lambda one: (-one.began_at, one.run))
    for old in found[_MOST:]:
        with suppress(OSError):
            (data_directory() / _FOLDER / f"{old.run}.json").unlink()
    return [(one, _works(one)) for one in found[:_MOST]]


def batches_changed() -> float:
    """Say when a batch last wrote down how far it is (seconds since 1970); 0 is never."""
    try:
        return (data_directory() / _FOLDER).stat().st_mtime
    except OSError:
        return 0.0


def batch_at_work() -> tuple[int, int] | None:
    """Count the tasks that have ended of the batch that works now, and all of them; of several of that used last.

    A file that has not changed is not read again.
    """
    found = []
    for file in _files():
        with suppress(OSError):
            found.append((file.stat().st_mtime_ns, file))
    known = (_as_written(file, at) for at, file in sorted(found, reverse=True))
    return next((counts for owner, counts in known if owner and is_alive(owner, time.time())), None)


@lru_cache(maxsize=_MOST)
def _as_written(file: Path, _at: int) -> tuple[str, tuple[int, int]]:
    """Give who does a batch, empty where it has ended, and how many of its tasks have, of how many."""
    one = _read(file)
    if one is None or one.exit_code is not None:
        return "", (0, 0)
    before = len(one.before)
    return one.process, (before + len(one.ended), before + one.tasks)


def find_batch(run: str) -> tuple[BatchProgress, bool] | None:
    """Find a batch of this computer by its name, with whether it works now."""
    one = next((_read(file) for file in _files() if file.stem == run), None)
    return None if one is None else (one, _works(one))


def _files() -> Iterable[Path]:
    return (data_directory() / _FOLDER).glob("[!.]*.json")


def _read(file: Path) -> BatchProgress | None:
    """Read how far a batch is; one whose folder another one has by now cannot be begun again."""
    with suppress(OSError, msgspec.MsgspecError):
        one = msgspec.json.decode(file.read_bytes(), type=BatchProgress)
        return replace(one, command=()) if is_folder_anothers(one) else one
    return None


def is_folder_anothers(one: BatchProgress) -> bool:
    """Whether the folder of a batch was emptied, and is that of another batch by now."""
    try:
        about = msgspec.json.decode(read_regular(Path(one.folder) / BATCH_ABOUT, _LARGEST_ABOUT) or b"", type=_About)
    except (OSError, msgspec.MsgspecError):
        return False
    return about.run != one.run


def _works(one: BatchProgress) -> bool:
    return one.exit_code is None and is_alive(one.process, time.time())
