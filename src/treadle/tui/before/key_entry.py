"""A provider's key is typed or pasted without being shown, and tried while the person may skip that."""

from collections.abc import Awaitable
from typing import TypeVar

from treadle.tui.before.inline import Inline, question_keys
from treadle.tui.ending import Left
from treadle.tui.lists.login_picker import HiddenField, hidden_lines, waiting_lines
from treadle.tui.paint.lines import Line
from treadle.tui.paint.look import Look
from treadle.tui.question.dialog import Key, Press

_T = TypeVar("_T")

_RUB_OUT, _CLEAR = ("\x7f", "\x08"), "\x15"


async def read_key(title: str, text: str, look: Look, problem: str = "") -> str | Left | None:
    """Read a key that is not shown; None where the person goes back. `text` is said below the title."""
    if look.plain:
        from treadle.tui.reader.before import read_hidden

        how = "Type or paste it and press Enter. Enter alone: back."
        return await read_hidden(f"{title}.", *filter(None, [problem]), text, how)
    return await _KeyEntry(title, text, look, problem).run()


async def with_skip(text: str, work: Awaitable[_T], look: Look) -> _T | Left | None:
    """Show what is being done until it is; None where the person does not wait for it."""
    if look.plain:
        from treadle.tui.reader.before import skippable

        return await skippable(text, work)

    def draw(columns: int, _rows: int) -> list[Line]:
        return waiting_lines(text, columns, look.theme.signs)

    def take(inline: Inline[_T | None], pressed: Press) -> None:
        if pressed.key is Key.ESCAPE:
            inline.end(None)

    inline: Inline[_T | None] = Inline(look, draw, question_keys(take))

    async def finish() -> None:
        inline.end(await work)

    return await inline.run(finish())


class _KeyEntry:
    """The hidden line. Nothing of it is kept but in the result."""

    def __init__(self, title: str, text: str, look: Look, problem: str) -> None:
        self._title = title
        self._text = text
        self._look = look
        self._problem = problem
        self._typed = ""

    async def run(self) -> str | Left | None:
        inline: Inline[str | None] = Inline(self._look, self._draw, question_keys(self._take))
        # Who pastes at once loses nothing: what comes here is shown nowhere.
        return await inline.run(keep_typed=True)

    def _draw(self, columns: int, _rows: int) -> list[Line]:
        signs = self._look.theme.signs
        hidden = HiddenField(title=self._title, text=self._text, count=len(self._typed), problem=self._problem)
        return hidden_lines(hidden, columns, signs)

    def _take(self, inline: Inline[str | None], pressed: Press) -> None:
        match pressed.key:
            case Key.TEXT | Key.PASTE:
                self._typed += pressed.text.strip("\r\n")
            case Key.OTHER if pressed.text in _RUB_OUT:
                self._typed = self._typed[:-1]
            case Key.OTHER if pressed.text == _CLEAR:
                self._typed = ""
            case Key.ENTER if self._typed:
                inline.end(self._typed)
            case Key.ESCAPE:
                inline.end(None)
            case _:
                pass
