"""A database that workers share: a file of SQLite on one computer, PostgreSQL for many. Every change is a transaction.

A connection that breaks is made again, and the transaction done again: each of ours may be done twice.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from treadle.door.reports import install_command
from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex

PATIENT = 60.0
"""Seconds for which a database that is gone is waited for."""

DATABASE_GONE = "fleet-database"
"""The code of the error that says so."""

_T = TypeVar("_T")
_BUSY = 30.0
_BETWEEN, _SELDOM = 0.25, 2.0
_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_PASSWORD = regex(r"(password\s*=\s*)('[^']*'|[^&\s]+)")

_TABLES = (
    """CREATE TABLE IF NOT EXISTS treadle_runs (
        run TEXT PRIMARY KEY, number BIGINT NOT NULL, options TEXT NOT NULL, state TEXT NOT NULL,
        total BIGINT NOT NULL DEFAULT 0, ended BIGINT NOT NULL DEFAULT 0, engine TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS treadle_tasks (
        run TEXT NOT NULL, id TEXT NOT NULL, number BIGINT NOT NULL, task TEXT NOT NULL, state TEXT NOT NULL,
        claim BIGINT NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '', process TEXT NOT NULL DEFAULT '',
        home TEXT NOT NULL DEFAULT '', step TEXT NOT NULL DEFAULT '', begun TEXT NOT NULL DEFAULT '',
        deaths BIGINT NOT NULL DEFAULT 0, again BIGINT NOT NULL DEFAULT 0, notes TEXT NOT NULL DEFAULT '',
        place BIGINT NOT NULL DEFAULT 0, result BLOB, PRIMARY KEY (run, id))""",
    "CREATE INDEX IF NOT EXISTS treadle_tasks_waiting ON treadle_tasks (run, number) WHERE state = 'waiting'",
    "CREATE INDEX IF NOT EXISTS treadle_tasks_held ON treadle_tasks (worker) WHERE state = 'held'",
    "CREATE INDEX IF NOT EXISTS treadle_tasks_ended ON treadle_tasks (run, place) WHERE place > 0",
    "CREATE TABLE IF NOT EXISTS treadle_workers (worker TEXT PRIMARY KEY, beats BIGINT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS treadle_money (
        run TEXT NOT NULL, session TEXT NOT NULL, home TEXT NOT NULL, purpose TEXT NOT NULL, cost BIGINT NOT NULL,
        PRIMARY KEY (run, session, home, purpose))""",
)

_LAST_TABLE = "treadle_money"


