"""What is chosen or typed below the input in a running session: one list at a time, and never over a question."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from treadle.door.known_models import save_default
from treadle.door.open_session import SessionAccess
from treadle.present.items import NoteItem
from treadle.present.view import SessionView
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import SetModel
from treadle.tui.draft.menu import MenuEntry
from treadle.tui.draft.menus import model_entries
from treadle.tui.lists.filter_list import Pick, picker_lines
from treadle.tui.lists.login_picker import LoginPicker
from treadle.tui.lists.model_picker import ModelList, ModelPicker, TakenModel
from treadle.tui.lists.session_picker import SessionPicker
from treadle.tui.lists.subagent_picker import SubagentPicker
from treadle.tui.lists.turn_picker import TurnPicker
from treadle.tui.paint.lines import Line
from treadle.tui.paint.theme import Signs
from treadle.tui.screen import Screen
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import DoCommand
from treadle.tui.session.outbox import Outbox

_BUSY = "Treadle is still working in this session. Stop it first: esc closes this list, esc again stops."
_WAITS = "Treadle is waiting for your answer to a question. Answer it first: tab goes to it."


_Open: TypeAlias = ModelPicker | SessionPicker | TurnPicker | LoginPicker | SubagentPicker


class Pickers:
    """Opens the lists and takes their keys; `switch` takes the session that is to be opened in the place of this one.

    Without `switch` there is no other session to go to, as in the demo.
    """

    def __init__(  # noqa: PLR0913 - the parts of one surface
        self,
        live: SessionAccess,
        *,
        screen: Screen,
        outbox: Outbox,
        aside: Aside,
        show: Callable[..., None],
        view: Callable[[], SessionView],
        changed: Callable[[], None],
        refused: Callable[[ConfigError], None],
        switch: Callable[[str], None] | None,
    ) -> None:
        self._live = live
        self._screen = screen
        self._outbox = outbox
        self._aside = aside
        self._show = show
        self._view = view
        self._changed = changed
        self._refused = refused
        self._switch = switch
        self._open: _Open | None = None
        self._do: Callable[[DoCommand], None] = lambda _: None
        self._models = ModelList(live.offered_models, aside=aside, changed=self._follow)

    @property
    def open(self) -> bool:
        """Whether a list is open."""
        return self._open is not None

    def model_entries(self) -> list[MenuEntry] | None:
        """Give what `/model` can be followed by; None until the models are read."""
        models = self._models.known()
        return None if models is None else list(model_entries(models, self._view().model))

    def choose_model(self) -> None:
        """Open the list of models."""
        self._begin(ModelPicker(self._models, self._view().model))

    def choose_session(self, typed: str) -> None:
        """Open the list of sessions, of those that a text fits."""
        if self._switch is None:
            self._show(NoteItem("Another session cannot be opened from here.", warns=True))
            return
        picker = SessionPicker(
            self._live.workspace, without=self._live.id, aside=self._aside, changed=self._screen.refresh_now
        )
        picker.begin(typed)
        self._begin(picker)

    def choose_subagent(self) -> None:
        """Open the list of subagents."""
        screen = self._screen
        picker = SubagentPicker(
            self._live.workspace,
            self._live.id,
            view=self._view,
            aside=self._aside,
            changed=screen.refresh_now,
            page=screen.page_rows,
        )
        self._begin(picker)

    def choose_turn(self, command: str, do: Callable[[DoCommand], None]) -> None:
        """Open the list of turns; the command is done with the one that is taken."""
        view = self._view()
        if view.questions:
            self._show(NoteItem(_WAITS, warns=True))
            return
        if view.active:
            do(DoCommand(command))  # which says what to do first
            return
        self._do = do
        screen, aside = self._screen, self._aside
        self._begin(TurnPicker(self._live.id, command, aside=aside, changed=screen.refresh_now, page=screen.page_rows))

    def add_key(self, named: str) -> None:
        """Ask for a provider's key, and whose it is where that is not said."""
        if self._view().questions:
            self._show(NoteItem(_WAITS, warns=True))
            return
        self._begin(
            LoginPicker(
                named,
                screen=self._screen,
                aside=self._aside,
                show=self._show,
                refused=self._refused,
                closed=self.close,
            )
        )

    def _begin(self, picker: _Open) -> None:
        self._open = picker
        self._screen.pick(begin=True)

    def close(self) -> None:
        """Close the list that is open."""
        self._open = None
        self._screen.pick(begin=False)

    def lines(self, width: int, rows: int, signs: Signs) -> list[Line]:
        """Draw the list that is open; a question that it asks in at most about so many rows."""
        match self._open:
            case TurnPicker() as turns:
                return turns.lines(width, rows, signs)
            case LoginPicker() as login:
                return login.lines(width, signs)
            case None:
                return []
            case other:
                return picker_lines(other.picker, width, signs)

    def press(self, key: Pick, text: str) -> None:
        """Take a key."""
        match self._open:
            case TurnPicker() as turns if key is not Pick.CLOSE or not turns.closes:
                if (command := turns.press(key, text)) is not None:
                    self.close()
                    self._do(command)
            case LoginPicker() as login:
                login.press(key, text)
            case _ if key is Pick.CLOSE:
                self.close()
            case ModelPicker() as models:
                taken = models.press(key, text)
                if taken is not None:
                    self.close()
                    self._outbox.put_made(partial(use_model, self._live, taken, self._aside, self._show))
            case SubagentPicker() as subagents:
                subagents.press(key, text)
            case SessionPicker() as sessions:
                session = sessions.press(key, text)
                if session:
                    self._go_to(sessions, session)
            case _:
                pass

    def _go_to(self, sessions: SessionPicker, session: str) -> None:
        view = self._view()
        if (view.active and not self._live.continues) or self._switch is None:
            sessions.picker = replace(sessions.picker, hint=_WAITS if view.questions else _BUSY)
            return
        self.close()
        self._switch(session)
        self._screen.leave(0)

    def _follow(self) -> None:
        """The models were read."""
        if isinstance(self._open, ModelPicker):
            self._open.follow()
        self._changed()


def use_model(live: SessionAccess, taken: TakenModel, aside: Aside, show: Callable[..., None]) -> SetModel:
    """Change the model; where it cannot be called, it does not become the default either."""
    change = live.choose(taken.ref, taken.thinking)
    if taken.default:
        work = partial(save_default, taken.ref, taken.thinking)
        aside.start(work, lambda said: show(NoteItem(said)) if said else None, "")
    return change
