"""What stands around every screen: the column of all sessions, and the bar of the one that is shown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.opening import branch_of, session_log
from treadle.door.past import SessionState, count_subagents
from treadle.door.review import own_files
from treadle.protocol.errors import TreadleError
from treadle.protocol.models import money
from treadle.web.book import SessionBook
from treadle.web.column_foot import batch_reached, today_words
from treadle.web.session_rows import ListFilter, PageRow, page_rows, project_name
from treadle.web.status import ASKED

LOOK_COOKIE = "treadle-look"
"""What a browser keeps of how the page looks: words of `_LOOKS`, with dots between."""

_LOOKS = {
    "light": "light",
    "dark": "dark",
    "folded": "folded-column",
    "enter": "enter-breaks",
    "projects": "by-project",
}

_PINNED, _DONE = "Pinned", "Done"
_SHOWN = 20
"""Sessions that are done that stand in the column; the others are in the list."""

_GROUPS = (
    ("Needs you", (SessionState.WAITING.value,)),
    ("Working", (SessionState.WORKING.value,)),
    (_DONE, (SessionState.DONE.value, SessionState.STOPPED.value)),
)


_ACTIVE = (SessionState.WAITING.value, SessionState.WORKING.value)


class PageColumn(Struct, frozen=True, kw_only=True):
    """The column: groups with their name, the rows shown of them, and how many there are; empty ones are left out.

    `current` is the session that is shown, `row` what its bar says, `waiting` how many questions there are, also those
    of sessions whose program ended, `today` what was spent, empty where that is not known, `batch` how far the batch is
    that works now. `unread`: the logs could not be listed. `gone`: there is no such session any more. `listed`: which
    list it is.
    """

    groups: Sequence[tuple[str, Sequence[PageRow], int]] = ()
    current: str = ""
    row: PageRow | None = None
    waiting: int = 0
    today: str = ""
    batch: str = ""
    unread: bool = False
    gone: bool = False
    listed: int = 0


def whole_column(book: SessionBook, session_id: str = "", *, look: str = "") -> PageColumn:
    """Make the column of a whole page, with what stands below its sessions."""
    column = page_column(book, session_id, look=look)
    return replace(column, today=today_words(), batch=batch_reached())


def page_column(book: SessionBook, session_id: str = "", *, look: str = "") -> PageColumn:
    """Make the sessions of the column, beside one if it is shown. Reads logs, so it is to be done in a thread.

    They are grouped as the browser's `look` wants it, of which these are the classes.
    """
    waiting = sum(len(page.questions) for page in tuple(book.opened.values()))
    listed = book.listed  # what changes meanwhile is read again
    try:
        rows = page_rows(book, ListFilter(all=True)).lines
    except (TreadleError, OSError):
        return PageColumn(current=session_id, row=_unread(session_id), waiting=waiting, unread=True, listed=listed)
    branches: dict[str, str] = {}

    def with_branch(row: PageRow) -> PageRow:
        if row.workspace and row.workspace not in branches:
            branches[row.workspace] = branch_of(Path(row.workspace))
        return replace(row, branch=branches.get(row.workspace, ""))

    groups = _by_project(rows) if "by-project" in look.split() else _by_state(rows)
    return PageColumn(
        groups=[(name, list(map(with_branch, group)), count) for name, group, count in groups],
        current=session_id,
        row=_with_counts(with_branch(session_row(book, session_id, rows))) if session_id else None,
        waiting=waiting + sum(row.sign == ASKED for row in rows),
        gone=bool(session_id) and session_id not in {row.id for row in rows} and book.is_deleted(session_id),
        listed=listed,
    )


def _by_state(rows: Sequence[PageRow]) -> list[tuple[str, Sequence[PageRow], int]]:
    found = [(name, [row for row in rows if row.state in states]) for name, states in _GROUPS]
    found[-1:] = [
        (_PINNED, [row for row in found[-1][1] if row.pinned]),
        (_DONE, [row for row in found[-1][1] if not row.pinned]),
    ]
    return [(name, group[:_SHOWN] if name == _DONE else group, len(group)) for name, group in found if group]


def _by_project(rows: Sequence[PageRow]) -> list[tuple[str, Sequence[PageRow], int]]:
    """Group by folder, the one that was worked in last first; what needs somebody, works or is pinned stays on top."""
    found: dict[str, list[PageRow]] = {}
    for row in rows:
        found.setdefault(row.workspace, []).append(row)
    names = Counter(map(project_name, found))
    groups: list[tuple[str, Sequence[PageRow], int]] = []
    for folder, group in found.items():
        name = project_name(folder) if names[project_name(folder)] == 1 else folder
        group.sort(key=lambda row: not (row.state in _ACTIVE or row.pinned))
        groups.append((name, group[:_SHOWN], len(group)))
    return groups


def _with_counts(row: PageRow) -> PageRow:
    """Add what the views of a session count: the files that it changed, and its subagents."""
    with suppress(TreadleError, OSError), session_log(row.id) as (_, store):
        files = row.files if row.open else own_files(store, row.id)
        return replace(row, files=files, subagents=count_subagents(store, row.id))
    return row


def session_row(book: SessionBook, session_id: str, rows: Sequence[PageRow] | None = None) -> PageRow:
    """Find what is listed of a session, archived or not, among the `rows` where they are known already."""
    if rows is None:
        rows = page_rows(book, ListFilter(all=True)).lines
    found = next((row for row in rows if row.id == session_id), None)
    for others in (ListFilter(all=True, archived=True), ListFilter(all=True, subagents=True)):
        if found is None:
            with suppress(TreadleError, OSError):
                found = next((row for row in page_rows(book, others).lines if row.id == session_id), None)
    return found or _unknown(session_id)


def _unread(session_id: str) -> PageRow:
    """Stand in for a session where the sessions cannot be listed."""
    return replace(_unknown(session_id), sign="unknown", words="Unknown", cost=money(None))


def _unknown(session_id: str) -> PageRow:
    """Stand in for a session of which nothing is listed, as one that has only been opened."""
    return PageRow(
        id=session_id,
        title=session_id,
        state=SessionState.DONE.value,
        sign="done",
        words="Done",
        cost="$0.00",
        mode="-",
        added=0,
        removed=0,
        workspace="",
        model="",
        updated_at=0,
    )


def page_look(cookies: Mapping[str, str]) -> str:
    """Give the classes of the page for what a browser keeps of its look; words that are not known are left out."""
    words = cookies.get(LOOK_COOKIE, "").split(".")
    return " ".join(_LOOKS[word] for word in words if word in _LOOKS)
