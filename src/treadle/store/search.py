"""Search in the words of all sessions: what was asked, and what the model answered.

The words are in an index beside the database. Only searching brings it up to date, so that it costs no session
anything; it can be deleted at any time. Where it cannot be made, the logs themselves are read.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.protocol.codec import encodable
from treadle.protocol.errors import StoreError
from treadle.protocol.events import EditQueued, EventData, Prompt, ReplyFinished
from treadle.protocol.messages import Text, text_of, without_own_commands
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

_TAGS = (tag_of(Prompt), tag_of(EditQueued), tag_of(ReplyFinished))
_AT_ONCE = 500
_BEFORE, _AFTER = 30, 90
"""Characters of a snippet around the beginning of what was found."""


class SearchHit(Struct, frozen=True, kw_only=True):
    """An event that fits: its session and number, and the text around the place, on one line."""

    session_id: str
    seq: int
    snippet: str


def search(store: Store, text: str, limit: int = 20, workspace: str | None = None) -> list[SearchHit]:
    """Find the newest events in which every word of `text` begins a word; if there are none, in which it is anywhere.

    Case does not matter. `workspace` keeps to the sessions of one folder. Raises `StoreError`.
    """
    wanted = encodable(text).split()
    if not wanted or limit < 1:
        return []
    folder = encodable(workspace or "")
    ids: Sequence[int] = ()
    with suppress(sqlite3.Error, OSError):
        ids = _indexed(store, wanted)
    found = _matching(_rows(store, ids, folder), (), limit, wanted)
    return found or _matching(_all_rows(store, folder), wanted, limit, wanted)


def _matching(rows: Iterable[Any], needed: Sequence[str], limit: int, wanted: Sequence[str]) -> list[SearchHit]:
    """Give what of the rows has all needed parts, up to a limit."""
    parts = [one.casefold() for one in needed]
    found: list[SearchHit] = []
    for session_id, seq, version, data in rows:
        words = _words_of(data, version)
        folded = words.casefold()
        if words and all(part in folded for part in parts):
            found.append(SearchHit(session_id=session_id, seq=seq, snippet=_snippet(words, wanted)))
            if len(found) == limit:
                break
    return found


_ROWS = (
    "SELECT events.id, session_id, seq, version, data FROM events JOIN sessions ON sessions.id = session_id "
    "WHERE (? = '' OR workspace = ?) AND "
)


def _all_rows(store: Store, workspace: str) -> Iterator[Any]:
    """Read the events that have words, the newest first."""
    before = 2**63 - 1
    while rows := store.query(
        f"{_ROWS} events.id < ? AND type IN {_TAGS} ORDER BY events.id DESC LIMIT {_AT_ONCE}",
        (workspace, workspace, before),
    ):
        yield from (row[1:] for row in rows)
        before = rows[-1][0]


def _rows(store: Store, ids: Sequence[int], workspace: str) -> Iterator[Any]:
    """Read the events with these numbers of rows, the newest first."""
    for begin in range(0, len(ids), _AT_ONCE):
        some = ids[begin : begin + _AT_ONCE]
        places = ", ".join("?" * len(some))
        query = f"{_ROWS} events.id IN ({places}) ORDER BY events.id DESC"
        yield from (row[1:] for row in store.query(query, (workspace, workspace, *some)))


def _indexed(store: Store, wanted: Sequence[str]) -> list[int]:
    """Ask the index for the rows that fit, the newest first; a damaged one is made anew. Raises `sqlite3.Error`."""
    path = store.path.with_name(f"{store.path.name}-words")
    try:
        return _ask(store, path, wanted)
    except sqlite3.OperationalError:  # busy, no space, no full-text search in this SQLite
        raise
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _ask(store, path, wanted)


def _ask(store: Store, path: Path, wanted: Sequence[str]) -> list[int]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as index:
        path.chmod(0o600)
        index.execute("PRAGMA synchronous=OFF")
        _bring_up_to_date(index, store)
        query = _query_of(wanted)
        rows = index.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", (query,)).fetchall()
        return [row_id for (row_id,) in rows]


def _bring_up_to_date(index: sqlite3.Connection, store: Store) -> None:
    """Add what was logged since; begin anew where the log is not the one that was indexed, such as a restored copy."""
    index.execute("BEGIN IMMEDIATE")
    index.execute("CREATE TABLE IF NOT EXISTS done (id INTEGER, chain BLOB)")
    done = index.execute("SELECT id, chain FROM done").fetchone()
    known = done is not None and bool(store.query("SELECT 1 FROM events WHERE id = ? AND chain = ?", done))
    if not known:
        index.execute("DROP TABLE IF EXISTS words")
        index.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61')")
    last = done[0] if known else 0
    while rows := store.query(
        f"SELECT id, chain, version, data FROM events WHERE id > ? AND type IN {_TAGS} "  # noqa: S608 - constants
        f"ORDER BY id LIMIT {_AT_ONCE}",
        (last,),
    ):
        words = [(row_id, _words_of(data, version)) for row_id, _, version, data in rows]
        index.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", [one for one in words if one[1]])
        last, chain = rows[-1][:2]
        index.execute("DELETE FROM done")
        index.execute("INSERT INTO done VALUES (?, ?)", (last, chain))
    index.execute("COMMIT")


def _query_of(wanted: Sequence[str]) -> str:
    """Write what is searched for so that no sign of it is taken for the query language's own."""
    return " ".join('"' + word.replace('"', '""').replace("\0", " ") + '"*' for word in wanted)


def _words_of(data: Any, version: Any) -> str:
    """Give the words of an event; none of one that is damaged."""
    try:
        return words_in(event_data(data, version))
    except StoreError:
        return ""


def words_in(data: EventData) -> str:
    """Give what people search for in an event: what they asked, and what the model answered."""
    match data:
        case Prompt(content=content) | EditQueued(content=content):
            return "\n".join(block.text for block in without_own_commands(content) if isinstance(block, Text))
        case ReplyFinished(message=message):
            return text_of(message.content)
        case _:
            return ""


def _snippet(text: str, wanted: Sequence[str]) -> str:
    """Give the text around the first word that was searched for, on one line."""
    line = " ".join(text.split())
    places = [place.start() for one in wanted if (place := re.search(re.escape(one), line, re.IGNORECASE))]
    at = min(places, default=0)
    begin, end = max(0, at - _BEFORE), at + _AFTER
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
