"""Opening the database: a broken file is set aside, never written to, and what is whole in it is recovered."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from weakref import WeakSet

from msgspec import Struct

from treadle.protocol.errors import StoreError
from treadle.store.damage import is_broken, is_current, suspicion, unopened, unreadable_message, version_of

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
WAITS = 10.0
"""Seconds that others have to let the file go."""

_CHECKED_AT_MOST = 64 * 1024 * 1024
"""Bytes up to which a file is looked through after a crash: about a quarter of a second."""

_CACHE = 256
"""kB of pages that a connection keeps: each session of a program has two, and the system keeps the pages anyway."""

_LONG_TO_CONVERT = 32 * 1024 * 1024
"""Bytes of a file whose conversion takes more than a moment: about 20 MB a second."""


class Repaired(Struct, frozen=True, kw_only=True):
    """What was done about a broken file: where it is now, and which sessions came over whole or up to their break."""

    why: str
    aside: Path
    whole: tuple[str, ...]
    shortened: tuple[str, ...]


NoticeSink = Callable[[str], None]
"""Takes what a person should know before it is done."""


def open_database(path: Path, notice: NoticeSink) -> tuple[sqlite3.Connection, Repaired | None]:
    """Open or make the database, repaired if it has to be; `notice` takes what takes long. Raises `StoreError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        repaired = _repair(path) if find_trouble(path) else None
        try:
            return _connect(path, notice), repaired
        except sqlite3.Error as error:
            if repaired is not None or not is_broken(error):
                raise
        repaired = _repair(path)
        return _connect(path, notice), repaired
    except (sqlite3.Error, OSError) as error:
        raise unopened(path, error) from error


def find_trouble(path: Path) -> str:
    """Say what is wrong with a file, empty for nothing.

    Its header tells at once when it was cut. It is looked through only when it was not closed properly, or when
    reading it failed before. One that this process has open was judged when that was opened.
    """
    if not path.exists():
        return ""
    unclosed = _has_journal(path)
    with _LOOKING:
        if _is_open_here(path):
            unclosed, trouble = False, ""
        else:
            trouble = _judge_header(path, unclosed=unclosed)
    if trouble or not (unclosed or suspicion(path).exists()) or path.stat().st_size > _CHECKED_AT_MOST:
        return trouble
    trouble = _look_through(str(path))
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


def database_flaw(path: Path) -> str:
    """Say what is broken in a file, which stays as it is; empty for nothing.

    Raises `StoreError` where it cannot be read, or is of a newer Treadle: that is no damage.
    """
    place = f"{path.absolute().as_uri()}?{'immutable=1' if is_read_only(path) else 'mode=ro'}"
    try:
        if flaw := _look_through(place):
            return flaw
        with closing(sqlite3.connect(place, uri=True)) as connection:
            is_current(connection, path)
    except (sqlite3.Error, OSError) as error:
        raise unopened(path, error) from error
    return ""


def _look_through(place: str) -> str:
    try:
        with closing(sqlite3.connect(place, timeout=WAITS, uri=place.startswith("file:"))) as connection:
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
        keep_journal(connection)
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA cache_size=-{_CACHE}")
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


def keep_journal(connection: sqlite3.Connection, waits: float = WAITS) -> None:
    """Have a new database write a journal first; of several that open it at once SQLite lets none wait for it.

    Raises `sqlite3.OperationalError` where others have it locked for so many seconds, or where it cannot be used.
    """
    end = time.monotonic() + waits
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def is_read_only(path: Path) -> bool:
    """Whether a database can be read here and not written: then it is read as it is, without a journal beside it."""
    if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return False
    return not _has_journal(path)


def connected_database(path: Path) -> sqlite3.Connection:
    """Connect to a database; raises `sqlite3.Error`."""
    place, more = str(path), {}
    if is_read_only(path):
        place, more = f"{path.absolute().as_uri()}?immutable=1", {"uri": True}
    with _LOOKING:
        connection = sqlite3.connect(
            place, isolation_level=None, check_same_thread=False, timeout=WAITS, factory=_Connection, **more
        )
        status = path.stat()
        connection.file = (status.st_dev, status.st_ino)
        _OPEN.add(connection)
    return connection


class _Connection(sqlite3.Connection):
    """A connection that this process knows of as long as it is open.

    Whoever opens and closes the file beside it takes its locks away, since they belong to the process: another process
    that closes the file then takes it for nobody's, and removes the journal.
    """

    file: tuple[int, int] | None = None

    def close(self) -> None:
        """Close it."""
        super().close()
        with _LOOKING:
            _OPEN.discard(self)


_OPEN: WeakSet[_Connection] = WeakSet()
_LOOKING = Lock()
"""Held while the file is opened: by a connection, or to look at it before there is one."""


def _is_open_here(path: Path) -> bool:
    status = path.stat()
    return any(one.file == (status.st_dev, status.st_ino) for one in _OPEN)


def require_current(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreError` for a file of an older schema, which cannot be converted where it is."""
    if not is_current(connection, path):
        raise StoreError(
            "store-older",
            f"{path} is of an older Treadle, and cannot be converted: it cannot be written.",
            fix="Copy it into a folder of your own, and set TREADLE_HOME to that.",
        )


def no_notice(_: str) -> None:
    """Take what nobody has to know."""


def _has_journal(path: Path) -> bool:
    """Whether a journal that holds something is beside a file; whoever closes the file last takes it away."""
    try:
        return _side(path, "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


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
