"""Whole lines from the terminal, which echoes and corrects them itself."""

import asyncio
import codecs
import os
import termios
from collections.abc import Callable, Sequence

_TOGETHER = 0.05
"""Seconds in which lines that come one after the other are one paste."""

_CHUNK = 64 * 1024
_FLAGS, _CONTROLS = 3, 6


class Keyboard:
    """Reads lines from a terminal's `file`; `take` gets those that came together, `end` hears of the end of input."""

    def __init__(self, file: int, *, take: Callable[[Sequence[str]], None], end: Callable[[], None]) -> None:
        self._file = file
        self._take = take
        self._end = end
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(file, self._read)

    def close(self) -> None:
        """Read no more."""
        self._loop.remove_reader(self._file)
        if self._timer is not None:
            self._timer.cancel()

    def _read(self) -> None:
        try:
            data = os.read(self._file, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self.close()
            self._flush()
            self._end()
            return
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        self._lines += [line.rstrip("\r") for line in lines]
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_TOGETHER, self._flush)

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._take(lines)

    def begun(self) -> str:
        """Take what was typed so far and not entered yet, and lines that nobody has taken."""
        lines, self._lines = self._lines, []
        rest, self._rest = self._rest, ""
        return "\n".join([*lines, rest + self._decoder.decode(self._pending())])

    def _pending(self) -> bytes:
        """Read what the terminal holds of an unfinished line: it gives that away when it is to give single keys."""
        before = termios.tcgetattr(self._file)
        now = termios.tcgetattr(self._file)
        now[_FLAGS] &= ~termios.ICANON
        now[_CONTROLS][termios.VMIN] = now[_CONTROLS][termios.VTIME] = 0
        termios.tcsetattr(self._file, termios.TCSANOW, now)
        try:
            return os.read(self._file, _CHUNK)
        except OSError:
            return b""
        finally:
            termios.tcsetattr(self._file, termios.TCSANOW, before)
