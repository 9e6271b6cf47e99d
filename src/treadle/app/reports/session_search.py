"""Where in past sessions something was asked, answered, called, or came of a call."""

from pathlib import Path

from treadle.app.compose import open_store
from treadle.protocol.base import Record
from treadle.store.log_search import search, search_archived, snippet_of
from treadle.store.sqlite import SessionRow


class FoundPlace(Record, frozen=True, kw_only=True):
    """A place in a session that fits a search: the number of its event, and the text around it on one line.

    Event 0 is the session's title.
    """

    session: str
    title: str
    workspace: str
    updated_at: int
    event: int
    snippet: str
    archived: bool = False


def found_places(text: str, workspace: Path | None, limit: int, *, archived: bool = False) -> list[FoundPlace]:
    """Search for a text as it is written but for its case, the newest first; in the sessions of one workspace if given.

    Of archived sessions only the titles are searched, unless these are the ones that are wanted.
    """
    store = open_store()
    try:
        folder = None if workspace is None else str(workspace)
        rows = {row.id: row for row in store.sessions(folder, subagents=True)}
        wanted = text.casefold()
        titled = [
            _place(row, 0, snippet_of(row.title, wanted))
            for row in rows.values()
            if row.title and (row.archived or not archived) and wanted.strip() and wanted in row.title.casefold()
        ]
        if archived:
            found = search_archived(store, text, limit, [row.id for row in rows.values() if row.archived])
        else:
            found = search(store, text, limit, folder)
        places = [_place(rows[one.session_id], one.seq, one.snippet) for one in found if one.session_id in rows]
        in_places = {place.session for place in places}
        return [*places, *(place for place in titled if place.session not in in_places)][:limit]
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
        archived=row.archived,
    )
