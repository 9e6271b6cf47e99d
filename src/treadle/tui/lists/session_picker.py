"""Choosing a session, in the place of another one or before the first."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from treadle.door.past import ListedSession, listed_sessions
from treadle.tui.lists.filter_list import Pick, Picker, take_key, with_rows
from treadle.tui.lists.filter_list_rows import SESSIONS, session_rows
from treadle.tui.session.aside import Aside


class SessionPicker:
    """The sessions of a folder, or of all folders; `without` is the one that is open here."""

    def __init__(self, folder: Path, *, without: str, aside: Aside, changed: Callable[[], None]) -> None:
        self._folder = folder
        self._without = without
        self._aside = aside
        self._changed = changed
        self._all = False
        self.picker = SESSIONS

    def begin(self, typed: str = "") -> None:
        """Show what is known of the sessions at once, and what their logs say when they have been read."""
        self.picker = take_key(self.picker, Pick.TEXT, typed)
        self._read(from_logs=False)

    def _read(self, *, from_logs: bool) -> None:
        of_all = self._all
        wanted = partial(listed_sessions, None if of_all else self._folder, read=from_logs)
        none: list[ListedSession] = []
        self._aside.start(wanted, lambda sessions: self._take(sessions, of_all=of_all, from_logs=from_logs), none)

    def _take(self, sessions: list[ListedSession], *, of_all: bool, from_logs: bool) -> None:
        if of_all is not self._all:
            return  # the other list is wanted by now
        rows = session_rows(sessions, time.time(), folders=of_all, without=self._without)
        self.picker = with_rows(self.picker, list(rows))
        if not from_logs and any(session.steps is None for session in sessions):
            self._read(from_logs=True)
        self._changed()

    def press(self, key: Pick, text: str = "") -> str:
        """Take a key; gives the id of the session that was taken, else nothing."""
        row = self.picker.row
        if key is Pick.ALL:
            self._all = not self._all
            wanted, empty = "this folder" if self._all else "all folders", SESSIONS.empty
            keys = tuple(f"ctrl-a {wanted}" if one.startswith("ctrl-a") else one for one in SESSIONS.keys)
            self.picker = Picker(
                title=SESSIONS.title,
                shape=SESSIONS.shape,
                keys=keys,
                typed=self.picker.typed,
                empty="No other session yet." if self._all else empty,
            )
            self._read(from_logs=False)
        elif key is Pick.TAKE and row is not None:
            if not row.flaw:
                return row.id
            self.picker = replace(self.picker, hint=row.flaw)
        else:
            self.picker = take_key(self.picker, key, text)
        return ""
