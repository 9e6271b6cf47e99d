"""The sessions as the page lists them: as their logs say, and those that are open as they are now."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.history import writers_folder
from treadle.door.past import ListedSession, SessionState, found_places, listed_sessions, pinned_sessions
from treadle.present.goal_words import goal_label
from treadle.web.book import SessionBook
from treadle.web.status import chip_of, listed_state

_MOST_FOUND = 100
_SHOWN = 200


class ListFilter(Struct, frozen=True):
    """Which sessions are wanted: of one folder, in one state, those in which a text is found, or the archived ones.

    With `subagents` these are listed, too.
    """

    folder: str = ""
    state: str = ""
    search: str = ""
    archived: bool = False
    all: bool = False
    subagents: bool = False


def project_name(workspace: str) -> str:
    """Name the folder of a session in a word: a copy by its own name, with which it is applied."""
    folder, copies = Path(workspace), writers_folder().name
    parts = folder.parts
    return parts[parts.index(copies) + 1] if copies in parts[:-1] else folder.name


class PageRow(Struct, frozen=True, kw_only=True):
    """A session as it stands in the list; `places` are where the text that is looked for was found.

    `words` is the one word for its state, with the `sign` that goes with it, `why` the reason where there is one.
    `branch` is the one that is checked out in its folder, `files` how many it changed, and `subagents` how many it has,
    as far as that was looked at. `budget` is what an open one may spend, empty without a bound. `root` is the session
    that began it where it is a subagent, `root_folder` the folder of that.
    """

    id: str
    title: str
    state: str
    sign: str
    words: str
    why: str = ""
    cost: str
    budget: str = ""
    mode: str
    added: int
    removed: int
    workspace: str
    model: str
    updated_at: int
    open: bool = False
    own: bool = False
    archived: bool = False
    waiting: int = 0
    places: tuple[str, ...] = ()
    branch: str = ""
    pinned: bool = False
    files: int = 0
    subagents: int = 0
    root: str = ""
    root_folder: str = ""

    @property
    def project(self) -> str:
        """The name of its folder; a subagent works on that of the session that began it, also in a copy."""
        return project_name(self.root_folder or self.workspace)


class PageRows(Struct, frozen=True, kw_only=True):
    """What is listed; `left_out` counts what is not shown."""

    lines: Sequence[PageRow]
    left_out: int


def page_rows(book: SessionBook, wish: ListFilter) -> PageRows:
    """List sessions, the last used first. Reads logs, so it is to be done in a thread; raises `TreadleError`."""
    runs = bool(wish.folder or wish.search.strip())
    opened = tuple(book.opened)
    rows = listed_sessions(None, archived=wish.archived, unread=opened, runs=runs, subagents=wish.subagents)
    missing = {id_ for id_, page in tuple(book.opened.items()) if not page.session.empty} - {row.id for row in rows}
    if missing and not (runs or wish.archived):  # a subagent that a person continued works as any session does
        rows = [*(one for one in listed_sessions(None, subagents=True) if one.id in missing), *rows]
    pinned = frozenset(pinned_sessions())
    folders = {row.id: row.workspace for row in rows}
    lines: Iterable[PageRow] = (_with_life(_line(row, pinned, folders), book) for row in rows)
    if wish.folder:
        lines = (line for line in lines if line.workspace == wish.folder)
    lines = list(lines) if not wish.search.strip() else _searched(list(lines), wish)
    lines = [line for line in lines if not wish.state or line.state == wish.state]
    most = len(lines) if wish.all else _SHOWN
    return PageRows(lines=lines[:most], left_out=max(0, len(lines) - most))


def _searched(lines: Sequence[PageRow], wish: ListFilter) -> list[PageRow]:
    folder = Path(wish.folder) if wish.folder else None
    places: dict[str, list[str]] = {}
    for place in found_places(wish.search, folder, _MOST_FOUND, archived=wish.archived):
        places.setdefault(place.session, []).append(place.snippet if place.event else "")
    found = (line for line in lines if line.id in places)
    return [replace(line, places=tuple(filter(None, places[line.id][:2]))) for line in found]


def _line(row: ListedSession, pinned: frozenset[str], folders: Mapping[str, str]) -> PageRow:
    chip = chip_of(row.state, row.ended, asked=row.asked)
    return PageRow(
        id=row.id,
        title=row.title,
        state=SessionState.WAITING.value if row.asked else row.state.value,
        sign=chip.sign,
        words=chip.words,
        why=", ".join(filter(None, (chip.why, goal_label(row.goal)))),
        cost=row.spending.words,
        mode=row.mode or "-",
        added=row.added,
        removed=row.removed,
        workspace=row.workspace,
        model=row.model,
        updated_at=row.updated_at,
        open=row.open,
        archived=row.archived,
        pinned=row.id in pinned,
        root=row.root,
        root_folder=folders.get(row.root, ""),
    )


def _with_life(line: PageRow, book: SessionBook) -> PageRow:
    page = book.find(line.id)
    if page is None:
        return line
    return replace(line, open=True, own=page.own, **listed_state(page))


STATES = {state.value: chip_of(state, None).words for state in SessionState}
"""What the list can be limited to, in words."""
