"""What to say, and to do, when the database cannot be opened, read or written."""

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from treadle.protocol.errors import StoreError

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ELSEWHERE = "set TREADLE_HOME to another folder"


def unopened(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Explain why the log cannot be opened; a file that is no database any more is set aside first."""
    if _is_damage(error):
        return _set_aside(path, error)
    return StoreError(
        "log-unreadable",
        f"The session log {path} cannot be opened.",
        why=str(error),
        fix=f"Check the folder's permissions and free space, or {_ELSEWHERE}.",
    )


def unread(path: Path, error: sqlite3.Error) -> StoreError:
    """Explain why the log cannot be read."""
    if not _is_damage(error):
        return unopened(path, error)
    return StoreError(
        "log-damaged",
        f"The session log {path} is damaged.",
        why=str(error),
        fix=f"Save what can be saved: sqlite3 {path.name} .recover; then move it away, or {_ELSEWHERE}.",
    )


def unwritten(path: Path, error: sqlite3.Error) -> StoreError:
    """Explain why the log cannot be written."""
    return StoreError(
        "log-unwritable",
        f"The session log {path} cannot be written.",
        why=str(error),
        fix="Make room on the disk or check the permissions; then resume the session: nothing that was logged is lost.",
    )


def _is_damage(error: sqlite3.Error | OSError) -> bool:
    # The low byte is the kind of error; what is above it only tells more of it.
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _set_aside(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 10**6}")
    try:
        path.rename(kept)
    except OSError as refusal:
        why, fix = f"{error}; it could not be set aside: {refusal}", f"Move it away, or {_ELSEWHERE}."
    else:
        why, fix = f"{error}; it was set aside as {kept.name}.", "Start again: a new log is begun."
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(f"{path.name}{suffix}").rename(kept.with_name(f"{kept.name}{suffix}"))
    return StoreError("log-damaged", f"The session log {path} is damaged.", why=why, fix=fix)
