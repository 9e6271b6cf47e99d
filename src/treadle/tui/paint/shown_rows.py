"""Rows that are only shown: each is laid out once, however often it is drawn."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.layout import Container, Dimension, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from treadle.tui.paint.lines import Line, fragments

_Row: TypeAlias = str | Line
"""A row with ANSI colours, or in roles of the theme."""


class Rows(Container):
    """A container as high as its rows, which fit the screen. A picture is drawn many times; most rows are as before."""

    def __init__(self, rows: Callable[[], Sequence[_Row]]) -> None:
        self._rows = rows
        self._width = 0
        self._laid_out: dict[_Row, dict[int, Char]] = {}

    def reset(self) -> None:
        """Forget what was laid out."""
        self._laid_out = {}

    def preferred_width(self, max_available_width: int) -> Dimension:
        """Take all columns."""
        return Dimension(preferred=max_available_width)

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:  # noqa: ARG002 - as it is called
        """Take as many rows as there are."""
        return Dimension(preferred=len(self._rows()), max=len(self._rows()))

    def write_to_screen(  # noqa: PLR0917 - as it is called
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,  # noqa: ARG002
        write_position: WritePosition,
        parent_style: str,  # noqa: ARG002
        erase_bg: bool,  # noqa: ARG002, FBT001
        z_index: int | None,  # noqa: ARG002
    ) -> None:
        """Draw the rows."""
        before = self._laid_out if write_position.width == self._width else {}
        self._width = write_position.width
        self._laid_out = {}
        for number, row in enumerate(self._rows()[: write_position.height]):
            cells = before[row] if row in before else _lay_out(row, self._width)
            self._laid_out[row] = cells
            screen.data_buffer[write_position.ypos + number] = cells  # type: ignore[assignment]
        screen.height = max(screen.height, write_position.ypos + write_position.height)

    def get_children(self) -> list[Container]:
        """Give what is in it."""
        return []


def _lay_out(row: _Row, width: int) -> dict[int, Char]:
    text = ANSI(row) if isinstance(row, str) else fragments([row])
    screen, place = Screen(), WritePosition(xpos=0, ypos=0, width=width, height=1)
    Window(FormattedTextControl(text)).write_to_screen(screen, MouseHandlers(), place, "", False, None)
    return screen.data_buffer[0]
