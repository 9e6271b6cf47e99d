"""The terminal app: its first paint, what a streaming answer costs, and what it does while nobody does anything."""

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.startup import Server, interleaved
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import TextDelta, TurnStarted
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.scrollback import Scrollback
from treadle.tui.paint.theme import Theme

COLUMNS, ROWS = 100, 30
MARK = "›".encode()
TOKENS, PER_SECOND = 2_000, 100
IDLE = 5.0
TICK = 1 / os.sysconf("SC_CLK_TCK")
BARE = "from prompt_toolkit import PromptSession; PromptSession('› ').prompt()"
PARAGRAPH = (
    "The **total** of the cart ignores the `count` of each item, so it is wrong.\n\n- first `look` at it\n"
    "- then *fix* it\n\n```python\ndef total(self) -> float:\n"
    "    return sum(item.price * item.count for item in self.items)\n```\n\n"
)


class OnTerminal:
    """A program on a pseudo-terminal of its own; what it writes is read away and kept."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.begun = time.perf_counter()
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")}
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**kept, "TREADLE_HOME": str(folder / "home"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(slave)
        self.written = b""

    def read(self, seconds: float) -> bytes:
        """Take what is written within some seconds, at least once."""
        if select.select([self._master], [], [], seconds)[0]:
            self.written += os.read(self._master, 65536)
        return self.written

    def until(self, wanted: bytes, since: int = 0) -> float:
        """Wait for a text; gives the seconds since the start."""
        while wanted not in self.read(30)[since:]:
            if self._process.poll() is not None:
                sys.exit(self.written.decode(errors="replace"))
        return time.perf_counter() - self.begun

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    @property
    def cpu(self) -> float:
        """The processor time of the program so far (seconds)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK

    def end(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._master)


class Streams(Server):
    """A model that writes Markdown, a token at a time, `PER_SECOND` of them."""

    def answer(self, connection: socket.socket) -> None:
        """Write until all is written, or nobody reads it any more."""
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        begun = time.perf_counter()
        with suppress(OSError):
            for number, event in enumerate(_events()):
                time.sleep(max(0.0, begun + number / PER_SECOND - time.perf_counter()))
                connection.sendall(f"data: {json.dumps(event)}\n\n".encode())


def _events() -> Iterator[dict[str, object]]:
    yield {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = PARAGRAPH * (TOKENS * 4 // len(PARAGRAPH) + 1)
    for number in range(TOKENS):
        delta = {"type": "text_delta", "text": text[number * 4 : number * 4 + 4]}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": TOKENS}}
    yield {"type": "message_stop"}


@contextmanager
def _open(command: list[str], folder: Path) -> Iterator[OnTerminal]:
    program = OnTerminal(command, folder)
    try:
        yield program
    finally:
        program.end()


def first_paint(command: list[str], folder: Path) -> float:
    """Time a program from its start until its prompt is on the screen (seconds)."""
    with _open(command, folder) as program:
        return program.until(MARK)


def streaming(command: list[str], folder: Path) -> tuple[float, int]:
    """Let an answer stream; gives the part of one core that it took, and the bytes that were drawn."""
    with _open(command, folder) as program:
        program.until(b"? for keys")
        program.read(1.0)
        begun, cpu, drawn = time.perf_counter(), program.cpu, len(program.written)
        program.type(b"go\r")
        while time.perf_counter() - begun < TOKENS / PER_SECOND:
            program.read(0.5)
        return (program.cpu - cpu) / (time.perf_counter() - begun), len(program.written) - drawn


def idle(command: list[str], folder: Path) -> tuple[float, int]:
    """Do nothing for some seconds; gives the processor time (seconds), and the bytes that were drawn."""
    with _open(command, folder) as program:
        program.until(b"? for keys")
        settled = time.perf_counter()
        while time.perf_counter() - settled < 2:
            program.read(0.1)
        begun, cpu, drawn = time.perf_counter(), program.cpu, len(program.written)
        while time.perf_counter() - begun < IDLE:
            program.read(0.5)
        return program.cpu - cpu, len(program.written) - drawn


def long_answer(lines: int) -> float:
    """Stream an answer of so many lines through the view and its picture (seconds)."""
    scrollback, theme = Scrollback(SessionView(), "tui:main"), Theme()
    scrollback.take(Stamped(notification=TurnStarted(turn=1)))
    begun = time.perf_counter()
    for number in range(lines):
        items = scrollback.take(Stamped(notification=TextDelta(text=f"- line {number} of a long answer\n"), at=1))
        painter = Painter(COLUMNS, theme)
        if items:
            painter.items(items)
        if not number % 10:
            painter.living(scrollback.unprinted, ROWS, 0.0)
    return time.perf_counter() - begun


def main() -> None:
    """Print the figures."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "ws").mkdir()
        url = Streams().url
        model = ["--model", "anthropic-compatible/x", "--base-url", url, "-C", str(folder / "ws")]
        app, bare = [sys.executable, "-m", "treadle", *model], [sys.executable, "-c", BARE]
        figures = interleaved(
            {"app": lambda: first_paint(app, folder), "bare": lambda: first_paint(bare, folder)},
        )
        part, drawn = streaming(app, folder)
        awake, redrawn = idle(app, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    short, long = min(long_answer(500) for _ in range(3)), min(long_answer(5_000) for _ in range(3))
    print(f"first paint                   {figures['app'] * 1000:7.1f} ms")
    print(f"  / a bare prompt_toolkit prompt        {figures['app'] / figures['bare']:5.2f}x   (budget 2.5x)")
    print(f"streaming {TOKENS:,} tokens, {PER_SECOND} a second {100 * part:5.1f} % of one core   (budget 15 %)")
    print(f"  drawn                       {drawn / TOKENS:7.0f} bytes a token")
    print(
        f"idle for {IDLE:.0f} s                  {awake * 1000:7.1f} ms of CPU time, {redrawn} bytes drawn   (budget 0)"
    )
    print(f"answer of 5,000 lines         {long * 1000:7.1f} ms")
    print(f"  / one of 500 lines                    {long / short:5.2f}x   (linear: 10x)")


if __name__ == "__main__":
    main()
