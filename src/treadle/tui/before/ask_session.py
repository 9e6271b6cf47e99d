"""Choosing the session to continue, before any is open."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.filters import Filter
from prompt_toolkit.key_binding import KeyBindings

from treadle.protocol.errors import TreadleError
from treadle.tui.before.inline import Inline
from treadle.tui.ending import Left
from treadle.tui.intents import Picked
from treadle.tui.lists.filter_list import Pick, picker_lines
from treadle.tui.lists.filter_list_keys import add_picker_keys
from treadle.tui.lists.session_picker import SessionPicker
from treadle.tui.paint.lines import Line
from treadle.tui.paint.look import Look
from treadle.tui.session.aside import Aside


async def choose_session(folder: Path, look: Look) -> str:
    """Let the person choose one of the sessions of a folder, or of all; gives its id, empty where they chose none.

    Raises `StoreError` where the sessions cannot be read.
    """
    if look.plain:
        from treadle.tui.reader.before import choose_session_by_number

        return await choose_session_by_number(folder)
    return await _SessionChoice(folder, look).run()


class _SessionChoice:
    """The list of sessions, and the session that is taken from it."""

    def __init__(self, folder: Path, look: Look) -> None:
        self._signs = look.theme.signs
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inline: Inline[str] = Inline(look, self._draw, self._add_keys)
        self._sessions = SessionPicker(folder, without="", aside=Aside(self._failed), changed=self._inline.refresh)

    async def run(self) -> str:
        """Give the id of the session that is chosen, empty where none is; raises `StoreError`."""
        chosen = await self._inline.run(self._read())
        return "" if isinstance(chosen, Left) else chosen

    async def _read(self) -> None:
        self._sessions.begin()
        await self._failure

    def _failed(self, error: TreadleError) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _draw(self, columns: int, _rows: int) -> Sequence[Line]:
        return picker_lines(self._sessions.picker, columns, self._signs)

    def _add_keys(self, inline: Inline[str], keys: KeyBindings, listing: Filter) -> None:
        def act(picked: Picked) -> None:
            chosen = "" if picked.key is Pick.CLOSE else self._sessions.press(picked.key, picked.text)
            if chosen or picked.key is Pick.CLOSE:
                inline.end(chosen)
            inline.refresh()

        add_picker_keys(keys, listing, act=act, alone=inline.alone)
