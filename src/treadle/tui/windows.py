"""The windows that the screen is made of."""

from collections.abc import Callable

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples, fragment_list_to_text
from prompt_toolkit.layout import AnyContainer, ConditionalContainer, Dimension, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.utils import get_cwidth

MOST_INPUT_LINES = 10

ROWS_IN_SIGHT = 1
"""Rows of the scrollback that stay in sight."""


def when(condition: Callable[[], bool], shown: AnyContainer) -> ConditionalContainer:
    """Show a part only while something is so."""
    return ConditionalContainer(shown, filter=Condition(condition))


def text_window(text: Callable[[], StyleAndTextTuples], *, focusable: bool = False, cursor: bool = False) -> Window:
    """A window as high as its text, whose lines fit the screen."""
    control = FormattedTextControl(text, focusable=focusable, show_cursor=cursor)

    def rows() -> int:
        return 1 + sum(one[1].count("\n") for one in text())

    # To let the window find out takes most of the time of a picture.
    return Window(control, height=lambda: Dimension(preferred=rows()), dont_extend_height=True)


def field(
    control: BufferControl,
    begin: Callable[[], StyleAndTextTuples],
    most: Callable[[], int | None] = lambda: None,
) -> Window:
    """A text that is written in at most `most` rows, after `begin`; further rows stand under its beginning."""

    def prefix(line: int, wrapped: int) -> StyleAndTextTuples:
        begins = begin()
        if line == 0 and wrapped == 0:
            return begins
        width = get_cwidth(fragment_list_to_text(begins))
        bar = begins[:1] if len(begins) > 1 else []
        return (
            [*bar, ("", " " * (width - get_cwidth(fragment_list_to_text(bar))))] if width < 30 else [*bar, ("", "   ")]
        )

    return Window(
        control,
        wrap_lines=True,
        get_line_prefix=prefix,
        dont_extend_height=True,
        height=lambda: Dimension(min=1, max=min(most() or MOST_INPUT_LINES, MOST_INPUT_LINES)),
    )
