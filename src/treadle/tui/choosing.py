"""Choosing the session to continue, before any is open."""

import asyncio
from pathlib import Path

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Always
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.styles import Style

from treadle.protocol.errors import TreadleError
from treadle.tui.aside import Aside
from treadle.tui.drawn import without_cursor_reports
from treadle.tui.intents import Picked
from treadle.tui.lines import fragments
from treadle.tui.look import Look
from treadle.tui.pasting import parse_keys
from treadle.tui.picker import Pick, picker_lines
from treadle.tui.picker_keys import add_picker_keys
from treadle.tui.reader.before import choose_session_by_number
from treadle.tui.session_picker import SessionPicker
from treadle.tui.windows import text_window

_ESCAPE_TIMEOUT = 0.05


async def choose_session(folder: Path, look: Look) -> str:
    """Let the person choose one of the sessions of a folder, or of all; gives its id, empty where they chose none.

    Raises `StoreError` where the sessions cannot be read.
    """
    if look.plain:
        return await choose_session_by_number(folder)
    keys, theme = KeyBindings(), look.theme

    def failed(error: TreadleError) -> None:
        application.exit(exception=error)

    def act(picked: Picked) -> None:
        chosen = "" if picked.key is Pick.CLOSE else sessions.press(picked.key, picked.text)
        if chosen or picked.key is Pick.CLOSE:
            application.exit(result=chosen)

    def drawn() -> StyleAndTextTuples:
        return fragments(picker_lines(sessions.picker, application.output.get_size().columns, theme.signs))

    application: Application[str] = Application(
        layout=Layout(HSplit([text_window(drawn, focusable=True, cursor=True), Window()])),
        key_bindings=keys,
        style=Style.from_dict(theme.for_prompt_toolkit()),
        erase_when_done=True,
    )
    without_cursor_reports(application.output)
    application.ttimeoutlen = _ESCAPE_TIMEOUT
    parser = parse_keys(application.input)
    add_picker_keys(keys, Always(), act=act, alone=lambda: parser is None or parser.keys <= 1)
    keys.add("<sigint>")(lambda _: act(Picked(Pick.CLOSE)))
    sessions = SessionPicker(folder, without="", aside=Aside(failed), changed=application.invalidate)
    asyncio.get_running_loop().call_soon(sessions.begin)
    try:
        return await application.run_async(set_exception_handler=False)
    except EOFError:  # the terminal is gone
        return ""
