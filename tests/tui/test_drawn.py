"""What is drawn is erased, and nothing else, in a terminal that wraps its rows before the program knows of it."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import HSplit, Layout
from prompt_toolkit.output.vt100 import Vt100_Output

from tests.tui.session import session
from tests.tui.terminal import terminal
from treadle.tui.paint.drawn import Anchored, write_above
from treadle.tui.paint.lines import CURSOR
from treadle.tui.paint.shown_rows import Rows
from treadle.tui.windows import text_window

_CONTROL = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])|[\r\n]|[^\x1b]")
_NARROW, _WIDE = 8, 40


class Reflowing(io.StringIO):
    """A terminal without an end that joins and wraps its rows anew when its width changes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._rows = [""]
        self._goes_on = [False]
        self._row = self._column = 0
        self._wraps = True

    @property
    def lines(self) -> list[str]:
        """What is shown, wrapped rows joined."""
        return self._joined()[0]

    def resize(self, width: int) -> None:
        """Change the width; the cursor stays at its character."""
        lines, line, offset = self._joined()
        self.width, self._rows, self._goes_on = width, [], []
        for number, text in enumerate(lines):
            if number == line:
                rows = max(0, -(-len(text) // width) - 1)
                self._row, self._column = len(self._rows) + min(offset // width, rows), offset % width
            parts = [text[place : place + width] for place in range(0, len(text), width)] or [""]
            self._rows += parts
            self._goes_on += [True] * (len(parts) - 1) + [False]

    def _joined(self) -> tuple[list[str], int, int]:
        lines, line, offset, begins = list[str](), 0, 0, True
        for number, row in enumerate(self._rows):
            if begins:
                lines.append("")
            if number == self._row:
                line, offset = len(lines) - 1, len(lines[-1]) + self._column
            lines[-1] += row
            begins = not self._goes_on[number]
        return lines, line, offset

    def write(self, data: str, /) -> int:
        for found in _CONTROL.finditer(data):
            if found[2]:
                self._control(found[2], found[0], int(found[1] or 1) if found[1].isdigit() or not found[1] else 0)
            elif found[0] == "\r":
                self._column = 0
            elif found[0] == "\n":
                self._down()
            else:
                self._put(found[0])
        return len(data)

    def _control(self, kind: str, whole: str, number: int) -> None:
        match kind:
            case "A":
                self._row = max(0, self._row - number)
            case "C":
                self._column = min(self.width - 1, self._column + number)
            case "D":
                self._column = max(0, min(self._column, self.width - 1) - number)
            case "K" | "J":
                self._rows[self._row] = self._rows[self._row][: self._column]
                self._goes_on[self._row] = False
                if kind == "J":
                    del self._rows[self._row + 1 :], self._goes_on[self._row + 1 :]
            case "h" | "l" if "?7" in whole:
                self._wraps = kind == "h"
            case _:
                assert kind in "mhlq", whole

    def _put(self, character: str) -> None:
        if self._column >= self.width and self._wraps:
            self._goes_on[self._row] = True
            self._column = 0
            self._down()
        at = min(self._column, self.width - 1)
        row = self._rows[self._row].ljust(at)
        self._rows[self._row] = row[:at] + character + row[at + 1 :]
        self._column = at + 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
            self._goes_on.append(False)


class Program:
    """Draws rows as wide as it believes the terminal to be, and a draft; `typing` says where the cursor waits."""

    def __init__(self, terminal: Reflowing, *, typing: bool) -> None:
        self.width = terminal.width
        self._pictures = 0
        rows = Rows(lambda: [f"{self._pictures}{'-' * (self.width - 2)}" for _ in range(self._pictures % 5)])
        draft = text_window(lambda: [CURSOR, ("", "draft")], focusable=True, cursor=True)
        self.app: Application[None] = Application(
            layout=Layout(Anchored(lambda: HSplit([rows, draft, rows]), lambda: typing), draft),
            input=DummyInput(),
            output=Vt100_Output(terminal, lambda: Size(rows=1000, columns=self.width), enable_cpr=False),
        )

    def draw(self) -> None:
        """Draw another picture."""
        self._pictures += 1
        self.app.renderer.render(self.app, self.app.layout)

    def print(self, text: str) -> None:
        """Print a line."""
        write_above(self.app, text)


@contextmanager
def _programs(*, typing: bool) -> Iterator[tuple[Program, Reflowing]]:
    terminal = Reflowing(_WIDE)
    program = Program(terminal, typing=typing)
    with set_app(program.app):
        yield program, terminal


STEPS = st.lists(
    st.one_of(
        st.just("draw"),
        st.just("print"),
        st.just("hear"),
        st.integers(min_value=_NARROW, max_value=_WIDE),
    ),
    max_size=30,
)


def _work(program: Program, terminal: Reflowing, steps: list[str | int]) -> list[str]:
    """Do the steps, where a number is another width of the terminal; gives the lines that were printed."""
    printed = list[str]()
    for step in steps:
        match step:
            case int():
                terminal.resize(step)
            case "draw":
                program.draw()
            case "hear":
                program.width = terminal.width
                program.print("")
                program.draw()
            case _:
                printed.append(f"<{len(printed)}{' word' * (len(printed) % 4)}>")
                program.print(f"{printed[-1]}\n")
    program.print("")
    return printed


async def test_the_cursor_waits_where_the_drawing_begins_but_while_a_person_types(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until("? for keys", "ask mode")
        rows = term.shown.split("\n")
        rule, draft = len(rows) - 3, len(rows) - 2
        await term.when(lambda: (term.cursor, term.reversed) == ((rule, 0, True), [(draft, 2)]), "a drawn cursor")
        term.type("ab")
        await term.when(lambda: (term.cursor, term.reversed) == ((draft, 4, False), []), "the terminal's cursor")
        await term.when(lambda: (term.cursor, term.reversed) == ((rule, 0, True), [(draft, 4)]), "a drawn cursor")


@given(STEPS)
def test_what_is_printed_is_all_that_is_left(steps: list[str | int]) -> None:
    with _programs(typing=False) as (program, terminal):
        printed = _work(program, terminal, steps)
        assert [line.rstrip() for line in terminal.lines if line.strip()] == printed


@given(STEPS)
def test_nothing_that_is_printed_is_lost_while_a_person_types(steps: list[str | int]) -> None:
    with _programs(typing=True) as (program, terminal):
        printed = _work(program, terminal, steps)
        left = "\n".join(terminal.lines)
        assert re.findall("<[^>]*>", left) == printed, left
