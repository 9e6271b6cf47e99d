"""Draw docs/terminal.svg: the screen of a real run of the demo, at the question about its edit.

make picture
"""

import fcntl
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

import pyte
from pyte.screens import Char

PICTURE = Path(__file__).parents[1] / "docs" / "terminal.svg"
PLACE = Path("/tmp/treadle-picture")  # noqa: S108 - shown in the picture, so it is the same each time
COLUMNS, ROWS = 100, 42
COMMAND_QUESTION = re.compile(r"Run this command\?")
EDIT_QUESTION = re.compile(r"Apply this edit")
SETTLED = 1.5
"""Seconds without a question's keys being taken, and after which the screen is drawn."""
PATIENCE = 30.0

CELL_WIDTH, CELL_HEIGHT, MARGIN, BAR = 8.4, 18.0, 16.0, 30.0
BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
COLOURS = {
    "black": "#5c6370",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": FOREGROUND,
    "brightblack": "#7f848e",
    "brightred": "#ff7a85",
    "brightgreen": "#b5e08f",
    "brightbrown": "#ffd98a",
    "brightblue": "#82c4ff",
    "brightmagenta": "#df9cf0",
    "brightcyan": "#7fd8e3",
    "brightwhite": "#ffffff",
}


class Demo:
    """The demo on a pseudo-terminal of its own, in a home of its own."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        places = {"HOME": str(PLACE), "TREADLE_HOME": str(PLACE / "home")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "treadle", "demo", "--keep", str(PLACE / "ledger")],
            env={**kept, **places, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLORFGBG": "15;0"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=PLACE,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.screen.display)

    def read(self, seconds: float) -> None:
        """Take what the program writes for some seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                self._stream.feed(os.read(self._master, 65536))

    def until(self, wanted: re.Pattern[str]) -> None:
        """Read on until a text is shown, and then until the screen is settled."""
        end = time.monotonic() + PATIENCE
        while not wanted.search(self.text):
            if time.monotonic() > end:
                sys.exit(f"never seen: {wanted.pattern}\n{self.text}")
            self.read(0.2)
        self.read(SETTLED)

    def answer_yes(self) -> None:
        """Confirm the choice that a question begins with, once it takes keys."""
        self.read(1.5)
        os.write(self._master, b"\r")

    def end(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)
        os.close(self._master)


def drawn(screen: pyte.Screen) -> Iterator[str]:
    """Draw a screen without the empty rows at its ends."""
    filled = [number for number, line in enumerate(screen.display) if line.strip()]
    rows = range(filled[0], filled[-1] + 1)
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(rows) * CELL_HEIGHT + 2 * MARGIN + BAR
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
    yield f' width="{width:g}" height="{height:g}"'
    yield ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">'
    yield "<title>Treadle asks before it applies an edit</title>"
    yield f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>'
    for number, colour in enumerate(("#e06c75", "#e5c07b", "#98c379")):
        yield f'<circle cx="{MARGIN + 6 + 20 * number:g}" cy="18" r="6" fill="{colour}"/>'
    for place, row in enumerate(rows):
        yield from _row(screen, row, BAR + MARGIN + place * CELL_HEIGHT)
    yield "</svg>"


def _row(screen: pyte.Screen, row: int, top: float) -> Iterator[str]:
    cells = [(column, screen.buffer[row][column]) for column in range(COLUMNS)]
    for style, group in groupby(cells, key=lambda cell: _style(cell[1])):
        run = list(group)
        text = "".join(cell.data for _, cell in run)
        left, width = MARGIN + run[0][0] * CELL_WIDTH, len(run) * CELL_WIDTH
        colour, behind, weight = style
        if behind:
            yield f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{CELL_HEIGHT:g}" fill="{behind}"/>'
        if text.strip():
            yield (
                f'<text x="{left:g}" y="{top + 13.5:g}" textLength="{width:g}" xml:space="preserve"'
                f' fill="{colour}"{weight}>{escape(text)}</text>'
            )


def _style(cell: Char) -> tuple[str, str, str]:
    """Give the colour of a cell, that behind it (empty for the screen's), and its weight."""
    colour, behind = _colour(cell.fg, FOREGROUND), _colour(cell.bg, "")
    if cell.reverse:
        colour, behind = behind or BACKGROUND, colour
    return colour, behind, ' font-weight="bold"' if cell.bold else ""


def _colour(name: str, default: str) -> str:
    if name == "default":
        return default
    return COLOURS.get(name, f"#{name}" if re.fullmatch(r"[0-9a-fA-F]{6}", name) else default)


def main() -> None:
    """Run the demo up to the question about its edit, and draw that."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(mode=0o700)
    demo = Demo()
    try:
        demo.until(re.compile(f"{COMMAND_QUESTION.pattern}|{EDIT_QUESTION.pattern}"))
        if COMMAND_QUESTION.search(demo.text):  # it is not asked where commands run in a sandbox
            demo.answer_yes()
            demo.until(EDIT_QUESTION)
        PICTURE.write_text("\n".join(drawn(demo.screen)) + "\n", encoding="utf-8")
    finally:
        demo.end()
        shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    main()
