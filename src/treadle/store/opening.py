"""Opening the database: a broken file is set aside, never written to, and what is whole in it is recovered."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock

from msgspec import Struct

from treadle.protocol.errors import StoreError
from treadle.store.damage import is_broken, suspicion, unopened, unreadable_message

SCHEMA = 8
"""The number of steps that a file of the present schema has taken, see `store/schema.py`."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_CHECKED_AT_MOST = 64 * 1024 * 1024
"""Bytes up to which a file is looked through after a crash: about a quarter of a second."""

_LONG_TO_CONVERT = 32 * 1024 * 1024
"""Bytes of a file whose conversion takes more than a moment: about 20 MB a second."""


class Repaired(Struct, frozen=True, kw_only=True):
    """What was done about a broken file: where it is now, and which sessions came over whole or up to their break."""

    why: str
    aside: Path
    whole: tuple[str, ...]
    shortened: tuple[str, ...]


_opening = RLock()
_in_use: dict[int, tuple[int, int]] = {}
"""The files that are open in this process, as device and number, by their connections.

Such a file is never read but by SQLite: closing any other descriptor of it would drop the locks that SQLite holds on
it, and the next process that leaves would take the journal away under the connections of this one.
"""

NoticeSink = Callable[[str], None]
"""Takes what a person should know before it is done."""


def open_database(path: Path, notice: NoticeSink) -> tuple[sqlite3.Connection, Repaired | None]:
    """Open or make the database, repaired if it has to be; `notice` takes what takes long. Raises `StoreError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _opening:
            connection, repaired = _open(path, notice)
            _in_use[id(connection)] = _identity(path)
            return connection, repaired
    except (sqlite3.Error, OSError) as error:
        raise unopened(path, error) from error


def close_database(connection: sqlite3.Connection) -> None:
    """Close a database that was opened here."""
    with _opening:
        with suppress(sqlite3.Error):
            connection.close()
        _in_use.pop(id(connection), None)


def _open(path: Path, notice: NoticeSink) -> tuple[sqlite3.Connection, Repaired | None]:
    repaired = _repair(path) if find_trouble(path) else None
    try:
        return _connect(path, notice), repaired
    except sqlite3.Error as error:
        if repaired is not None or not is_broken(error):
            raise
    repaired = _repair(path)
    return _connect(path, notice), repaired


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def find_trouble(path: Path) -> str:
    """Say what is wrong with a file, empty for nothing.

    Its header tells at once when it was cut. It is looked through only when it was not closed properly, or when
    reading it failed before. One that is open in this process already is looked through only in the last case.
    """
    if not path.exists():
        return ""
    if _identity(path) in _in_use.values():
        return _look_through(path) if suspicion(path).exists() else ""
    unclosed = _side(path, "-wal").exists() and _side(path, "-wal").stat().st_size > 0
    trouble = _judge_header(path, unclosed=unclosed)
    if trouble or not (unclosed or suspicion(path).exists()) or path.stat().st_size > _CHECKED_AT_MOST:
        return trouble
    trouble = _look_through(path)
    if not trouble:
        suspicion(path).unlink(missing_ok=True)
    return trouble


def _judge_header(path: Path, *, unclosed: bool) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if not header:
        return "it is empty, but its journal is not" if unclosed else ""
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        return "it is not a database"
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    if not unclosed and header[24:28] == header[92:96] and pages * (65536 if page == 1 else page) > size:
        return "it was cut short"
    return ""


def _look_through(path: Path) -> str:
    try:
        with closing(sqlite3.connect(path, timeout=10.0)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except UnicodeDecodeError as error:
        return str(unreadable_message(error))
    except sqlite3.DatabaseError as error:
        if not is_broken(error):
            raise
        return str(error)
    return "" if found == "ok" else found


def _repair(path: Path) -> Repaired | None:
    """Set the file aside and start a new one; when another process was faster there is nothing left to do."""
    with _alone(path):
        why = find_trouble(path) or _try_to_connect(path)
        if not why:
            return None
        aside = path.with_name(f"{path.name}.broken-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
        _side(path, "-shm").unlink(missing_ok=True)
        if _side(path, "-wal").exists():
            _side(path, "-wal").rename(_side(aside, "-wal"))
        path.rename(aside)
        suspicion(path).unlink(missing_ok=True)
        from treadle.store.recovery import recover_database

        with closing(_connect(path, no_notice, alone=True)) as fresh:
            recovered = recover_database(aside, fresh)
        return Repaired(why=why, aside=aside, whole=recovered.whole, shortened=recovered.shortened)


def _try_to_connect(path: Path) -> str:
    try:
        _connect(path, no_notice, alone=True).close()
    except sqlite3.Error as error:
        if not is_broken(error):
            raise
        return str(error)
    return ""


def _connect(path: Path, notice: NoticeSink, *, alone: bool = False) -> sqlite3.Connection:
    """Connect to the database; only one process converts an old one, `alone` or after waiting for the others."""
    connection = connected_database(path)
    try:
        if is_read_only(path):
            require_current(connection, path)
            return connection
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")
        if not is_current(connection, path):
            if (size := path.stat().st_size) > _LONG_TO_CONVERT:
                notice(f"The session log ({size >> 20} MB) is converted for this version. This happens once.")
            from treadle.store.schema import migrate

            with nullcontext() if alone or version_of(connection) == 0 else _alone(path):
                migrate(connection, path)
    except UnicodeDecodeError as error:
        connection.close()
        raise unreadable_message(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def is_read_only(path: Path) -> bool:
    """Whether a database can be read here and not written: then it is read as it is, without a journal beside it."""
    if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return False
    journal = _side(path, "-wal")
    return not (journal.exists() and journal.stat().st_size > 0)


def connected_database(path: Path) -> sqlite3.Connection:
    """Connect to a database; raises `sqlite3.Error`."""
    if is_read_only(path):
        place = f"{path.absolute().as_uri()}?immutable=1"
        return sqlite3.connect(place, isolation_level=None, check_same_thread=False, timeout=10.0, uri=True)
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)


def require_current(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreError` for a file of an older schema, which cannot be converted where it is."""
    if not is_current(connection, path):
        raise StoreError(
            "store-older",
            f"{path} is of an older Treadle, and cannot be converted: it cannot be written.",
            fix="Copy it into a folder of your own, and set TREADLE_HOME to that.",
        )


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


def no_notice(_: str) -> None:
    """Take what nobody has to know."""


def _side(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    fd = os.open(_side(path, "-mending"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
