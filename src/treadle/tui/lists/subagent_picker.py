"""The subagents of a session: what each does, its transcript on a screen of its own, and a way to stop it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from treadle.door.history import session_past
from treadle.door.past import ListedSession, StoppedSession, StopResult, listed_sessions, stop_sessions
from treadle.present.child_words import child_line, child_parts
from treadle.present.escape import exact_line
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import ChildChanged
from treadle.tui.lists.filter_list import Pick, Picker, PickerRow, Shape, take_key, with_rows
from treadle.tui.paint.lines import Line
from treadle.tui.paint.pager_rows import whole_rows
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Signs
from treadle.tui.session.aside import Aside

_SUBAGENTS = Picker(
    title="Subagents",
    shape=Shape(wide=1, right=frozenset({3, 4}), dropped=(3, 2)),
    empty="This session has no subagents.",
    keys=("↑↓ enter transcript", "ctrl-x stop", "esc close"),
)
_STOPS = "Stopping it…"


class SubagentPicker:
    """Those that work, as the session tells of them, then those that ended, as their logs do.

    `page` shows rows on a screen of their own, laid out for a width; closing that comes back to the list.
    """

    def __init__(
        self,
        folder: Path,
        session_id: str,
        *,
        view: Callable[[], SessionView],
        aside: Aside,
        changed: Callable[[], None],
        page: Callable[[Callable[[int, Signs], Sequence[Line]]], None],
    ) -> None:
        self._folder = folder
        self._id = session_id
        self._view = view
        self._aside = aside
        self._changed = changed
        self._page = page
        self._ended: tuple[ListedSession, ...] = ()
        self._working: frozenset[str] = frozenset()
        self._picker = _SUBAGENTS
        self._read()

    def _read(self) -> None:
        none: list[ListedSession] = []
        self._aside.start(partial(listed_sessions, self._folder, subagents=True), self._take, none)

    def _take(self, rows: Sequence[ListedSession]) -> None:
        self._ended = tuple(row for row in rows if row.root == self._id)
        self._changed()

    @property
    def picker(self) -> Picker:
        """The list as it is now."""
        working = self._view().children
        now = frozenset(one.session_id for one in working)
        if self._working - now:
            self._read()  # one has ended
        self._working = now
        self._picker = with_rows(self._picker, [*map(_working, working), *self._others(working)])
        return self._picker

    def _others(self, working: Sequence[ChildChanged]) -> Iterator[PickerRow]:
        known = {one.session_id for one in working}
        for row in self._ended:
            if row.id not in known:
                columns = (exact_line(row.agent), exact_line(row.title), row.outcome or "ended", "", row.spending.words)
                yield PickerRow(id=row.id, columns=columns, search=" ".join(columns).casefold(), quiet=True)

    def press(self, key: Pick, text: str = "") -> None:
        """Take a key."""
        row = self.picker.row
        if row is None or key not in (Pick.TAKE, Pick.STOP):
            self._picker = take_key(self._picker, key, text)
        elif key is Pick.TAKE:
            nothing: list[Stamped] = []
            self._aside.start(lambda: session_past(row.id)[1], self._show, nothing)
        elif any(one.session_id == row.id for one in self._view().children):
            self._picker = replace(self._picker, hint=_STOPS)
            none: tuple[StoppedSession, ...] = ()
            self._aside.start(lambda: tuple(asyncio.run(stop_sessions([row.id]))), self._stopped, none)
        else:
            self._picker = replace(self._picker, hint="It has ended.")

    def _stopped(self, stopped: Sequence[StoppedSession]) -> None:
        """Say why it could not be stopped; that it was, its row says."""
        problems = [one.problem for one in stopped if one.result is StopResult.FAILED]
        self._picker = replace(self._picker, hint=exact_line(" ".join(problems)))
        self._changed()

    def _show(self, past: Sequence[Stamped]) -> None:
        book = Scrollback(SessionView(), "")
        book.take_past(past)
        newest, view = list(book.newest), book.view
        self._page(lambda width, signs: whole_rows(newest, view, "", width, signs))
        self._changed()


def _working(child: ChildChanged) -> PickerRow:
    columns = tuple(map(exact_line, child_parts(child)))
    return PickerRow(id=child.session_id, columns=columns, search=child_line(child).casefold())
