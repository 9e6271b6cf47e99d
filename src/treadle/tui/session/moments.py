"""What the terminal shows for a moment: a note, the key that has to be pressed again, the opened to-do list."""

import asyncio
from collections.abc import Callable

from treadle.tui.intents import Wish

_AGAIN_WITHIN = 3.0
_NOTED = 3.0
_UNFOLDED = 4.0
"""Seconds that the to-do list stays open when it has changed."""


class Moments:
    """Each ends by itself; then `refresh` draws the screen without it."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._refresh = refresh
        self._note = ("", 0.0)
        self._again: tuple[Wish | None, float] = (None, 0.0)
        self._unfolded_until = 0.0

    def say(self, text: str) -> None:
        """Show a note below the input line."""
        self._note = (text, self._loop.time() + _NOTED)
        self._loop.call_later(_NOTED, self._refresh)

    @property
    def note(self) -> str:
        """The note to show now, or nothing."""
        text, until = self._note
        return text if self._loop.time() < until else ""

    def unfold(self) -> None:
        """Open the to-do list, since it has changed."""
        self._unfolded_until = self._loop.time() + _UNFOLDED
        self._loop.call_later(_UNFOLDED, self._refresh)

    def fold_or_unfold(self) -> None:
        """Open the to-do list until it is closed, or close it."""
        self._unfolded_until = 0.0 if self.unfolded else float("inf")

    @property
    def unfolded(self) -> bool:
        """Whether the to-do list is open now."""
        return self._loop.time() < self._unfolded_until

    def is_second(self, wish: Wish) -> bool:
        """Whether a key was pressed a second time in a short while; the first time its meaning is shown."""
        again = self.awaited is wish
        self._again = (None, 0.0) if again else (wish, self._loop.time() + _AGAIN_WITHIN)
        self._loop.call_later(_AGAIN_WITHIN, self._refresh)
        return again

    def again(self, *, draft: bool) -> str:
        """Say what the key that was pressed does when it is pressed again now; `draft`: something is written."""
        match self.awaited:
            case Wish.STOP:
                return "ctrl-c again quits"
            case Wish.ESCAPE:
                return "esc again clears the draft" if draft else "esc again goes back to a message"
            case _:
                return ""

    @property
    def awaited(self) -> Wish | None:
        """The key that means something when it is pressed again now."""
        wish, until = self._again
        return wish if self._loop.time() < until else None
