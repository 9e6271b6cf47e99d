"""Live output at a pace that a person and a program can follow: many small pieces become few larger ones."""

import asyncio
from collections.abc import Callable

_PAUSE = 0.05
_PAUSE_AFTER = 2.0
_NEWEST = 500
_PIECE = 16 * 1024
_WAITING = 64 * 1024

_NOTICE = "\n[much output follows; only the newest is shown from here on]\n"


class Paced:
    """Passes text on to `output`: the first at once, then at most twenty times a second a piece of what has gathered.

    A piece has at most 16 Ki characters: whoever takes it looks through it. When text comes faster than that for long,
    older text is left out and counted; of more than `limit` characters in all only the newest few are passed on, every
    two seconds. `close` passes on what still waits. Needs a running event loop.
    """

    def __init__(self, output: Callable[[str], None], limit: int) -> None:
        self._output = output
        self._left = limit
        self._waiting = ""
        self._skipped = 0
        self._newest = ""
        self._pause: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take text."""
        if self._left > 0:
            taken = text[: self._left]
            text = text[self._left :]
            self._left -= len(taken)
            self._wait(taken)
            if self._left == 0:
                self._waiting += _NOTICE
        if text:
            self._newest = (self._newest + text[-_NEWEST:])[-_NEWEST:]
        if self._pause is None:
            self._pass_on()

    def close(self) -> None:
        """Pass on the rest; nothing is taken any more."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        while text := self._next():
            self._output(text)

    def _wait(self, text: str) -> None:
        waiting = self._waiting + text
        if excess := max(0, len(waiting) - _WAITING):
            self._skipped += excess
            waiting = waiting[excess:]
        self._waiting = waiting

    def _next(self) -> str:
        """Take the next piece; empty when nothing waits."""
        notice = f"\n[{self._skipped:,} characters are not shown here]\n" if self._skipped else ""
        self._skipped = 0
        piece, self._waiting = self._waiting[:_PIECE], self._waiting[_PIECE:]
        if not self._waiting:
            piece += self._newest
            self._newest = ""
        return notice + piece

    def _pass_on(self) -> None:
        self._pause = None
        if text := self._next():
            pause = _PAUSE if self._left or self._waiting else _PAUSE_AFTER
            self._pause = asyncio.get_running_loop().call_later(pause, self._pass_on)
            self._output(text)
