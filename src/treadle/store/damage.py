"""What to say when the database cannot be opened, read or written; whether it is broken or of another version."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from treadle.protocol.codec import decode_data
from treadle.protocol.errors import StoreError
from treadle.protocol.events import EventData

SCHEMA = 10
"""The number of steps that a file of the present schema has taken, see `store/schema.py`."""

_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ELSEWHERE = "set TREADLE_HOME to another folder"


def unopened(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Explain why the log cannot be opened."""
    return StoreError(
        "log-unreadable",
        f"The session log {path} cannot be opened.",
        why=str(error),
        fix=f"Check the folder's permissions and free space, or {_ELSEWHERE}.",
    )


def unread(path: Path, error: sqlite3.Error | TypeError) -> StoreError:
    """Explain why the log cannot be read; where the file is broken, the next opening looks through it."""
    if not isinstance(error, TypeError) and not is_broken(error):
        return unopened(path, error)
    with suppress(OSError):
        suspicion(path).touch(mode=0o600)
    return StoreError(
        "log-damaged",
        f"The session log {path} is damaged.",
        why=str(error),
        fix="Start Treadle again. It moves the damaged file aside and recovers what is intact.",
    )


def unwritten(path: Path, error: sqlite3.Error) -> StoreError:
    """Explain why the log cannot be written; where the file is broken, the next opening looks through it."""
    if is_broken(error):
        return unread(path, error)
    if isinstance(error, sqlite3.IntegrityError):
        return StoreError(
            "log-conflict",
            f"The session log {path} does not take what happened here.",
            why=f"Another Treadle has written it since. {error}",
            fix="Quit, and resume the session. Nothing that was logged is lost.",
        )
    return StoreError(
        "log-unwritable",
        f"The session log {path} cannot be written.",
        why=str(error),
        fix="Free disk space or check the permissions, then resume the session. Nothing that was logged is lost.",
    )


def gone(path: Path) -> StoreError:
    """Explain that a log is written to a file that nobody can find any more."""
    return StoreError(
        "log-unwritable",
        f"The session log {path} cannot be written.",
        why="Its file was deleted, moved or replaced while Treadle had it open.",
        fix="If it was moved, put it back. Start Treadle again; what this file had and was deleted is lost.",
    )


def event_data(raw: bytes, version: int) -> EventData:
    """Decode the data of an event that may be damaged in any way; raises `StoreError`.

    A column may hold another kind of value, a version may never have been, and the upgrade of an old record expects
    another shape than it finds.
    """
    try:
        return decode_data(raw, version)
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        raise StoreError("log-damaged", "An event of the log cannot be read.", why=f"{error!r:.200}") from error


def is_broken(error: sqlite3.Error) -> bool:
    """Whether an error says that the file itself is broken, not that it is busy or out of reach."""
    # The low byte is the kind of error; what is above it only tells more of it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN


def unreadable_message(cause: UnicodeDecodeError) -> sqlite3.DatabaseError:
    """Make an error of one whose message names a damaged table, which Python cannot read as text."""
    error = sqlite3.DatabaseError(f"its tables have unreadable names ({cause.reason})")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def suspicion(path: Path) -> Path:
    """Name the file whose presence says that reading found the database broken."""
    return path.with_name(f"{path.name}-suspect")


def is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether a file has the present schema; raises `StoreError` for one from a newer Treadle."""
    version = version_of(connection)
    if version > SCHEMA:
        raise newer_schema(path, version)
    return version == SCHEMA


def version_of(connection: sqlite3.Connection) -> int:
    """Give the number of steps that a file has taken."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def newer_schema(path: Path, version: int) -> StoreError:
    """Explain that a file is of a newer Treadle."""
    return StoreError(
        "store-newer",
        f"{path} was written by a newer Treadle (schema {version}, this one knows {SCHEMA}).",
        fix="Update Treadle, or set TREADLE_HOME to another folder.",
    )
