"""Where the checkpoints of sessions are, and with which settings they are taken."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.config.layers import load_settings
from treadle.app.config.places import data_directory, gone_folder
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import SessionStarted
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.store import CheckpointStore

_PATIENCE = 5.0
"""Seconds to wait for another process that uses the checkpoints of the same folder."""


def checkpoint_folder() -> Path:
    """The folder that holds the files of all checkpoints."""
    return data_directory() / "checkpoints"


def review_file(session_id: str) -> Path:
    """The file that holds what a person decided of a session's changes."""
    return data_directory() / "reviews" / f"{session_id}.json"


def findings_file(session_id: str) -> Path:
    """The file that holds the findings of reviews which a session showed."""
    return review_file(session_id).with_suffix(".findings.json")


def forget_review(session_id: str) -> None:
    """Remove both files."""
    for file in (review_file(session_id), findings_file(session_id)):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def forget_checkpoints(session_id: str) -> None:
    """Let go of the checkpoints of a session, whatever folder it worked in; what cannot be opened stays."""
    for folder in checkpoint_folder().glob("*/checkpoints.db"):
        store = CheckpointStore(folder.parent, "", covers_ignored=False, largest=0, patience=_PATIENCE)
        with suppress(TreadleError):
            store.forget(f"{session_id}/")
        store.close()


def session_checkpoints(store: Store, session_id: str, roots: Sequence[str], *, ignored: bool) -> FileCheckpoints:
    """Open the checkpoints of a session that works in these folders."""
    return FileCheckpoints(store, session_id, checkpoint_folder(), roots, ignored=ignored)


def opened_checkpoints(store: Store, row: SessionRow) -> FileCheckpoints:
    """Open the checkpoints of a session by its log; raises `ConfigError` for broken settings, or without its folder."""
    started = next(iter(store.read(row.id, before=2))).data
    roots = started.roots if isinstance(started, SessionStarted) else ()
    folders = (row.workspace, *roots)
    if gone := next((folder for folder in folders if not Path(folder).is_dir()), ""):
        raise gone_folder(row.id, gone, "Its checkpoints are compared with its files.")
    ignored = load_settings({}).checkpoints.ignored
    return session_checkpoints(store, row.id, folders, ignored=ignored)
