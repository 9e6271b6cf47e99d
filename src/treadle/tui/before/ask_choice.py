"""Asks a person to choose from a list at the terminal, before there is a session."""

import asyncio
from collections.abc import Awaitable

from treadle.tui.before.inline import Inline, question_keys
from treadle.tui.ending import Left
from treadle.tui.lists.choice_list import (
    Chooser,
    Choosing,
    Chosen,
    begin,
    chooser_lines,
    details_fit,
    due_at,
    rest,
    rows_changed,
    take,
    whole_lines,
)
from treadle.tui.paint.lines import Line
from treadle.tui.paint.look import Look
from treadle.tui.question.dialog import Key, Press


async def choose(choosing: Choosing, look: Look, later: Awaitable[Choosing] | None = None) -> Chosen | Left:
    """Show a list until a row is taken; what `later` gives replaces it, if it comes in time."""
    if look.plain:
        from treadle.tui.reader.before import choose_by_number

        return await choose_by_number(choosing, later)
    return await _List(choosing, look).run(later)


class _List:
    """One list on the terminal: brings keys and time to the chooser."""

    def __init__(self, choosing: Choosing, look: Look) -> None:
        self._loop = asyncio.get_running_loop()
        self._look = look
        self._chooser = begin(choosing, self._loop.time())
        self._inline: Inline[Chosen] = Inline(look, self._draw, question_keys(self._pressed))
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, later: Awaitable[Choosing] | None) -> Chosen | Left:
        self._follow(begin(self._chooser.choosing, self._loop.time()))
        try:
            return await self._inline.run(None if later is None else self._change(later))
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _change(self, later: Awaitable[Choosing]) -> None:
        choosing = await later
        if choosing != self._chooser.choosing:
            self._follow(rows_changed(self._chooser, choosing, self._loop.time()))

    def _draw(self, columns: int, rows: int) -> list[Line]:
        return chooser_lines(self._chooser, columns, rows, self._look.theme.signs)

    def _pressed(self, inline: Inline[Chosen], pressed: Press) -> None:
        choosing = self._chooser.choosing
        if pressed.key is Key.DETAILS and choosing.details and not details_fit(self._chooser, *inline.size):
            inline.page(lambda width: whole_lines(choosing, width))
            return
        taken = take(self._chooser, pressed, self._loop.time())
        if isinstance(taken, Chosen):
            inline.end(taken)
        else:
            self._follow(taken)

    def _follow(self, chooser: Chooser) -> None:
        self._chooser = chooser
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = due_at(chooser)
        if at is not None:
            self._timer = self._loop.call_at(max(at, self._loop.time()), self._rest)
        self._inline.refresh()

    def _rest(self) -> None:
        self._timer = None
        self._follow(rest(self._chooser, self._loop.time()))
