"""The sessions of a folder, or of all folders, as a list of plain lines."""

import time
from pathlib import Path

from treadle.door.past import listed_sessions
from treadle.tui.lists.choice_list import Choosing
from treadle.tui.lists.filter_list import PickerRow
from treadle.tui.lists.filter_list_rows import SESSIONS, session_rows
from treadle.tui.reader.plain_list import ListWord, NumberedList, TakenRow, list_rows

_ALL = "all"


class SessionList:
    """What there is to choose from; `without` is the session that is open here, `typed` filters."""

    def __init__(self, folder: Path, *, without: str = "", typed: str = "") -> None:
        self._folder = folder
        self._without = without
        self._typed = typed
        self._of_all = False
        self._rows: tuple[PickerRow, ...] = ()
        self._problem = ""

    def read(self) -> None:
        """Read the sessions, which takes a while where logs are read. Raises `StoreError`."""
        sessions = listed_sessions(None if self._of_all else self._folder)
        self._rows = tuple(session_rows(sessions, time.time(), folders=self._of_all, without=self._without))

    @property
    def listing(self) -> NumberedList:
        """The sessions that were read."""
        here = "No other session in this folder yet."
        choosing = Choosing(
            title="Which session?" if self._rows else "No other session yet." if self._of_all else here,
            rows=list_rows(self._rows, SESSIONS.shape.wide),
            problem=self._problem,
            escape=None,
            leaving="none of them",
            filters=True,
        )
        other = "the sessions of this folder" if self._of_all else "the sessions of all folders"
        return NumberedList(choosing=choosing, typed=self._typed, words={_ALL: other})

    def taken(self, taken: TakenRow | ListWord) -> str | None:
        """Give the id of the session that was taken, empty for none; None: the list is to be read out again."""
        self._problem = self._typed = ""
        if isinstance(taken, ListWord):
            self._of_all = not self._of_all
            return None
        if taken.row is None:
            return ""
        row = self._rows[taken.row]
        self._problem = row.flaw
        return None if row.flaw else row.id
