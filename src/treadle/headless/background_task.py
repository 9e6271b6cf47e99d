"""A task in the background: nobody sits at it, and whoever attaches can answer. It ends when nothing is left to do."""

import asyncio
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from treadle.door.open_session import Attendance, LiveSession
from treadle.door.program import Exit, harmless, write_log
from treadle.headless.continuing import words_to_continue
from treadle.protocol.errors import SessionError, TreadleError
from treadle.protocol.events import Prompt, Source
from treadle.protocol.goals import SetGoal
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Notification, TurnEnded, TurnStarted

_SOURCE = Source(kind="headless", id="background")

_LOOKS = 10.0
"""Seconds until it is looked again whether anything will wake the session: another process may have ended that."""

_ENDS_WITHIN = 10.0
"""Seconds that a turn which was interrupted has to end."""


async def run_background(
    live: LiveSession, task: tuple[UserContent, ...], begun: Callable[[], None], goal: SetGoal | None = None
) -> int:
    """Work a task off, or what the session still has to do when `task` is empty, until nothing is left to do.

    `begun` is called when the task is in the log, and others can attach. Returns the exit code. Raises `TreadleError`
    for what keeps the session from working; what does so later is in the program's log, too.
    """
    if not task and goal is None:
        task = words_to_continue(live)
    attendance = live.attendance = Attendance()
    async with live.follow() as feed, live:
        try:
            await attendance.listening
        except OSError as error:
            raise _unreachable(error) from error
        for notice in live.notices:
            sys.stderr.write(f"# {harmless(notice)}\n")
        if goal is not None:
            await live.post(goal, _SOURCE)
        if task:
            await live.post(Prompt(id=uuid.uuid4().hex, content=task), _SOURCE)
        elif not (live.status.turn_active or live.status.checking):
            sys.stderr.write("This session has nothing left to do. Give it a task with --bg.\n")
        begun()
        try:
            await _Work(live, attendance).follow(feed)
        except TreadleError as error:
            write_log(f"session {live.id}: {error.what} {error.why}")
            raise
    return Exit.DONE


def _unreachable(error: OSError) -> SessionError:
    return SessionError(
        "background-socket",
        "A session in the background could not be reached.",
        why=f"Its socket cannot be made: {error}",
        fix="Check the permissions of the data folder and its disk space, or use -p.",
    )


class _Work:
    """What goes on in the session, as far as its end depends on it."""

    def __init__(self, live: LiveSession, attendance: Attendance) -> None:
        self._live = live
        self._attendance = attendance
        self._in_turn = live.status.turn_active

    async def follow(self, feed: AsyncIterator[Notification]) -> None:
        """Wait until nothing is left to do, or the session is to be stopped. Raises what ends the session."""
        listening = asyncio.create_task(self._listen(feed), name="background")
        try:
            await asyncio.sleep(0)  # what happened by now is heard first
            while not (listening.done() or self._ended()):
                self._attendance.changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOKS):
                        await self._attendance.changed.wait()
            if self._attendance.stopped:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ENDS_WITHIN):
                        await self._turn_ended(listening)
            if listening.done():
                await self._live.failure()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _turn_ended(self, listening: asyncio.Task[None]) -> None:
        while self._in_turn and not listening.done():
            self._attendance.changed.clear()
            await self._attendance.changed.wait()

    async def _listen(self, feed: AsyncIterator[Notification]) -> None:
        try:
            async for notification in feed:
                match notification:
                    case TurnStarted():
                        self._in_turn = True
                    case TurnEnded():
                        self._in_turn = False
                    case _:
                        pass
                self._attendance.changed.set()
        finally:
            self._attendance.changed.set()

    def _ended(self) -> bool:
        """Whether it was stopped, or nothing goes on, waits, listens, or will wake it.

        The hooks at the end of a turn may go on with it: it has ended when surfaces know of that.
        """
        if self._attendance.stopped:
            return True
        live = self._live
        return not (self._in_turn or self._attendance.surfaces or not live.quiet or live.status.queue or live.wakes())


class BackgroundSignals:
    """SIGTERM and SIGINT close the session, which can be resumed; the end of a terminal is none of its business."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self.code: Exit | None = None

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._end, number)
        # Ignored outright it would be for the commands, too.
        self._loop.add_signal_handler(signal.SIGHUP, lambda: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.remove_signal_handler(number)
        return isinstance(error, asyncio.CancelledError) and self.code is not None

    def _end(self, number: signal.Signals) -> None:
        closing, self.code = self.code is not None, Exit(128 + number)
        if self._main is not None and not closing:
            self._main.cancel()
