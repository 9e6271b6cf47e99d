"""What is drawn below the scrollback, and how it is taken away again, whatever the terminal has wrapped of it.

Terminals wrap what they show when their window gets narrower, and they may do so before or after they read what was
written to them. So nothing counts rows upwards to where the drawing begins: the terminal's cursor waits there, the
terminal itself keeps it in its place, and what is erased is what is below it.
"""

from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import AnyContainer, DynamicContainer
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from treadle.tui.draft.pasting import KeyParser, parse_keys
from treadle.tui.paint.theme import Theme

_ESCAPE_TIMEOUT = 0.05
_META_TIMEOUT = 0.25


class Anchored(DynamicContainer):
    """Leaves the terminal's cursor on the first cell, and draws one where the person writes.

    While `typing`, the cursor is where they write: input methods show their candidates there.
    """

    def __init__(self, get_container: Callable[[], AnyContainer], typing: Callable[[], bool] = lambda: False) -> None:
        super().__init__(get_container)
        self._typing = typing

    def write_to_screen(  # noqa: PLR0917 - as it is called
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,  # noqa: FBT001
        z_index: int | None,
    ) -> None:
        """Draw everything, the cursor last."""
        super().write_to_screen(screen, mouse_handlers, write_position, parent_style, erase_bg, z_index)
        if self._typing():
            return
        window = get_app().layout.current_window
        if screen.show_cursor:
            at = screen.get_cursor_position(window)
            cell = screen.data_buffer[at.y][at.x]
            screen.data_buffer[at.y][at.x] = Char(cell.char, f"{cell.style} reverse")
            screen.show_cursor = False
        screen.set_cursor_position(window, Point(x=0, y=0))


def set_up(application: Application[Any], theme: Theme, resized: Callable[[], None]) -> KeyParser | None:
    """Let an application draw and read keys as Treadle does, and call `resized` when the terminal has another size."""
    output = application.output
    if isinstance(output, Vt100_Output):
        # The application is as high as it needs to be: where the cursor is need not be asked, and not be waited for.
        output.enable_cpr = False
        if theme.ascii:
            output.write = lambda data: Vt100_Output.write(output, theme.legible(data))  # type: ignore[method-assign]
    application._on_resize = resized  # type: ignore[method-assign]  # noqa: SLF001 - there is no other way in
    application.ttimeoutlen = _ESCAPE_TIMEOUT
    application.timeoutlen = _META_TIMEOUT
    return parse_keys(application.input)


def colour_depth(theme: Theme) -> ColorDepth | None:
    """Say how many colours an application may draw in: as many as the theme has; None where the terminal decides."""
    return ColorDepth.TRUE_COLOR if theme.true_colour else None


def erase(application: Application[Any]) -> None:
    """Take away what was drawn last; the cursor is where it began."""
    write_above(application, "")


def write_above(application: Application[Any], text: str) -> None:
    """Write whole lines in the place of what was drawn last; it is to be drawn anew below them."""
    output, renderer = application.output, application.renderer
    output.write_raw("\r")
    # As many rows as were drawn, not what they may be wrapped to: more could be rows of the scrollback.
    output.cursor_up(renderer._cursor_pos.y)  # noqa: SLF001 - the renderer tells nobody
    output.reset_attributes()
    output.enable_autowrap()
    # What is erased from the first cell of the screen on, tmux keeps in its history: erase from the second one.
    output.write_raw(" ")
    output.erase_down()
    output.write_raw("\r" + text.replace("\n", "\r\n"))
    output.flush()
    renderer.reset()