class Transaction:
    """One transaction: statements have `?` for values on either database."""

    def __init__(self, cursor: Any, *, is_postgres: bool) -> None:
        self._cursor = cursor
        self.is_postgres = is_postgres

    def all(self, statement: str, *values: object) -> list[Any]:
        """Run a statement, and give its rows; empty where it has none."""
        self._run(statement, values)
        return list(self._cursor.fetchall()) if self._cursor.description is not None else []

    def one(self, statement: str, *values: object) -> Any:
        """Run a statement, and give its first row, or None."""
        return next(iter(self.all(statement, *values)), None)

    def change(self, statement: str, *values: object) -> int:
        """Run a statement, and give how many rows it changed."""
        self._run(statement, values)
        return int(self._cursor.rowcount)

    def many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Run a statement for each of some rows."""
        self._cursor.executemany(statement.replace("?", "%s") if self.is_postgres else statement, rows)

    def _run(self, statement: str, values: Sequence[object]) -> None:
        self._cursor.execute(statement.replace("?", "%s") if self.is_postgres else statement, values)


class FleetDatabase:
    """The connection of one process. `transactions` counts them.

    A process that forks keeps no file of SQLite open: a fork would take locks for its own that only its parent has. It
    says so by `forks`. A database that is gone is waited for until `over` is true, however long that takes.

    Raises `ConfigError` where the address is of another kind, what it needs is not installed, or nobody answers.
    """

    def __init__(self, url: str, *, forks: bool = False) -> None:
        self.url = url
        self.is_postgres = url.startswith(_POSTGRES)
        self.transactions = 0
        self.over: Callable[[], bool] = lambda: True
        self._stays = self.is_postgres or not forks
        self._lock = RLock()
        self._connection: Any = None
        self._errors: tuple[type[Exception], ...]
        refused: type[Exception]
        if not self.is_postgres and not url.startswith(_SQLITE):
            raise _unusable(url, "It begins with sqlite:/// and the path of a file, or with postgresql://.")
        self._errors, refused = _errors(url) if self.is_postgres else ((sqlite3.OperationalError,), sqlite3.Error)
        try:
            self._connect()
            self._make_tables()
            if not self._stays:
                self.close()
        except (refused, OSError) as error:
            self.close()
            raise _unusable(url, str(error).strip()) from error

    def _connect(self) -> None:
        if self.is_postgres:
            import psycopg

            self._connection = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
            return
        path = Path(self.url.removeprefix(_SQLITE))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self._keep_journal()
        self._connection.execute("PRAGMA synchronous=NORMAL")

    def _keep_journal(self) -> None:
        """Have a journal that readers need not wait for; SQLite waits by itself for nobody who has the file then."""
        end = time.monotonic() + _BUSY
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(_BETWEEN / 10)
            else:
                return

    def _make_tables(self) -> None:
        there = "SELECT to_regclass(?)" if self.is_postgres else "SELECT MAX(name) FROM sqlite_master WHERE name = ?"

        def make(transaction: Transaction) -> None:
            if transaction.one(there, _LAST_TABLE)[0]:
                return
            if transaction.is_postgres:  # two that make the same table at once would fail
                transaction.all("SELECT pg_advisory_xact_lock(7310)")
            for table in _TABLES:
                transaction.all(table.replace(" BLOB", " BYTEA") if transaction.is_postgres else table)

        self._once(make)

    def transact(self, work: Callable[[Transaction], _T]) -> _T:
        """Do some work in one transaction; it is done again where the connection breaks. Raises `ConfigError`."""
        end, told = time.monotonic() + PATIENT, False
        while True:
            try:
                with self._lock:
                    if self._connection is None:
                        self._connect()
                    result = self._once(work)
                    if not self._stays:
                        self.close()
                    return result
            except self._errors as error:
                self.close()
                if time.monotonic() > end:
                    gone = _unusable(self.url, str(error).strip())
                    if self.over():
                        raise gone from error
                    if not told:
                        sys.stderr.write(f"{gone.what} {gone.why} It is waited for.\n")
                    told = True
                time.sleep(_BETWEEN)

    def _once(self, work: Callable[[Transaction], _T]) -> _T:
        with self._lock:
            cursor = self._connection.cursor()
            cursor.execute("BEGIN" if self.is_postgres else "BEGIN IMMEDIATE")
            try:
                result = work(Transaction(cursor, is_postgres=self.is_postgres))
                cursor.execute("COMMIT")
            except BaseException:
                if self.is_postgres or self._connection.in_transaction:
                    self._roll_back(cursor)
                raise
            self.transactions += 1
            return result

    def _roll_back(self, cursor: Any) -> None:
        try:
            cursor.execute("ROLLBACK")
        except self._errors:
            self.close()

    def close(self) -> None:
        """Close the connection; the next transaction makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def waiting_database(url: str) -> FleetDatabase:
    """Connect to a database that was there before, and wait for it as long as it is gone. Raises `ConfigError`."""
    end = time.monotonic() + PATIENT
    while True:
        try:
            database = FleetDatabase(url)
        except ConfigError as error:
            if error.code != DATABASE_GONE:
                raise
            time.sleep(_BETWEEN if time.monotonic() < end else _SELDOM)
        else:
            database.over = lambda: False
            return database


def _errors(url: str) -> tuple[tuple[type[Exception], ...], type[Exception]]:
    """Give what a connection that breaks raises, and what all that psycopg raises is."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            "fleet-missing",
            "What talks to PostgreSQL is not installed.",
            why=f"{shown_url(url)} needs the extra `fleet` of Treadle, and libpq: {error}.",
            fix=f"{install_command('fleet')}, or give --database {_SQLITE}PATH on one computer.",
        ) from error
    return (psycopg.OperationalError, psycopg.InterfaceError), psycopg.Error


def shown_url(url: str) -> str:
    """Give an address without the password in it."""
    url = _PASSWORD.sub(r"\1***", url)
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, sign, who = head.partition("://")
    return f"{scheme}{sign}{who.partition(':')[0]}@{tail}"


def _without_password(text: str, url: str) -> str:
    """Take the password of an address out of what a program says of it."""
    named = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
    for secret in (named, *(found[1] for found in _PASSWORD.findall(url))):
        if secret:
            text = text.replace(secret, "***")
    return text


def _unusable(url: str, why: str) -> ConfigError:
    return ConfigError(
        DATABASE_GONE,
        f"The database {shown_url(url)} cannot be used.",
        why=_without_password(why, url),
        fix="Give --database sqlite:///PATH, or --database postgresql://USER@HOST/NAME of a server that runs.",
    )
