"""Choosing the session to continue, before any is open."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.filters import Filter
from prompt_toolkit.key_binding import KeyBindings

from treadle.protocol.errors import TreadleError
from treadle.tui.aside import Aside
from treadle.tui.ending import Left
from treadle.tui.filter_list import Pick, picker_lines
from treadle.tui.filter_list_keys import add_picker_keys
from treadle.tui.inline import Inline
from treadle.tui.intents import Picked
from treadle.tui.lines import Line
from treadle.tui.look import Look
from treadle.tui.session_picker import SessionPicker


async def choose_session(folder: Path, look: Look) -> str:
    """Let the person choose one of the sessions of a folder, or of all; gives its id, empty where they chose none.

    Raises `StoreError` where the sessions cannot be read.
    """
    if look.plain:
        from treadle.tui.reader.before import choose_session_by_number

        return await choose_session_by_number(folder)
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def failed(error: TreadleError) -> None:
        if not failure.done():
            failure.set_exception(error)

    def draw(columns: int, _rows: int) -> Sequence[Line]:
        return picker_lines(sessions.picker, columns, look.theme.signs)

    def add_keys(inline: Inline[str], keys: KeyBindings, listing: Filter) -> None:
        def act(picked: Picked) -> None:
            chosen = "" if picked.key is Pick.CLOSE else sessions.press(picked.key, picked.text)
            if chosen or picked.key is Pick.CLOSE:
                inline.end(chosen)
            inline.refresh()

        add_picker_keys(keys, listing, act=act, alone=inline.alone)

    async def read() -> None:
        sessions.begin()
        await failure

    inline: Inline[str] = Inline(look, draw, add_keys)
    sessions = SessionPicker(folder, without="", aside=Aside(failed), changed=inline.refresh)
    chosen = await inline.run(read())
    return "" if isinstance(chosen, Left) else chosen
