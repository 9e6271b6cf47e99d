"""One task without a person: what happens goes to standard error, the answer to standard output."""

import asyncio
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterable
from enum import StrEnum
from typing import Protocol, Self

from treadle.app.exits import Exit, exit_code
from treadle.app.report import describe_model_error, harmless
from treadle.app.session.live import LiveSession
from treadle.headless.progress import progress_lines, summary_lines
from treadle.headless.records import result_record, session_record
from treadle.protocol.codec import encode
from treadle.protocol.errors import RefusedError, SessionError
from treadle.protocol.events import Interrupt, Prompt, Source
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Notification, TurnEnded, TurnOutcome

SOURCE = Source(kind="headless", id="main")


class OutputFormat(StrEnum):
    """What goes to standard output: the answer, one JSON object, or one JSON object for each thing that happens."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class Writer(Protocol):
    """Takes text, such as a standard stream."""

    def write(self, text: str, /) -> object:
        """Take text."""
        ...

    def writelines(self, lines: Iterable[str], /) -> object:
        """Take several texts."""
        ...

    def flush(self) -> object:
        """Pass it on."""
        ...


async def run_headless(
    live: LiveSession,
    task: tuple[UserContent, ...],
    output: OutputFormat,
    *,
    out: Writer = sys.stdout,
    err: Writer = sys.stderr,
) -> int:
    """Start the session and work a task off, or what it still has to do when `task` is empty; returns the exit code."""
    console = _Console(live, output, out, err)
    feed = live.follow()
    async with live:
        console.begin()
        with _Signals(live) as signals:
            try:
                if task:
                    await live.post(Prompt(id=uuid.uuid4().hex, content=task), SOURCE)
                if not live.status.turn_active:
                    return console.nothing_to_do()
                outcome = await _until_end(live, feed, console)
            except asyncio.CancelledError:
                if signals.code is None:
                    raise
                return signals.code
        return console.conclude(outcome)


async def _until_end(live: LiveSession, feed: AsyncIterator[Notification], console: "_Console") -> TurnOutcome:
    async for notification in feed:
        console.show(notification)
        if isinstance(notification, TurnEnded) and not live.status.turn_active:
            return notification.outcome
    await live.failure()
    raise SessionError("session-closed", "The session was closed before the task was done.")


class _Console:
    """Writes what happens in the chosen format."""

    def __init__(self, live: LiveSession, output: OutputFormat, out: Writer, err: Writer) -> None:
        self._live = live
        self._output = output
        self._out = out
        self._err = err

    def begin(self) -> None:
        """Name the session, and tell what is to be known before it starts."""
        self._err.writelines(f"# {notice}\n" for notice in self._live.notices)
        if self._output is OutputFormat.STREAM_JSON:
            self._record(session_record(self._live))
        else:
            self._err.write(f"# session {self._live.id}, {self._live.status.model}, mode {self._live.status.mode}\n")

    def show(self, notification: Notification) -> None:
        """Write one thing that happened."""
        if self._output is OutputFormat.STREAM_JSON:
            self._record(notification)
            return
        for line in progress_lines(notification):
            self._err.write(f"{harmless(line)}\n")
        self._err.flush()

    def nothing_to_do(self) -> int:
        """Say that a resumed session has nothing open."""
        self._err.write("Nothing is left to do in this session; give it a task with -p.\n")
        return Exit.DONE

    def conclude(self, outcome: TurnOutcome) -> int:
        """Write the answer; returns the exit code."""
        code = exit_code(outcome)
        if self._output is OutputFormat.TEXT:
            if outcome.text:
                self._out.write(f"{harmless(outcome.text.rstrip())}\n")
                self._out.flush()
        else:
            self._record(result_record(self._live, outcome, code))
        for line in summary_lines(outcome, self._live.id):
            self._err.write(f"{harmless(line)}\n")
        if outcome.error is not None:
            self._err.write(f"{describe_model_error(outcome.error, self._live.status.model)}\n")
        self._err.flush()
        return code

    def _record(self, record: object) -> None:
        self._out.write(f"{encode(record).decode()}\n")
        self._out.flush()


class _Signals:
    """SIGINT interrupts the turn, a second one ends the program; SIGTERM and SIGHUP end it; all leave it resumable."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._interrupting: asyncio.Task[None] | None = None
        self.code: Exit | None = None

    def __enter__(self) -> Self:
        self._loop.add_signal_handler(signal.SIGINT, self._interrupt)
        self._loop.add_signal_handler(signal.SIGTERM, self._end, Exit.TERMINATED)
        self._loop.add_signal_handler(signal.SIGHUP, self._end, Exit.HANGUP)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        if self._interrupting is not None:
            self._end(Exit.INTERRUPTED)
            return
        self._interrupting = asyncio.create_task(self._post_interrupt(), name="interrupt")

    async def _post_interrupt(self) -> None:
        try:
            await self._live.post(Interrupt(), SOURCE)
        except RefusedError:
            self._end(Exit.INTERRUPTED)

    def _end(self, code: Exit) -> None:
        self.code = code
        if self._main is not None:
            self._main.cancel()
