"""The lists of models, sessions and messages in a running session, as plain lines."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from treadle.door.commands import ListedTurn, TurnPreview, listed_turns, preview_turn
from treadle.door.known_models import EFFORT_BUDGETS, OfferedModel
from treadle.door.open_session import SessionAccess
from treadle.present.items import NoteItem
from treadle.present.view import SessionView
from treadle.tui.lists.choice_list import Choosing, ListRow
from treadle.tui.lists.filter_list_rows import MODELS, model_rows, turn_rows
from treadle.tui.lists.model_picker import TakenModel
from treadle.tui.lists.session_lists import use_model
from treadle.tui.lists.turn_picker import asking_back, way_back
from treadle.tui.reader.numbered import NotUnderstood
from treadle.tui.reader.plain_list import ListWord, NumberedList, TakenRow, list_rows, listing_lines, take_row
from treadle.tui.reader.reader_session_list import SessionList
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import DoCommand
from treadle.tui.session.outbox import Outbox

_T = TypeVar("_T")

_DEFAULT = "default"
_HINT = (
    f"After the number you can add {', '.join(EFFORT_BUDGETS)} (how much the model thinks) and {_DEFAULT} (use it in "
    "new sessions too), as in: 2 high."
)
_BUSY = "Treadle is still working in this session. Stop it first: Ctrl-C."
_WAITS = "Treadle is waiting for your answer to a question. Answer it first."

_KEY = "A key that is typed here would be shown. In another terminal: treadle login PROVIDER. This session uses it."


class NumberedLists:
    """One list at a time; `shown` is called with the lines of one. `switch` takes the session to be opened instead."""

    def __init__(
        self,
        live: SessionAccess,
        *,
        aside: Aside,
        outbox: Outbox,
        show: Callable[..., None],
        shown: Callable[[Sequence[str]], None],
        view: Callable[[], SessionView],
        switch: Callable[[str], None] | None,
    ) -> None:
        self._live = live
        self._aside = aside
        self._outbox = outbox
        self._show = show
        self._shown = shown
        self._view = view
        self._switch = switch
        self._listing: NumberedList | None = None
        self._wanted: SessionList | None = None
        self._sessions: SessionList | None = None
        self._use: Callable[[int, Sequence[str]], None] = lambda _, __: None
        self._reading = 0

    @property
    def open(self) -> bool:
        """Whether a line answers a list."""
        return self._listing is not None

    def close(self) -> None:
        """Let no line answer any more, nor a list open that is still being read."""
        self._listing = self._sessions = self._wanted = None
        self._reading += 1

    def choose_model(self) -> None:
        """Read the models and list them."""
        self.close()
        none: Sequence[OfferedModel] = ()
        self._aside.start(self._live.offered_models, self._list_models, none)

    def _list_models(self, models: Sequence[OfferedModel]) -> None:
        self.close()
        found = tuple(model_rows(models, self._view().model))
        self._use = lambda row, words: self._use_model(found[row].id, words)
        rows = list_rows(found, MODELS.shape.wide)
        choosing = Choosing(title="Which model?", rows=rows, escape=None, leaving="as it is", filters=True)
        self._open(NumberedList(choosing=choosing, after=frozenset({*EFFORT_BUDGETS, _DEFAULT}), hint=_HINT))

    def add_key(self, named: str) -> None:  # noqa: ARG002 - what is typed here is shown
        """Say where a key is typed without being shown."""
        self._show(NoteItem(_KEY, warns=True))

    def choose_turn(self, command: str, do: Callable[[DoCommand], None]) -> None:
        """Read the messages and list them to go back to before one; a copy is made at once, up to the end."""
        if command != "rewind" or self._view().active:
            do(DoCommand(command))
            return
        self.close()
        none: Sequence[ListedTurn] = ()
        then = partial(self._if_wanted, self._reading, partial(self._list_turns, do))
        self._aside.start(partial(listed_turns, self._live.id), then, none)

    def _if_wanted(self, reading: int, show: Callable[[_T], None], read: _T) -> None:
        """Show what was read, unless something else was wanted meanwhile."""
        if reading == self._reading:
            show(read)

    def _list_turns(self, do: Callable[[DoCommand], None], turns: Sequence[ListedTurn]) -> None:
        if not turns:
            self._show(NoteItem("There is no message to go back to.", warns=True))
            return
        found = tuple(turn_rows(turns))
        self._use = lambda row, _: self._preview(do, int(found[row].id))
        rows = tuple(ListRow(one.columns[1], ", ".join(filter(None, (one.columns[2], one.below)))) for one in found)
        title = "Go back to before which message? The newest is first."
        self._open(NumberedList(choosing=Choosing(title=title, rows=rows, escape=None, leaving="none", filters=True)))

    def _preview(self, do: Callable[[DoCommand], None], number: int) -> None:
        then = partial(self._if_wanted, self._reading, partial(self._list_ways, do))
        self._aside.start(partial(preview_turn, self._live.id, number), then, None)

    def _list_ways(self, do: Callable[[DoCommand], None], preview: TurnPreview | None) -> None:
        if preview is None:
            self._show(NoteItem("The changes of that message could not be read.", warns=True))
            return
        self._use = lambda row, _: do(way_back(preview, row))
        self._open(NumberedList(choosing=replace(asking_back(preview), leaving="nothing is taken back")))

    def choose_session(self, typed: str) -> None:
        """Read the sessions and list those that a text fits."""
        self.close()
        if self._switch is None:
            self._show(NoteItem("Another session cannot be opened from here.", warns=True))
            return
        self._read(SessionList(self._live.workspace, without=self._live.id, typed=typed))

    def _read(self, sessions: SessionList) -> None:
        self._wanted = sessions
        self._aside.start(sessions.read, lambda _: self._list_sessions(sessions), None)

    def _list_sessions(self, sessions: SessionList) -> None:
        if self._wanted is sessions:
            self._sessions = sessions
            self._open(sessions.listing)

    def _open(self, listing: NumberedList) -> None:
        if self._view().questions:
            self.close()
            self._show(NoteItem(_WAITS, warns=True))
            return
        self._listing = listing
        self._shown(listing_lines(listing))

    def take(self, line: str) -> None:
        """Take a line."""
        assert self._listing is not None  # noqa: S101 - `open` says so
        taken = take_row(self._listing, line)
        match taken:
            case NumberedList():
                self._open(taken)
            case NotUnderstood():
                self._show(NoteItem("This is no number of the list.", warns=True))
            case _ if self._sessions is not None:
                self._go_to(self._sessions, taken)
            case TakenRow(row=row, words=words):
                self.close()
                if row is not None:
                    self._use(row, words)
            case _:
                pass

    def _use_model(self, ref: str, words: Sequence[str]) -> None:
        thinking = next((EFFORT_BUDGETS[word] for word in words if word in EFFORT_BUDGETS), None)
        model = TakenModel(ref=ref, thinking=thinking, default=_DEFAULT in words)
        self._outbox.put_made(partial(use_model, self._live, model, self._aside, self._show))

    def _go_to(self, sessions: SessionList, taken: TakenRow | ListWord) -> None:
        self.close()
        chosen = sessions.taken(taken)
        if chosen is None:
            self._read(sessions)
        elif chosen and self._view().active and not self._live.continues:
            self._show(NoteItem(_BUSY, warns=True))
        elif chosen and self._switch is not None:
            self._switch(chosen)
