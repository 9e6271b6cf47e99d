"""What goes into the scrollback: held until it can be painted, and until the files that it names are looked up."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from treadle.tui.paint.hyperlinks import FileLinks
from treadle.tui.paint.printed_items import LivingItem, PrintedItem
from treadle.tui.paint.theme import Theme
from treadle.tui.session.aside import Aside

if TYPE_CHECKING:
    from treadle.tui.paint.painter import Painter

_PATIENCE = 0.5
"""Seconds that looking files up may take; what is not known by then is printed without a link."""


class Printing:
    """Holds items that are not printed yet, and paints them; `changed` hears that there is something to paint.

    Without `links` nothing is one.
    """

    def __init__(self, aside: Aside, links: FileLinks | None, changed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._aside = aside
        self._links = links
        self._changed = changed
        self._last: PrintedItem | None = None
        self._looked_for: frozenset[str] = frozenset()
        self.held: list[PrintedItem] = []
        self.painter: type[Painter] | None = None

    def text(self, columns: int, theme: Theme, *, at_once: bool = False) -> str:
        """Paint what is held; nothing as long as it is looked up what of it can be a link, unless it is `at_once`."""
        if not self.held or self.painter is None or (self._looked_for and not at_once):
            return ""
        painter = self._made(columns, theme)
        text = painter.items(self.held)
        if self._links is not None and not at_once and (names := self._links.asked_for()):
            self._look_up(self._links, names)
            return ""
        self._last = painter.last
        self.held.clear()
        return text

    def living(
        self, columns: int, theme: Theme, items: Iterable[LivingItem], *, rows: int, now: float, blinks: bool
    ) -> str:
        """Paint what is not printed yet: what is held, and items that may still change."""
        if self.painter is None:
            return ""
        return self._made(columns, theme).living([*self.held, *items], rows, now, blinks=blinks)

    def files_changed(self) -> None:
        """Look files up anew from now on."""
        if self._links is not None:
            self._links.forget()

    def _made(self, columns: int, theme: Theme) -> "Painter":
        assert self.painter is not None  # noqa: S101 - whoever paints has seen to it
        return self.painter(columns, theme, self._last, self._links)

    def _look_up(self, links: FileLinks, names: frozenset[str]) -> None:
        self._looked_for = names
        nothing: Mapping[str, str] = dict.fromkeys(names, "")
        self._aside.start(partial(links.look_up, names), partial(self._found, names), nothing)
        self._loop.call_later(_PATIENCE, self._found, names, nothing)

    def _found(self, names: frozenset[str], found: Mapping[str, str]) -> None:
        if self._links is not None and names is self._looked_for:
            self._links.know(found)
            self._looked_for = frozenset()
            self._changed()
