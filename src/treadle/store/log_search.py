"""Search in all sessions: what was asked and answered, what was called, and what came of it.

The words are in an index beside the database, by each three characters that follow each other. Only searching brings it
up to date, so that it costs no session anything; it can be deleted at any time. Where it cannot be made, and for texts
of one or two characters, the logs themselves are read.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.protocol.codec import encodable
from treadle.protocol.errors import StoreError
from treadle.protocol.events import CallFinished, CallProposed, EditQueued, EventData, Prompt, ReplyFinished
from treadle.protocol.messages import Text, text_of, without_own_commands
from treadle.protocol.sealed import ResultMade, SideAnswered, SideAsked
from treadle.store.appending import tag_of
from treadle.store.archived_sessions import PACKED_COLUMNS, rows_in
from treadle.store.damage import event_data
from treadle.store.sqlite import Store

_SEARCHED = (Prompt, EditQueued, ReplyFinished, CallProposed, CallFinished, ResultMade, SideAsked, SideAnswered)
_TAGS = tuple(map(tag_of, _SEARCHED))
_AT_ONCE = 500
_FEW = 50
"""Rows that are fetched together of those that the index names: most of them fit."""

_GRAM = 3
_MOST_GRAMS = 40
"""Of a long text; what is found by them is compared with all of it."""

_BEFORE, _AFTER = 30, 90
"""Characters of a snippet around the beginning of what was found."""


class SearchHit(Struct, frozen=True, kw_only=True):
    """An event that fits: its session and number, and the text around the place, on one line."""

    session_id: str
    seq: int
    snippet: str


def search(store: Store, text: str, limit: int = 20, workspace: str | None = None) -> list[SearchHit]:
    """Find the newest events that have `text`, as it is written but for its case. Raises `StoreError`.

    `workspace` keeps to the sessions of one folder. Archived sessions are left out, see `search_archived`.
    """
    wanted = encodable(text).casefold()
    if not wanted.strip() or limit < 1:
        return []
    folder = encodable(workspace or "")
    if len(wanted) >= _GRAM:
        with suppress(sqlite3.Error, OSError):
            return _matching(_rows(store, _indexed(store, wanted), folder), limit, wanted)
    return _matching(_all_rows(store, folder), limit, wanted)


def search_archived(store: Store, text: str, limit: int, session_ids: Iterable[str]) -> list[SearchHit]:
    """Find the newest events that have `text` in archived sessions, each unpacked for that."""
    wanted = encodable(text).casefold()
    return _matching(_archived_rows(store, session_ids), limit, wanted) if wanted.strip() and limit > 0 else []


def _archived_rows(store: Store, session_ids: Iterable[str]) -> Iterator[Any]:
    places = [PACKED_COLUMNS.index(name) for name in ("seq", "version", "data", "type")]
    for session_id in session_ids:
        for (data,) in store.query("SELECT data FROM archived WHERE session_id = ?", (session_id,)):
            for row in reversed(rows_in(data)):
                seq, version, raw, tag = (row[place] for place in places)
                if tag in _TAGS:
                    yield session_id, seq, version, raw


def _matching(rows: Iterable[Any], limit: int, wanted: str) -> list[SearchHit]:
    """Give what of the rows has the text, up to a limit."""
    found: list[SearchHit] = []
    for session_id, seq, version, data in rows:
        words = _words_of(data, version)
        if wanted in words.casefold():
            found.append(SearchHit(session_id=session_id, seq=seq, snippet=snippet_of(words, wanted)))
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
        f"{_ROWS} events.id < ? AND type IN {_TAGS} ORDER BY events.id DESC LIMIT {_FEW}",
        (workspace, workspace, before),
    ):
        yield from (row[1:] for row in rows)
        before = rows[-1][0]


def _rows(store: Store, ids: Sequence[int], workspace: str) -> Iterator[Any]:
    """Read the events with these numbers of rows, the newest first."""
    for begin in range(0, len(ids), _FEW):
        some = ids[begin : begin + _FEW]
        places = ", ".join("?" * len(some))
        query = f"{_ROWS} events.id IN ({places}) ORDER BY events.id DESC"
        yield from (row[1:] for row in store.query(query, (workspace, workspace, *some)))


def _indexed(store: Store, wanted: str) -> list[int]:
    """Ask the index for the rows that fit, the newest first; a damaged one is made anew. Raises `sqlite3.Error`."""
    path = index_of(store.path)[0]
    try:
        return _ask(store, path, wanted)
    except sqlite3.OperationalError:  # busy, no space, no full-text search in this SQLite
        raise
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _ask(store, path, wanted)


def _ask(store: Store, path: Path, wanted: str) -> list[int]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as index:
        path.chmod(0o600)
        index.execute("PRAGMA synchronous=OFF")
        _bring_up_to_date(index, store)
        query = _query_of(wanted)
        rows = index.execute("SELECT rowid FROM grams WHERE grams MATCH ? ORDER BY rowid DESC", (query,)).fetchall()
        return [row_id for (row_id,) in rows]


def _bring_up_to_date(index: sqlite3.Connection, store: Store) -> None:
    """Add what was logged since; begin anew where the log is not the one that was indexed, such as a restored copy."""
    index.execute("BEGIN IMMEDIATE")
    index.execute("CREATE TABLE IF NOT EXISTS done (id INTEGER, chain BLOB)")
    done = index.execute("SELECT id, chain FROM done").fetchone()
    made = index.execute("SELECT 1 FROM sqlite_master WHERE name = 'grams'").fetchone()
    known = bool(made and done and store.query("SELECT 1 FROM events WHERE id = ? AND chain = ?", done))
    if not known:
        for table in ("words", "grams"):  # the first is that of an older version
            index.execute(f"DROP TABLE IF EXISTS {table}")
        index.execute(
            "CREATE VIRTUAL TABLE grams USING fts5 (text, content='', detail=none, tokenize='trigram case_sensitive 1')"
        )
    last = done[0] if known else 0
    while rows := store.query(
        f"SELECT id, chain, version, data FROM events WHERE id > ? AND type IN {_TAGS} "  # noqa: S608 - constants
        f"ORDER BY id LIMIT {_AT_ONCE}",
        (last,),
    ):
        words = [(row_id, _without_nul(_words_of(data, version).casefold())) for row_id, _, version, data in rows]
        index.executemany("INSERT INTO grams (rowid, text) VALUES (?, ?)", [one for one in words if one[1]])
        last, chain = rows[-1][:2]
        index.execute("DELETE FROM done")
        index.execute("INSERT INTO done VALUES (?, ?)", (last, chain))
    index.execute("COMMIT")


def _without_nul(text: str) -> str:
    """Put a space in the place of each NUL, at which the index would end a text."""
    return text.replace("\0", " ")


def _query_of(wanted: str) -> str:
    """Write what is searched for so that no sign of it is taken for the query language's own."""
    whole = _without_nul(wanted)
    grams = dict.fromkeys(whole[at : at + _GRAM] for at in range(len(whole) - _GRAM + 1))
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in list(grams)[:_MOST_GRAMS])


