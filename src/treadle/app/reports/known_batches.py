"""The batches that this computer knows: each writes down how far it is, for whoever looks."""

import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from treadle.app.config.places import data_directory
from treadle.present.batch_progress import BatchProgress
from treadle.store.leases import is_alive
from treadle.workspace.files.private_file import write_private

_MOST = 50
"""Batches that are kept; the oldest go first."""

_FOLDER = "batches"


def keep_progress(progress: BatchProgress) -> None:
    """Write down how far a batch is. Where that fails, as on a full disk, nobody sees it, and the batch goes on."""
    folder = data_directory() / _FOLDER
    with suppress(OSError):
        write_private(folder / f"{progress.run}.json", msgspec.json.encode(progress))


def known_batches() -> Sequence[tuple[BatchProgress, bool]]:
    """List the batches, the newest first, each with whether it works now: a process that was killed says no end."""
    found: list[BatchProgress] = []
    for file in (data_directory() / _FOLDER).glob("[!.]*.json"):
        with suppress(OSError, msgspec.MsgspecError):
            found.append(msgspec.json.decode(file.read_bytes(), type=BatchProgress))
    found.sort(key=lambda one: (-one.began_at, one.run))
    for old in found[_MOST:]:
        with suppress(OSError):
            (data_directory() / _FOLDER / f"{old.run}.json").unlink()
    now = time.time()
    return [(one, one.exit_code is None and is_alive(one.process, now)) for one in found[:_MOST]]
