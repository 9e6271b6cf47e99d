"""The program on a real pseudo-terminal: keys go in, what a person would see comes out, in colour."""

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pyte

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE
from tests.person import ENTER
from tests.ready import TREADLE, terminal_ready
from treadle.tui.question.dialog import ONCE_MORE

ROWS, COLUMNS = 150, 140


class _Screen(pyte.Screen):
    """A screen that passes over a rendition with a question mark (xterm: a query), as terminals do."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attrs)


class Terminal:
    """The screen and the keyboard of one process."""

    def __init__(
        self, master: int, slave: int, process: asyncio.subprocess.Process, modes: list[Any], size: tuple[int, int]
    ) -> None:
        rows, columns = size
        self._master = master
        self._slave = slave
        self.closed = False
        self.written = bytearray()
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lines = [""] * rows
        self._written = asyncio.Event()
        self._modes = modes
        self.process = process
        self.hears: Callable[[bytes], None] = lambda _: None
        """Is given what the program wrote, as a terminal that answers."""

    def read(self) -> None:
        """Take what the program wrote; at its end the terminal is gone."""
        try:
            data = os.read(self._master, 65536)
        except OSError:
            data = b""
        if data:
            self.written += data
            self.hears(data)
            self._stream.feed(data)
            for row in self._screen.dirty:
                line = self._screen.buffer[row]
                self._lines[row] = "".join(line[column].data for column in range(self._screen.columns)).rstrip()
            self._screen.dirty.clear()
        else:
            asyncio.get_running_loop().remove_reader(self._master)
        self._written.set()

    @property
    def shown(self) -> str:
        """The screen without blank ends, as lines."""
        return "\n".join(self._lines).rstrip()

    def colours_of(self, sign: str, text: str) -> set[str]:
        """The colours of a sign before a text, wherever the two are shown."""
        shown = f"{sign} {text}"
        found = [(row, line.index(shown)) for row, line in enumerate(self._lines) if shown in line]
        return {self._screen.buffer[row][column].fg for row, column in found}

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    async def paste(self, text: str) -> None:
        """Paste as terminals do it, as fast as the program takes it."""
        rest = memoryview(f"\x1b[200~{text}\x1b[201~".encode())
        os.set_blocking(self._master, False)
        try:
            while rest:
                try:
                    rest = rest[os.write(self._master, rest[:4096]) :]
                except BlockingIOError:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0)
        finally:
            os.set_blocking(self._master, True)

    async def confirm(self, *keys: str) -> None:
        """Move the choice of a question, wait as it wants it before a yes, and press Enter."""
        for key in keys:
            self.type(key)
            await asyncio.sleep(0.2)
        await asyncio.sleep(0.9)
        written = len(self.written)
        self.type(ENTER)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                while len(self.written) == written:
                    self._written.clear()
                    await self._written.wait()
        if ONCE_MORE in self.shown:  # on a busy machine the two came too close together
            await asyncio.sleep(1.2)
            self.type(ENTER)

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size; what it shows is of that size from here on."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)
        self._screen.reset()
        self._lines = [""] * rows

    async def until(self, condition: Callable[[str], bool], wanted: str) -> None:
        """Wait until the screen is so; fails with what it shows."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition(self.shown):
                    self._written.clear()
                    await self._written.wait()
        except TimeoutError:
            raise AssertionError(f"never seen: {wanted}\n{self.shown}\n{await self._where()}") from None

    async def until_shown(self, *texts: str) -> None:
        """Wait until all of these are shown."""
        await self.until(lambda shown: all(text in shown for text in texts), str(texts))

    async def ended(self) -> int:
        """Wait for the end of the program; gives its exit code."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"never ended\n{self.shown}\n{await self._where()}") from None

    async def _where(self) -> str:
        """Where the program is that did not come to what was waited for (`tests.ready` lets it say so)."""
        written = len(self.written)
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGUSR2)
        await asyncio.sleep(1)
        return self.written[written:].decode(errors="replace")

    def close(self) -> None:
        """Close the window."""
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._slave)
        os.close(self._master)
        self.closed = True

    def restored(self) -> bool:
        """Whether the settings of the terminal are what they were in the beginning."""
        return termios.tcgetattr(self._master) == self._modes


@asynccontextmanager
async def on_terminal(
    program: Program,
    *arguments: str,
    command: Sequence[str] = (),
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> AsyncIterator[Terminal]:
    """Start the program with a controlling terminal of its own; it is killed with the block at the latest.

    A test that kills it or looks at its process names `TREADLE` as its command.
    """
    ready = () if command else terminal_ready()
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    modes = termios.tcgetattr(slave)
    process = await asyncio.create_subprocess_exec(
        *(command or ready or TREADLE),
        *arguments,
        cwd=program.home.parent,
        env={**program.environment, "NO_COLOR": "", "TERM": "xterm-256color", **program.extra},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=None if ready else lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    terminal = Terminal(master, slave, process, modes, (rows, columns))
    asyncio.get_running_loop().add_reader(master, terminal.read)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if not terminal.closed:
            terminal.close()
