"""Lists, a hidden key and waiting as plain lines, before there is a session."""

import asyncio
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from treadle.door.program import Exit
from treadle.present.escape import printable
from treadle.tui.ending import Left, ends_on_signals
from treadle.tui.lists.choice_list import Choosing, Chosen
from treadle.tui.question.dialog import QUIET_SECONDS
from treadle.tui.reader.keyboard import Keyboard
from treadle.tui.reader.numbered import NotUnderstood
from treadle.tui.reader.plain_list import ListWord, NumberedList, TakenRow, listing_lines, take_row
from treadle.tui.reader.reader_session_list import SessionList

_T = TypeVar("_T")

_FLAGS = 3
_MOMENT = 2.0
"""Seconds that a list waits for what may change it: it is read out once."""


def write_lines(*lines: str) -> None:
    """Write lines, unless the terminal is gone."""
    text = "".join(f"{printable(line)}\n" for line in lines)
    encoding = sys.stdout.encoding or "ascii"
    with suppress(OSError):
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()


async def choose_by_number(choosing: Choosing, later: Awaitable[Choosing] | None = None) -> Chosen | Left:
    """Read a list out, and take the number of a row; `later` is what is to be chosen if it comes in a moment."""
    if later is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT):
                choosing = await later
    taken = await _take(NumberedList(choosing=choosing))
    if isinstance(taken, Left):
        return taken
    row = taken.row if isinstance(taken, TakenRow) else None
    return Chosen(row, "" if row is None else choosing.rows[row].label)


async def choose_session_by_number(folder: Path) -> str:
    """Let the person choose one of the sessions of a folder, or of all; gives its id, empty where they chose none."""
    sessions = SessionList(folder)
    while True:
        await asyncio.to_thread(sessions.read)
        taken = await _take(sessions.listing)
        if isinstance(taken, Left):
            return ""
        chosen = sessions.taken(taken)
        if chosen is not None:
            return chosen


async def read_hidden(*lines: str) -> str | Left | None:
    """Read a line that is not shown; None where it is empty. What was typed ahead belongs to it."""
    entry: _Entry[str | None] = _Entry()

    def take(entered: Sequence[str]) -> None:
        entry.end(next((line.strip() for line in entered if line.strip()), None))

    with _unseen():
        ended = await entry.run(lines, take)
    write_lines("")
    return ended


async def skippable(text: str, work: Awaitable[_T]) -> _T | Left | None:
    """Say what is being done until it is; None where Ctrl-C skips it."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    left: asyncio.Future[Left | None] = loop.create_future()
    with ends_on_signals(lambda code: _settle(left, Left(code)), lambda: _settle(left, None)):
        write_lines(f"{text}. Ctrl-C skips it.")
        await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return left.result()


class _Entry(Generic[_T]):
    """Takes lines until there is a result."""

    def __init__(self) -> None:
        self._result: asyncio.Future[_T | Left] = asyncio.get_running_loop().create_future()

    def end(self, result: _T | Left) -> None:
        """End `run` with a result."""
        _settle(self._result, result)

    async def run(self, lines: Sequence[str], take: Callable[[Sequence[str]], None]) -> _T | Left:
        """Say `lines`, and give lines that came together to `take`; Ctrl-C, Ctrl-D and signals end it."""
        keyboard = Keyboard(sys.stdin.fileno(), take=take, end=lambda: self.end(Left(Exit.DONE)))
        try:
            with ends_on_signals(lambda code: self.end(Left(code)), lambda: self.end(Left(Exit.INTERRUPTED))):
                write_lines(*lines)
                return await self._result
        finally:
            keyboard.close()


def _settle(future: "asyncio.Future[_T]", result: _T) -> None:
    if not future.done():
        future.set_result(result)


async def _take(listing: NumberedList) -> TakenRow | ListWord | Left:
    """Read a list out until a row is taken; what was typed before answers nothing, and pasted lines neither."""
    loop = asyncio.get_running_loop()
    entry: _Entry[TakenRow | ListWord] = _Entry()
    with suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    shown_at = loop.time()

    def take(lines: Sequence[str]) -> None:
        nonlocal listing, shown_at
        if len(lines) > 1 or loop.time() - shown_at < QUIET_SECONDS:
            write_lines("This came before the list was read, so it answers nothing.")
            return
        taken = take_row(listing, lines[0])
        match taken:
            case NumberedList():
                listing, shown_at = taken, loop.time()
                write_lines(*listing_lines(listing))
            case NotUnderstood():
                write_lines("This is no number of the list.")
            case _:
                entry.end(taken)

    return await entry.run(listing_lines(listing), take)


@contextmanager
def _unseen() -> Iterator[None]:
    """Let the terminal show nothing that is typed."""
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    unseen = [*before]
    unseen[_FLAGS] = before[_FLAGS] & ~termios.ECHO
    termios.tcsetattr(file, termios.TCSANOW, unseen)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(file, termios.TCSANOW, before)
