"""One task for a session that is open in another process: it waits for its turn there, and for the end of that."""

import asyncio
import signal
import sys
from collections.abc import Awaitable
from contextlib import suppress
from typing import Self

from treadle.door.open_session import PromptRun, RemoteSession, SessionClient
from treadle.door.program import Exit, harmless, write_wrapped
from treadle.headless.headless_main import HEADLESS, HeadlessConsole, OutputFormat, TextWriter
from treadle.protocol.errors import SessionClosedError, SessionError, TreadleError
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Notification, PromptDelivered, QuestionAsked, TurnOutcome

_LEAVES_WITHIN = 2.0
"""Seconds that a prompt has to be withdrawn in when the program is to end."""


async def run_attached(
    remote: RemoteSession,
    task: tuple[UserContent, ...],
    output: OutputFormat,
    *,
    out: TextWriter = sys.stdout,
    err: TextWriter = sys.stderr,
) -> int:
    """Give a task to a session of another process, and wait for the end of its turn; returns the exit code.

    The session stays as it is. Its questions are for those who attach to it and can answer.
    """
    console = HeadlessConsole(remote, output, out, err)
    async with SessionClient(remote, HEADLESS) as client:
        asking = _Asking(client, console, err)
        try:
            console.begin()
            with _Signals(asking) as signals:
                try:
                    outcome = await asking.ask(task)
                except asyncio.CancelledError:
                    if signals.code is None:
                        raise
                    await asking.leave()
                    return signals.code
                except SessionError as error:
                    if asking.withdrawn is None or error.code != "prompt-dropped":
                        raise
                    asking.say("# The task was taken back before its turn.")
                    return Exit.INTERRUPTED
                except SessionClosedError as error:
                    raise SessionError(
                        "session-closed",
                        f"Session {remote.id} was closed before it took the task.",
                        fix=f"Continue it with: treadle -p TASK --resume {remote.id}",
                    ) from error
            return console.conclude(outcome)
        finally:
            console.end()


class _Asking:
    """The prompt, from here to the end of its turn."""

    def __init__(self, client: SessionClient, console: HeadlessConsole, err: TextWriter) -> None:
        self._client = client
        self._console = console
        self._err = err
        self._run: PromptRun | None = None
        self.withdrawn: asyncio.Task[None] | None = None

    async def ask(self, task: tuple[UserContent, ...]) -> TurnOutcome:
        """Send it, and show its turn; raises `TreadleError` where it has no end."""
        remote, told, is_its_turn = self._client.session, False, False
        if remote.status.turn_active:
            self.say("# The session is at work. This waits for its turn.")
        for question in remote.status.questions[:1]:
            told = self._leave_to_others(question.text)
        run = self._run = await self._client.ask(task, followed=True)
        async for notification in run:
            if isinstance(notification, QuestionAsked) and not told:
                told = self._leave_to_others(notification.question.text)
            is_its_turn = is_its_turn or _delivers(notification, run)
            if is_its_turn:
                self._console.show(notification)
        return await run.wait()

    def withdraw(self) -> bool:
        """Take the prompt back, or interrupt its turn; gives False where that is under way or cannot be yet."""
        if self.withdrawn is not None or self._run is None:
            return False
        self.withdrawn = asyncio.create_task(self._quietly(self._client.withdraw(self._run)), name="withdraw")
        return True

    async def leave(self) -> None:
        """Take it back before the program ends, if that does not take long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVES_WITHIN):
                if self.withdrawn is not None:
                    await self.withdrawn
                elif self._run is not None:
                    await self._quietly(self._client.withdraw(self._run))

    async def _quietly(self, withdrawing: Awaitable[None]) -> None:
        with suppress(TreadleError):  # it is closed, or out of reach: how it ended is known then
            await withdrawing

    def _leave_to_others(self, question: str) -> bool:
        line = " ".join(question.split())
        self.say(f"# The session asks: {line} Answer it with: treadle --attach {self._client.session.id}")
        return True

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        write_wrapped(self._err, harmless(text))
        self._err.flush()


def _delivers(notification: Notification, run: PromptRun) -> bool:
    return isinstance(notification, PromptDelivered) and notification.prompt_id == run.id


class _Signals:
    """SIGINT takes the prompt back or interrupts its turn, a second one ends the program, as the others do."""

    def __init__(self, asking: _Asking) -> None:
        self._asking = asking
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it for us
            self._numbers.append(signal.SIGHUP)
        self.code: Exit | None = None

    def __enter__(self) -> Self:
        for number in self._numbers:
            self._loop.add_signal_handler(number, self._take, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._numbers:
            self._loop.remove_signal_handler(number)

    def _take(self, number: signal.Signals) -> None:
        if number is signal.SIGINT and self._asking.withdraw():
            return
        self.code = Exit(128 + number)
        if self._main is not None:
            self._main.cancel()