def index_of(database: Path) -> tuple[Path, Path]:
    """Name the file of the index, and its journal."""
    return database.with_name(f"{database.name}-words"), database.with_name(f"{database.name}-words-journal")


def _words_of(data: Any, version: Any) -> str:
    """Give the words of an event; none of one that is damaged."""
    try:
        return words_in(event_data(data, version))
    except StoreError:
        return ""


def words_in(data: EventData) -> str:
    """Give what people search for in an event: what they asked, what the model answered and called, and the result."""
    match data:
        case Prompt(content=content) | EditQueued(content=content):
            return "\n".join(block.text for block in without_own_commands(content) if isinstance(block, Text))
        case ReplyFinished(message=message):
            return text_of(message.content)
        case CallProposed(call=call):
            return "\n".join((call.name, *_texts_in(call.arguments)))
        case SideAsked(question=text, shown=True) | SideAnswered(text=text, shown=True):
            return text
        case CallFinished(result=result) | ResultMade(result=result):
            return "\n".join(block.text for block in result.content if isinstance(block, Text))
        case _:
            return ""


def _texts_in(value: Any) -> Iterator[str]:
    """Give the texts of arguments as they are, not as JSON writes them."""
    match value:
        case dict():
            for one in value.values():
                yield from _texts_in(one)
        case list() | tuple():
            for one in value:
                yield from _texts_in(one)
        case _:
            yield str(value)


def snippet_of(text: str, wanted: str) -> str:
    """Give the text around the first place of what was searched for (in small letters), on one line."""
    at = max(0, text.casefold().find(wanted))
    before, after = text[max(0, at - 4 * _BEFORE) : at], text[at : at + 4 * _AFTER]
    left, right = " ".join(before.split())[-_BEFORE:], " ".join(after.split())
    blank = " " if left and (before[-1:].isspace() or after[:1].isspace()) else ""
    cut = at > len(before) or len(" ".join(before.split())) > _BEFORE
    more = at + len(after) < len(text) or len(right) > _AFTER
    return f"{'…' if cut else ''}{left}{blank}{right[:_AFTER]}{'…' if more else ''}"
