"""Ending without an answer: the person quits, the terminal is gone, or the program is asked to end."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from treadle.door.program import Exit


class Left(Struct, frozen=True):
    """The person quit, or the terminal is gone; `code` is the exit code."""

    code: int


@contextmanager
def ends_on_signals(end: Callable[[int], None], interrupt: Callable[[], None] | None = None) -> Iterator[None]:
    """Call `end` with the exit code for SIGTERM and SIGHUP, and `interrupt`, where it is given, for SIGINT."""
    loop = asyncio.get_running_loop()
    codes = {signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.HANGUP}
    for number, code in codes.items():
        loop.add_signal_handler(number, end, code)
    if interrupt is not None:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        for number in (*codes, *((signal.SIGINT,) if interrupt is not None else ())):
            loop.remove_signal_handler(number)
