"""The tables, by numbered steps; `PRAGMA user_version` says which were taken."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from treadle.protocol.errors import StoreError
from treadle.store.chain import Row, beginning, link
from treadle.store.titles import give_titles

Work = str | Callable[[sqlite3.Connection], None]
"""A statement, or what SQL cannot say."""


def _chain_rows(connection: sqlite3.Connection) -> None:
    """Chain the rows that were written before there was a chain."""
    session, previous = "", b""
    chains = []
    for session_id, seq, at, source, data in connection.execute(
        "SELECT session_id, seq, at, source, data FROM events ORDER BY session_id, seq"
    ):
        if session_id != session:
            session, previous = session_id, beginning(session_id)
        previous = link(previous, Row(seq, at, source, data))
        chains.append((previous, session_id, seq))
    connection.executemany("UPDATE events SET chain = ? WHERE session_id = ? AND seq = ?", chains)


STEPS: tuple[tuple[Work, ...], ...] = (
    (
        """
        CREATE TABLE sessions (
            id TEXT PRIMARY KEY,
            workspace TEXT NOT NULL,
            model TEXT NOT NULL,
            title TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            last_seq INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX sessions_by_use ON sessions (workspace, updated_at)",
        """
        CREATE TABLE events (
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            seq INTEGER NOT NULL,
            at INTEGER NOT NULL,
            source BLOB NOT NULL,
            version INTEGER NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (session_id, seq)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE leases (
            session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
            owner TEXT NOT NULL,
            beat REAL NOT NULL
        ) STRICT
        """,
    ),
    (
        """
        CREATE TABLE edits (
            model TEXT NOT NULL,
            format TEXT NOT NULL,
            code TEXT NOT NULL,
            repair INTEGER NOT NULL,
            count INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (model, format, code, repair)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    ("ALTER TABLE events ADD COLUMN chain BLOB NOT NULL DEFAULT x''", _chain_rows),
    (
        """
        CREATE TABLE spending (
            session_id TEXT NOT NULL,
            day TEXT NOT NULL,
            cost REAL NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (day, session_id)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE reservations (
            session_id TEXT PRIMARY KEY,
            day TEXT NOT NULL,
            cost REAL NOT NULL,
            tokens INTEGER NOT NULL
        ) STRICT
        """,
    ),
    (
        """
        CREATE TABLE summaries (
            session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
            seq INTEGER NOT NULL,
            data BLOB NOT NULL
        ) STRICT
        """,
        give_titles,
    ),
    (
        """
        CREATE TABLE edits_by_day (
            model TEXT NOT NULL,
            format TEXT NOT NULL,
            code TEXT NOT NULL,
            repair INTEGER NOT NULL,
            day TEXT NOT NULL,
            count INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (model, format, code, repair, day)
        ) STRICT, WITHOUT ROWID
        """,
        # What was counted until now is of no known day; as of today it is forgotten in time.
        "INSERT INTO edits_by_day SELECT model, format, code, repair, date('now'), count, tokens FROM edits",
        "DROP TABLE edits",
        "ALTER TABLE edits_by_day RENAME TO edits",
    ),
)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the present schema; raises `StoreError` for one from a newer Treadle."""
    if _version(connection, path) == len(STEPS):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for step in STEPS[_version(connection, path) :]:
            for work in step:
                if isinstance(work, str):
                    connection.execute(work)
                else:
                    work(connection)
        connection.execute(f"PRAGMA user_version={len(STEPS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(STEPS):
        raise StoreError(
            "store-newer",
            f"{path} was written by a newer Treadle (schema {version}, this one knows {len(STEPS)}).",
            fix="Update Treadle, or set TREADLE_HOME to another folder.",
        )
    return version
