"""What else has the terminal for a while: the pager, or the person's editor."""

from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import FormattedTextControl

from treadle.tui.draft.editor import edit_text
from treadle.tui.paint.drawn import erase
from treadle.tui.paint.lines import fragments
from treadle.tui.paint.pager import Pager, PagerKey


class Lent:
    """Lends the terminal of `application`, which runs later; `returned` is called when the pager is closed."""

    def __init__(self, application: Callable[[], Application[Any]], returned: Callable[[], None]) -> None:
        self._application = application
        self._returned = returned
        self._editing = False
        self._pager: Pager | None = None
        self.pages = Window(FormattedTextControl(self._page, focusable=True, show_cursor=False))

    @property
    def paging(self) -> bool:
        """Whether the pager is open."""
        return self._pager is not None

    @property
    def lent(self) -> bool:
        """Whether the terminal is lent."""
        return self._editing or self.paging

    def page(self, pager: Pager) -> None:
        """Show a pager on the alternate screen, and give it every key until it is closed."""
        application = self._application()
        erase(application)
        self._pager = pager
        application.renderer.full_screen = True
        application.layout.focus(self.pages)

    def turn(self, turn: PagerKey, text: str) -> None:
        """Give the pager a key."""
        if self._pager is not None and not self._pager.press(turn, text):
            self._pager = None
            application = self._application()
            application.renderer.erase()
            application.renderer.full_screen = False
            self._returned()

    def end(self) -> None:
        """Close the pager with the application."""
        self._pager = None

    async def edit(self, text: str, suffix: str) -> str:
        """Lend the terminal to the person's editor; gives what became of the text. Raises as `edit_text` does."""
        self._editing = True
        try:
            return await edit_text(text, suffix)
        finally:
            self._editing = False

    def clear_page(self) -> None:
        """Erase what the pager drew, at another size."""
        output, renderer = self._application().output, self._application().renderer
        output.erase_screen()
        output.cursor_goto(0, 0)
        renderer.reset(leave_alternate_screen=False)

    def _page(self) -> StyleAndTextTuples:
        size = self._application().output.get_size()
        return fragments(self._pager.draw(size.columns, size.rows)) if self._pager is not None else []
