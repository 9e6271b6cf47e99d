"""One task for a session that is open in another process: it waits for its turn there, and for the end of that."""

import asyncio
import signal
import sys
from collections.abc import Awaitable
from contextlib import suppress
from typing import Self

from treadle.door.open_session import PromptRun, RemoteSession, SessionClient
from treadle.door.program import Exit, harmless, write_wrapped
from treadle.headless.headless_main import HeadlessConsole, OutputFormat, TextWriter
from treadle.headless.progress import HEADLESS
from treadle.protocol.errors import SessionClosedError, SessionError, TreadleError
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Notification, PromptDelivered, QuestionAsked, TurnOutcome, TurnStop
from treadle.protocol.usage import Usage

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
    with _Signals() as signals:
        try:
            async with SessionClient(remote, HEADLESS) as client:
                asking = signals.asking = _Asking(client, console, err)
                try:
                    console.begin()
                    return await _until_end(asking, task, console, signals)
                except TreadleError as error:
                    console.fail(error, by_now=asking.by_now)
                    raise
                finally:
                    signals.only_note()
                    console.end()
        except asyncio.CancelledError:
            if signals.code is None:
                raise
            return signals.code


async def _until_end(
    asking: "_Asking", task: tuple[UserContent, ...], console: HeadlessConsole, signals: "_Signals"
) -> int:
    try:
        outcome = await asking.ask(task)
    except asyncio.CancelledError:
        if signals.code is None:
            raise
        ended = await asking.leave(waits=console.writes_record)
        return console.cut_off(signals.code, filter(None, [ended]), None if ended else asking.by_now)
    except SessionError as error:
        if asking.withdrawn is None or error.code != "prompt-dropped":
            raise
        asking.say("# The task was taken back before its turn.")
        return console.cut_off(Exit.INTERRUPTED, (), asking.by_now)
    except SessionClosedError as error:
        session = asking.session_id
        raise SessionError(
            "session-closed",
            f"Session {session} was closed before it took the task.",
            fix=f"Continue it with: treadle -p TASK --resume {session}",
        ) from error
    return console.conclude(outcome)


class _Asking:
    """The prompt, from here to the end of its turn."""

    def __init__(self, client: SessionClient, console: HeadlessConsole, err: TextWriter) -> None:
        self._client = client
        self._console = console
        self._err = err
        self._run: PromptRun | None = None
        self.withdrawn: asyncio.Task[None] | None = None
        self.session_id = client.session.id

    @property
    def by_now(self) -> TurnOutcome:
        """What is known of the turn before its end: what it cost only where it has not begun."""
        begun = self._run is not None and self._run.delivered
        usage = Usage(estimated=begun)
        return TurnOutcome(stop=TurnStop.CANCELLED, usage=usage, cost=None if begun else 0.0)

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

    async def leave(self, *, waits: bool) -> TurnOutcome | None:
        """Take it back before the program ends, if that does not take long; one that `waits` is given how it ended."""
        run = self._run
        if run is None:
            return None
        with suppress(TimeoutError, TreadleError):
            async with asyncio.timeout(_LEAVES_WITHIN):
                await (self.withdrawn or self._quietly(self._client.withdraw(run)))
                if waits and run.delivered:
                    return await run.wait()
        return None

    async def _quietly(self, withdrawing: Awaitable[None]) -> None:
        with suppress(TreadleError):  # it is closed, or out of reach: how it ended is known then
            await withdrawing

    def _leave_to_others(self, question: str) -> bool:
        line = " ".join(question.split())
        self.say(f"# The session asks: {line} Answer it with: treadle --attach {self.session_id}")
        return True

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        write_wrapped(self._err, harmless(text))
        self._err.flush()


def _delivers(notification: Notification, run: PromptRun) -> bool:
    return isinstance(notification, PromptDelivered) and notification.prompt_id == run.id


class _Signals:
    """SIGINT takes the prompt back or interrupts its turn, a second one ends the program, as the others do.

    Once the program ends, further signals change nothing.
    """

    def __init__(self) -> None:
        self.asking: _Asking | None = None
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
            if self.code is not None:
                signal.signal(number, signal.SIG_IGN)  # the program ends with the code of the first one

    def only_note(self) -> None:
        """End nothing any more."""
        self._main = None

    def _take(self, number: signal.Signals) -> None:
        if self._main is None or (number is signal.SIGINT and self.asking is not None and self.asking.withdraw()):
            return
        self.code = Exit(128 + number)
        self._main.cancel()
        self.only_note()
