"""What is below the input: the menu of the draft, the keys, or a list to choose from."""

from collections.abc import Callable
from typing import assert_never

from treadle.door.open_session import SessionAccess
from treadle.present.view import SessionView
from treadle.protocol.errors import TreadleError
from treadle.tui.draft.completing import Completing, Files, NamedMenu
from treadle.tui.draft.menu import menu_lines
from treadle.tui.draft.menus import (
    ArgumentMenus,
    allowance_entries,
    colour_entries,
    effort_entries,
    key_lines,
    mode_entries,
    queue_entries,
)
from treadle.tui.intents import ListWish, Wish
from treadle.tui.lists.session_lists import Pickers
from treadle.tui.paint.lines import Line
from treadle.tui.paint.theme import Signs
from treadle.tui.screen import Screen
from treadle.tui.session.aside import Aside
from treadle.tui.session.outbox import Outbox


class Lists:
    """One of them at a time. `switch` takes the session that is to be opened in the place of this one."""

    def __init__(
        self,
        live: SessionAccess,
        *,
        screen: Screen,
        outbox: Outbox,
        show: Callable[..., None],
        view: Callable[[], SessionView],
        failed: Callable[[TreadleError], None],
        switch: Callable[[str], None] | None,
    ) -> None:
        self._screen = screen
        self._view = view
        self._keys_shown = False
        self.aside = Aside(failed)
        self.pickers = Pickers(
            live,
            screen=screen,
            outbox=outbox,
            aside=self.aside,
            show=show,
            view=view,
            changed=self._known_now,
            refused=failed,
            switch=switch,
        )
        self.files = Files(
            live.workspace, trusted=lambda: live.trust.trusted, aside=self.aside, changed=self._known_now
        )
        self._named = NamedMenu(live, aside=self.aside, changed=self._known_now)
        self._completing = Completing(
            screen=screen,
            files=self.files,
            arguments=self._arguments(),
            named=self._named.entries,
            following=self._named.following,
        )

    def _arguments(self) -> ArgumentMenus:
        return {
            "/mode": mode_entries,
            "/effort": effort_entries,
            "/theme": colour_entries,
            "/model": self.pickers.model_entries,
            "/drop": lambda: queue_entries("/drop", self._view().waiting),
            "/edit": lambda: queue_entries("/edit", self._view().waiting),
            "/revoke": lambda: allowance_entries(self._view().allowances),
        }

    def _known_now(self) -> None:
        """Files or models were listed, which a menu may wait for."""
        self._completing.follow()
        self._screen.refresh_now()

    def rows(self, columns: int, rows: int, signs: Signs, *, vim: bool = False) -> list[Line]:
        """Draw what is open, where there are so many rows for it; with `vim`, Esc does something first."""
        if self.pickers.open:
            return self.pickers.lines(columns, rows, signs)
        if self._keys_shown:
            return key_lines(columns, self._screen.own_keys, vim=vim)
        return menu_lines(self._completing.menu, columns, signs)

    def typed(self, by_hand: bool) -> None:  # noqa: FBT001 - the draft says it
        """See what the draft has become."""
        self._keys_shown = False
        self._completing.typed(by_hand=by_hand)

    def entered(self, text: str, *, steer: bool) -> str | None:
        """Give the line to do or to send; None where it was completed only."""
        return self._completing.entered(text, steer=steer)

    def can(self, wish: Wish) -> bool:
        """Whether a key means the menu now."""
        return self._completing.takes_enter if wish is Wish.MENU_ENTER else bool(self._completing.menu.entries)

    def close(self) -> bool:
        """Close the keys or the menu; gives whether one of them was open."""
        if not (self._keys_shown or self._completing.menu.entries):
            return False
        self._keys_shown = False
        self._completing.close()
        return True

    def act(self, wish: ListWish) -> None:
        """Do what a key wants of these."""
        match wish:
            case Wish.SHOW_KEYS:
                self._keys_shown = True
            case Wish.MENU_UP | Wish.MENU_DOWN:
                self._completing.move(-1 if wish is Wish.MENU_UP else 1)
            case Wish.MENU_TAKE | Wish.MENU_ENTER:
                self._completing.take()
            case Wish.PICK_MODEL:
                self.pickers.choose_model()
            case Wish.SUBAGENTS:
                self.pickers.choose_subagent()
            case _:
                assert_never(wish)
