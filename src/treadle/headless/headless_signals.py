"""Signals to a program that works without a person: the end of the work is known once, and told once."""

import asyncio
import signal
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Interrupt, Source

if TYPE_CHECKING:
    from treadle.door.open_session import LiveSession
    from treadle.door.program import Exit

HEADLESS = Source(kind="headless", id="main")


class HeadlessSignals:
    """SIGINT interrupts the work, a second one ends the program; SIGTERM and SIGHUP end it; all leave it resumable.

    It is entered before its session and left after it. Before there is work, SIGINT ends the program, too. Once the
    end is known, a signal changes nothing: the session closes, and the exit code is the one that was told. A signal
    that ends the program ends the block, and `code` is set. Under nohup SIGHUP is ignored, and stays so.
    """

    def __init__(self, live: "LiveSession") -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._working = False
        self._interrupting: asyncio.Task[None] | None = None
        self._before: dict[signal.Signals, Any] = {}
        self.code: Exit | None = None
        self.heard = False
        """Whether any came, at whatever time."""
        self.interrupted = False
        """Whether the session took an interrupt."""

    def __enter__(self) -> Self:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it for us
            numbers.append(signal.SIGHUP)
        for number in numbers:
            self._before[number] = signal.getsignal(number)
            self._loop.add_signal_handler(number, self._take, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        for number, handler in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, handler)
        return isinstance(error, asyncio.CancelledError) and self.code is not None

    def work_begins(self) -> None:
        """Let SIGINT interrupt what the session does."""
        self._working = True

    def end_is_known(self) -> None:
        """Only hear of signals from now on."""
        self._main = None

    def told(self) -> "Exit":
        """Give the exit code of a program that a signal has ended."""
        assert self.code is not None  # noqa: S101 - nothing else ends the block without a code
        return self.code

    def _take(self, number: signal.Signals) -> None:
        self.heard = True
        if number is signal.SIGINT and self._main is not None and self._working and self._interrupting is None:
            self._interrupting = asyncio.create_task(self._interrupt(), name="interrupt")
        else:
            self._end(number)

    async def _interrupt(self) -> None:
        try:
            await self._live.post(Interrupt(), HEADLESS)
            self.interrupted = True
        except RefusedError:
            self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self._main is None:
            return
        from treadle.door.program import Exit

        self.code = Exit(128 + number)
        self._main.cancel()
        self.end_is_known()


async def until_known(work: Coroutine[Any, Any, int]) -> int:
    """Work; returns the exit code, which no signal changes from then on: the process ends with it."""
    code = await work
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    return code
