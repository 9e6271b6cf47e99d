"""The tables, by numbered steps; `PRAGMA user_version` says which were taken."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from treadle.protocol.errors import StoreError
from treadle.store.chain import LogRow, beginning, link
from treadle.store.damage import SCHEMA, is_current, version_of
from treadle.store.leases import process_of, works_now
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
        previous = link(previous, LogRow(seq, at, source, data))
        chains.append((previous, session_id, seq))
    connection.executemany("UPDATE events SET chain = ? WHERE session_id = ? AND seq = ?", chains)


class _Tag(msgspec.Struct):
    type: str = ""


_tags = msgspec.json.Decoder(_Tag)


def type_of(data: object) -> str:
    """Give the type of an event from its encoded data; empty where that is damaged."""
    try:
        return _tags.decode(data).type if isinstance(data, bytes) else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _with_types(connection: sqlite3.Connection) -> None:
    """Copy the events into a table with a rowid, which keeps long rows in half the space, and name their types.

    What a damaged file holds twice, or in the wrong kind of column, is left out: a gap is recognised when it is read.
    """
    connection.create_function("type_of", 1, type_of, deterministic=True)
    connection.execute(
        "INSERT OR IGNORE INTO typed_events (session_id, seq, at, type, version, source, chain, data) "
        "SELECT session_id, seq, at, type_of(data), version, source, chain, data FROM events "
        "WHERE typeof(session_id) = 'text' AND typeof(seq) = 'integer' AND typeof(at) = 'integer' "
        "AND typeof(version) = 'integer' AND typeof(source) = 'blob' AND typeof(chain) = 'blob' "
        "AND typeof(data) = 'blob' ORDER BY session_id, seq"
    )


_OF_PROFILE = "instr(model, '@') BETWEEN 1 AND instr(model, '/')"
"""Rows of a model whose name has the profile of its key."""

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
    (
        # `id` is named, so that nothing numbers the rows anew: the search index refers to it.
        # The data comes last: what is before it is read without the pages that a long row goes on in.
        """
        CREATE TABLE typed_events (
            id INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            seq INTEGER NOT NULL,
            at INTEGER NOT NULL,
            type TEXT NOT NULL,
            version INTEGER NOT NULL,
            source BLOB NOT NULL,
            chain BLOB NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (session_id, seq)
        ) STRICT
        """,
        _with_types,
        "DROP TABLE events",
        "ALTER TABLE typed_events RENAME TO events",
        # It was written at each append; a list of sessions is sorted in no time.
        "DROP INDEX sessions_by_use",
        # No types: what is damaged has to fit.
        "CREATE TABLE set_aside (session_id, seq, at, type, version, source, chain, data)",
    ),
    (
        # What the user calls a session; its title stays what its first prompt made it.
        "ALTER TABLE sessions ADD COLUMN name TEXT NOT NULL DEFAULT ''",
        """
        CREATE TABLE archived (
            session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
            at INTEGER NOT NULL,
            data BLOB NOT NULL
        ) STRICT
        """,
    ),
    (
        # Whether a part of a sum is an estimate; and a call beside the work has a reservation of its own.
        "ALTER TABLE spending ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0",
        """
        CREATE TABLE reservations_by_purpose (
            session_id TEXT NOT NULL,
            purpose TEXT NOT NULL,
            day TEXT NOT NULL,
            cost REAL NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (session_id, purpose)
        ) STRICT, WITHOUT ROWID
        """,
        # Of processes that were killed: none works in this file while it is converted.
        """
        INSERT INTO reservations_by_purpose SELECT session_id, 'step', day, cost, tokens FROM reservations
        JOIN leases USING (session_id)
        """,
        "DROP TABLE reservations",
        "ALTER TABLE reservations_by_purpose RENAME TO reservations",
    ),
    (
        # Whose subagent a session is: that of its parent, and in the end of the root's; empty for a person's own.
        "ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN root TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX sessions_by_root ON sessions (root) WHERE root <> ''",
        "CREATE INDEX spending_by_session ON spending (session_id)",
        """
        CREATE TABLE readings (
            model TEXT NOT NULL,
            code TEXT NOT NULL,
            day TEXT NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (model, code, day)
        ) STRICT, WITHOUT ROWID
        """,
        # A model writes edits in one way, whichever key it is called with: `p@work/m` is `p/m`.
        f"""
        INSERT INTO edits
        SELECT substr(model, 1, instr(model, '@') - 1) || substr(model, instr(model, '/')), format, code, repair, day,
            count, tokens
        FROM edits WHERE {_OF_PROFILE} ORDER BY 1
        ON CONFLICT DO UPDATE SET count = count + excluded.count, tokens = tokens + excluded.tokens
        """,  # noqa: S608 - a constant
        f"DELETE FROM edits WHERE {_OF_PROFILE}",  # noqa: S608 - a constant
    ),
)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to the present schema, all at once or not at all.

    Raises `StoreError` for a file from a newer Treadle, and while an older one works in it.
    """
    if is_current(connection, path):
        return
    fresh = version_of(connection) == 0
    connection.execute("PRAGMA foreign_keys=OFF")  # rows that lost their session are carried over too
    connection.execute("BEGIN EXCLUSIVE")
    try:
        if not is_current(connection, path):  # another may have been faster
            _refuse_at_work(connection, path)
        for step in STEPS[version_of(connection) :]:
            for work in step:
                if isinstance(work, str):
                    connection.execute(work)
                else:
                    work(connection)
        connection.execute(f"PRAGMA user_version={SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("PRAGMA foreign_keys=ON")
    if not fresh:
        with suppress(sqlite3.Error):  # only to give back the space of the old tables
            connection.execute("VACUUM")


def _refuse_at_work(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse while another process works in a session: it would write what the new tables do not take."""
    if version_of(connection) == 0:
        return
    for session_id, owner, beat in connection.execute("SELECT session_id, owner, beat FROM leases"):
        if works_now(owner, beat):
            raise StoreError(
                "store-in-use",
                f"{path} has to be converted, but another Treadle is using it.",
                why=f"An older Treadle works in session {session_id} ({process_of(owner)}).",
                fix="Quit it, then start again.",
            )
