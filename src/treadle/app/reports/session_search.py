"""Where in past sessions something was asked or answered."""

from pathlib import Path

from treadle.app.compose import open_store
from treadle.protocol.base import Record
from treadle.store.search import search
from treadle.store.sqlite import SessionRow


class FoundPlace(Record, frozen=True, kw_only=True):
    """A place in a session that fits a search: the number of its event, and the text around it on one line."""

    session: str
    title: str
    workspace: str
    updated_at: int
    event: int
    snippet: str


def found_places(text: str, workspace: Path | None, limit: int) -> list[FoundPlace]:
    """Search in what was asked and answered, the newest first; in the sessions of one workspace if given."""
    store = open_store()
    try:
        rows = {row.id: row for row in store.sessions()}
        found = search(store, text, limit, None if workspace is None else str(workspace))
        return [_place(rows[one.session_id], one.seq, one.snippet) for one in found if one.session_id in rows]
    finally:
        store.close()


def _place(row: SessionRow, event: int, snippet: str) -> FoundPlace:
    return FoundPlace(
        session=row.id,
        title=row.title,
        workspace=row.workspace,
        updated_at=row.updated_at,
        event=event,
        snippet=snippet,
    )
