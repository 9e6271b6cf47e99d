"""A terminal in memory: keys go in, what a person would see comes out."""

import asyncio
import io
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import pyte
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from pyte.screens import Char
from wcwidth import wcwidth

from treadle.app.config.sections import Editing, Settings
from treadle.app.session.live import LiveSession
from treadle.protocol.messages import Text
from treadle.tui.paint.look import look_of
from treadle.tui.terminal_main import run_interactive

_ROWS = 200
_COLUMNS = 100
_PATIENCE = 90.0
_OSC = re.compile(r"\x1b\](\d+);([^\a\x1b]*)\a")
_REPORT = re.compile(r"\x1b\]7501;([^\x1b]*)\x1b\\")


class _Stream(io.StringIO):
    """Feeds what is written to the emulated terminal."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, rows)
        self._feed = pyte.Stream(self.screen)
        self.writes = 0
        self.bells = 0
        self.titles: list[str] = []
        self.notifications: list[str] = []
        self.reports: list[str] = []

    def write(self, data: str, /) -> int:
        self._feed.feed(data)
        self.writes += 1
        self.reports += _REPORT.findall(data)
        for kind, text in _OSC.findall(data):
            (self.titles if kind == "2" else self.notifications).append(text)
        self.bells += _OSC.sub("", data).count("\a")
        return len(data)


def _text_of(row: Mapping[int, Char]) -> str:
    """Give the text of a row as `pyte.Screen.display` does, which looks at each cell of all rows each time."""
    text, stub = "", False
    for column in range(max(row, default=-1) + 1):
        cell = "" if stub else row[column].data
        stub = cell != "" and wcwidth(cell[0]) == 2
        text += cell
    return text.rstrip()


class Terminal:
    """One running surface, its keyboard and its screen."""

    def __init__(self, keyboard: PipeInput, stream: _Stream) -> None:
        self._keyboard = keyboard
        self._stream = stream
        self._lines = [""] * stream.screen.lines
        self._shown = ""

    @property
    def shown(self) -> str:
        """The screen without blank ends, as lines."""
        screen = self._stream.screen
        if screen.dirty:
            for row in screen.dirty:
                self._lines[row] = _text_of(screen.buffer[row])
            screen.dirty.clear()
            self._shown = "\n".join(self._lines).rstrip()
        return self._shown

    @property
    def writes(self) -> int:
        """How often something was written to the terminal."""
        return self._stream.writes

    @property
    def bells(self) -> int:
        """How often it rang."""
        return self._stream.bells

    @property
    def titles(self) -> list[str]:
        """What the window was called."""
        return self._stream.titles

    @property
    def reports(self) -> list[str]:
        """What the terminal was told of the program's state."""
        return self._stream.reports

    @property
    def notifications(self) -> list[str]:
        """What the desktop was told."""
        return self._stream.notifications

    @property
    def cursor(self) -> tuple[int, int, bool]:
        """The row and column of the terminal's own cursor, and whether it is hidden."""
        cursor = self._stream.screen.cursor
        return cursor.y, cursor.x, cursor.hidden

    def colour_of(self, text: str) -> str:
        """The colour, as six hex digits or a name, in which the last row that holds a text begins to draw it."""
        row, column = max((y, line.find(text)) for y, line in enumerate(self._stream.screen.display) if text in line)
        return str(self._stream.screen.buffer[row][column].fg)

    @property
    def reversed(self) -> list[tuple[int, int]]:
        """Rows and columns of what is drawn in reverse."""
        rows = self._stream.screen.buffer
        return [(row, column) for row in rows for column, cell in rows[row].items() if cell.reverse]

    def type(self, keys: str) -> Self:
        """Press keys, all at once."""
        self._keyboard.send_text(keys)
        return self

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        screen = self._stream.screen
        screen.resize(rows, columns)
        screen.cursor.y, screen.cursor.x = min(screen.cursor.y, rows - 1), min(screen.cursor.x, columns - 1)
        self._lines = [""] * rows
        screen.dirty.clear()
        screen.dirty.update(range(rows))
        signal.raise_signal(signal.SIGWINCH)

    async def until(self, *texts: str) -> None:
        """Wait until all of these are shown."""
        await self.when(lambda: all(text in self.shown for text in texts), str(texts))

    async def until_gone(self, text: str) -> None:
        """Wait until this is not shown any more."""
        await self.when(lambda: text not in self.shown, f"no {text}")

    async def when(self, condition: Callable[[], bool], wanted: str) -> None:
        """Wait until it is so; fails with the screen."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while not condition():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never seen: {wanted}\n{self.shown}") from None


@asynccontextmanager
async def terminal(
    live: LiveSession,
    first_prompt: str = "",
    editing: Editing = Editing.EMACS,
    switch: Callable[[str], None] | None = None,
    settings: Settings | None = None,
    depth: ColorDepth = ColorDepth.DEPTH_4_BIT,
    columns: int = _COLUMNS,
    rows: int = _ROWS,
) -> AsyncIterator[tuple[Terminal, asyncio.Task[int]]]:
    """Run the surface; gives the terminal and the task whose result is the exit code."""
    stream = _Stream(columns, rows)
    output = Vt100_Output(
        stream,
        get_size=lambda: Size(rows=stream.screen.lines, columns=stream.screen.columns),
        term="xterm",
        default_color_depth=depth,
    )
    with create_pipe_input() as keyboard, create_app_session(input=keyboard, output=output):
        task = asyncio.create_task(
            run_interactive(
                live,
                look_of(settings or Settings(editing=editing)),
                first_prompt=(Text(text=first_prompt),) if first_prompt else (),
                switch=switch,
            )
        )
        try:
            yield Terminal(keyboard, stream), task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
