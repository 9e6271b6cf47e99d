"""Where the rows are that were drawn last: the terminal may have wrapped them since."""

import os
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output


def go_to_top(application: Application[Any], columns: int) -> None:
    """Move the cursor to the first cell of what was drawn last, in a terminal that is `columns` wide now."""
    output, renderer = application.output, application.renderer
    at = renderer._cursor_pos  # noqa: SLF001 - the renderer tells nobody
    output.write_raw("\r")
    output.cursor_up(_rows_above(renderer, at.y, at.x, columns) if _wraps() else at.y)
    output.reset_attributes()
    output.enable_autowrap()


def without_cursor_reports(output: Output) -> None:
    """The application is as high as it needs to be: where the cursor is need not be asked, and not be waited for."""
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False


def erase(application: Application[Any], columns: int) -> None:
    """Take away what was drawn last, in a terminal that is `columns` wide now; the cursor is where it began."""
    go_to_top(application, columns)
    # What is erased from the first cell of the screen on, tmux keeps in its history: erase from the second one.
    application.output.write_raw(" ")
    application.output.erase_down()
    application.output.write_raw("\r")
    application.output.flush()
    application.renderer.reset()


def _wraps() -> bool:
    """Whether the terminal wraps what is on the screen when it gets narrower; all do but a few old ones."""
    return "XTERM_VERSION" not in os.environ and os.environ.get("TERM") != "linux"


def _rows_above(renderer: Any, row: int, column: int, columns: int) -> int:
    """Count the rows between the first row and the cursor, which was in `row` and `column`."""
    screen = renderer._last_screen  # noqa: SLF001
    if screen is None:
        return row
    widths = [_width(screen.data_buffer[number]) for number in range(row)]
    return sum(max(1, -(-width // columns)) for width in widths) + column // columns


def _width(cells: Any) -> int:
    """Measure a row up to its last cell that is not blank."""
    return max((number + max(1, cell.width) for number, cell in cells.items() if cell.char.strip()), default=0)
