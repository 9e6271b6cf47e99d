"""What the row of a session says of its log: its title and its model.

The title is the beginning of the first prompt: a session without one has had no prompt, and is empty. The model is the
one that was chosen last.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import Event, EventData, Prompt, SessionStarted, SetMode, SetModel
from treadle.protocol.messages import Text, UserContent, without_own_commands
from treadle.protocol.models import ModelChoice
from treadle.protocol.patterns import regex
from treadle.store.damage import event_data

if TYPE_CHECKING:
    from treadle.store.sqlite import SessionRow

_ID = regex(r"\d{8}-\d{6}-[0-9a-f]{6}")
_LONGEST = 80
_UNTITLED = "(no text)"
_NAMED = 5
"""How many sessions an error names."""


def title_of(content: Sequence[UserContent]) -> str:
    """Give the title that a prompt makes: one line, never empty."""
    text = next((block.text for block in without_own_commands(content) if isinstance(block, Text)), "")
    line = " ".join(text[: 16 * _LONGEST].split())
    if len(line) > _LONGEST:
        kept = line[: _LONGEST - 1]
        line = f"{kept.rpartition(' ')[0] or kept}…"
    return line.encode(errors="replace").decode() or _UNTITLED


def first_title(events: Iterable[EventData]) -> str:
    """Give the title of a session by what was logged of it, empty when there was no prompt."""
    return next((title_of(data.content) for data in events if isinstance(data, Prompt)), "")


def last_model(events: Iterable[EventData]) -> str:
    """Give the model, `provider/name`, that these events chose last, empty where none did."""
    model = ""
    for data in events:
        match data:
            case SessionStarted(choice=choice) | SetModel(choice=choice) | SetMode(choice=ModelChoice() as choice):
                model = choice.model
            case _:
                pass
    return model


def keep_row(connection: sqlite3.Connection, session_id: str, events: Sequence[Event]) -> None:
    """Bring the row of a session up to date with new events; a title that it has stays."""
    if title := first_title(event.data for event in events):
        connection.execute("UPDATE sessions SET title = ? WHERE id = ? AND title = ''", (title, session_id))
    if model := last_model(event.data for event in events):
        connection.execute("UPDATE sessions SET model = ? WHERE id = ?", (model, session_id))


def give_titles(connection: sqlite3.Connection) -> None:
    """Name the sessions of a file that was written before titles came from the log."""
    for (session_id,) in connection.execute("SELECT id FROM sessions WHERE title = ''").fetchall():
        rows = connection.execute("SELECT data, version FROM events WHERE session_id = ? ORDER BY seq", (session_id,))
        try:
            title = first_title(event_data(data, version) for data, version in rows)
        except StoreError:
            title = _UNTITLED
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session_id))


def session_named(name: str, rows: Sequence["SessionRow"]) -> "SessionRow":
    """Give the one session that is meant by an id, a title, or the beginning of either; raises `SessionError`.

    An id goes before a title, a whole one before the beginning of one. Case is of no account in a title. A subagent is
    meant by its id only.
    """
    title = name.casefold()
    own = [row for row in rows if not row.root]
    candidates = (
        [row for row in rows if row.id == name],
        [row for row in rows if row.id.startswith(name)],
        [row for row in own if row.title.casefold() == title],
        [row for row in own if row.title.casefold().startswith(title)],
    )
    for found in candidates if name else ():  # no name is no session's, also where there is one alone
        if len(found) == 1:
            return found[0]
        if found:
            raise _several(name, found)
    raise SessionError(
        "session-unknown",
        f"There is no session {name!r}.",
        why="It was deleted, or is not of this computer."
        if _ID.fullmatch(name)
        else "No session has an id or a title that begins with that.",
        fix="`treadle sessions --all` lists the sessions with their ids.",
    )


def _several(name: str, rows: Sequence["SessionRow"]) -> SessionError:
    shown = [f"{row.id} ({row.title})" if row.title else row.id for row in rows[:_NAMED]]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return SessionError(
        "session-unknown",
        f"{name!r} may mean any of {len(rows)} sessions.",
        why=f"These begin with it: {', '.join(shown)}{more}.",
        fix="Write more of the id or of the title.",
    )
