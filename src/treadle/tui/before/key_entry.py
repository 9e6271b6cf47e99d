"""A provider's key is typed or pasted without being shown, and tried while the person may skip that."""

from collections.abc import Awaitable
from typing import TypeVar

from treadle.tui.before.inline import Inline, question_keys
from treadle.tui.ending import Left
from treadle.tui.paint.lines import Line, cells, clip, line, wrap
from treadle.tui.paint.look import Look
from treadle.tui.question.dialog import Key, Press

_T = TypeVar("_T")

_MOST_DOTS = 24
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
        signs = look.theme.signs
        row = line(("accent", signs.running), f" {text}{signs.more} ", ("dim", f"{signs.dot} esc to skip"))
        return [clip(row, columns - 1, signs.more)]

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
        bar = line(("warn", signs.bar), " ")
        inner = columns - cells(bar)
        above = wrap(line(("bold", self._title)), inner)
        if self._problem:
            above += wrap(line(("warn", f"  {self._problem}")), inner, line("  "))
        above += wrap(line(f"  {self._text}"), inner, line("  "))
        count = len(self._typed)
        dots = min(count, _MOST_DOTS, inner // 2) * "•"
        said = f"  {count} characters" if count else ""
        field = clip(line(("accent", f"{signs.prompt} "), dots, ("dim", said)), inner, signs.more)
        hints = f"enter try it {signs.dot} ctrl-u clear {signs.dot} esc back"
        return [(*bar, *row) for row in (*above, field, clip(line(("dim", hints)), inner, signs.more))]

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
