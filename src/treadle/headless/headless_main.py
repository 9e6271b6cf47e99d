"""One task without a person: what happens goes to standard error, the answer to standard output."""

import asyncio
import os
import sys
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from treadle.door.open_session import Feed, LiveSession
from treadle.door.program import harmless, write_wrapped
from treadle.door.settings import outputs
from treadle.headless.progress import (
    HEADLESS,
    HeadlessSignals,
    Progress,
    goes_on,
    is_at_work,
    summary_lines,
    turns_together,
)
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError, TreadleError
from treadle.protocol.events import Delivery, Prompt
from treadle.protocol.goals import GoalStatus, SetGoal
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import (
    ChildChanged,
    GoalChanged,
    Notification,
    PhaseChanged,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)

if TYPE_CHECKING:
    from treadle.door.hosts import StructuredAnswer
    from treadle.door.open_session import RemoteSession
    from treadle.door.program import Exit
    from treadle.headless.records import CommandRecord

_TOLD_WITHIN = 1.0
"""Seconds that a signal waits for the end of a turn that is over."""


class OutputFormat(StrEnum):
    """What goes to standard output: the answer, one JSON object, or one JSON object for each thing that happens."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class TextWriter(Protocol):
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

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...

    def fileno(self) -> int:
        """Give its number."""
        ...


def stdout_for(output: OutputFormat) -> TextWriter:
    """Give standard output; where JSON goes there, nothing else of the process gets into it from now on."""
    if output is OutputFormat.TEXT:
        return sys.stdout
    from treadle.door.program import own_stdout

    return os.fdopen(own_stdout(), "w", encoding="utf-8", errors="backslashreplace")


async def run_headless(
    live: LiveSession,
    task: tuple[UserContent, ...],
    output: OutputFormat,
    *,
    out: TextWriter = sys.stdout,
    err: TextWriter = sys.stderr,
    structured: "StructuredAnswer | None" = None,
    goal: SetGoal | None = None,
) -> int:
    """Start the session and work a task off; returns the exit code. Without a `task` it continues where it was stopped.

    With `structured` the answer has to have that form. With a `goal` it works on until that is met.
    """
    console = HeadlessConsole(live, output, out, err)
    if structured is not None:
        structured.join(live.id, live.awaits_subagents)
    if not task and goal is None:
        from treadle.headless.continuing import words_to_continue

        task = words_to_continue(live)
    with HeadlessSignals(live) as signals:
        async with live.follow() as feed, live:
            try:
                console.begin()
                if goal is not None:
                    await live.post(goal, HEADLESS)
                return await finish_task(live, task, feed, console, signals=signals, structured=structured)
            finally:
                console.end()
    return signals.code_of_signal()


async def finish_task(
    live: LiveSession,
    task: tuple[UserContent, ...],
    feed: Feed,
    console: "HeadlessConsole",
    *,
    signals: HeadlessSignals,
    structured: "StructuredAnswer | None" = None,
) -> int:
    """Post a task, and follow the session until it is done; returns the exit code."""
    ended: list[TurnOutcome] = []
    followed = False
    try:
        if task:
            # The model reads it at its next step where a turn still goes on: it may say what to do otherwise. What
            # waits was said before it.
            is_at_turn = live.status.turn_active and not live.status.queue
            delivery = Delivery.STEER if is_at_turn else Delivery.QUEUE
            await live.post(Prompt(id=uuid.uuid4().hex, content=task, delivery=delivery), HEADLESS)
        if not is_at_work(live):
            from treadle.headless.continuing import stopped_on_opening, until_quiet

            await until_quiet(live, feed, console.show)
            signals.end_is_known()
            stopped = stopped_on_opening(live)
            return console.nothing_to_do() if stopped is None else console.conclude(stopped)
        followed = True
        signals.work_begins()
        outcome = await _until_end(live, feed, console, ended)
    except TreadleError as error:
        console.fail(error, ended, live.by_now)
        raise
    except asyncio.CancelledError:
        if signals.code is None:
            raise
        last = await _end_on_its_way(live, feed) if followed else None
        return console.cut_off(signals.code, (*ended, *filter(None, [last])), live.by_now)
    signals.end_is_known()
    return console.conclude(outcome, structured)


async def _until_end(
    live: LiveSession, feed: Feed, console: "HeadlessConsole", outcomes: list[TurnOutcome]
) -> TurnOutcome:
    """Follow it to the end of its turn, and on while subagents work that nobody waits for: each wakes it.

    How each of its turns ended is added to `outcomes`.
    """
    between = not live.status.turn_active  # turns, by what was told so far
    async for notification in feed:
        console.show(notification)
        match notification:
            case TurnEnded(outcome=outcome):
                outcomes.append(outcome)
                if not goes_on(live, outcome):
                    return turns_together(outcomes)
                between = True
            case TurnStarted():
                between = False
            # Nothing has come of it: it woke nobody, or the goal is met.
            case ChildChanged() | GoalChanged() if between and feed.is_read and not is_at_work(live):
                return turns_together(outcomes) if outcomes else TurnOutcome(stop=TurnStop.END_TURN)
            case _:
                pass
    await live.failure()
    raise SessionError("session-closed", "The session was closed before the task was done.")


async def _end_on_its_way(live: LiveSession, feed: Feed) -> TurnOutcome | None:
    """Give the end of a turn that is over, and that is told as soon as it is in the log."""
    if not is_at_work(live):
        with suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(_TOLD_WITHIN):
                async for notification in feed:
                    if isinstance(notification, TurnEnded):
                        return notification.outcome
    return None


class HeadlessConsole:
    """Writes what happens in the chosen format: the answer to standard output only, the rest to standard error."""

    def __init__(
        self, live: "LiveSession | RemoteSession", output: OutputFormat, out: TextWriter, err: TextWriter
    ) -> None:
        self._live = live
        self._output = output
        self._out = out
        self._err = err
        self._progress = Progress()
        self._says_how_to_go_on = output is OutputFormat.TEXT
        self._goal: GoalStatus | None = None

    def begin(self) -> None:
        """Name the session, and tell what is to be known before it starts."""
        self._say(f"# {notice}" for notice in self._live.notices)
        if self._output is OutputFormat.STREAM_JSON:
            from treadle.headless.records import session_record

            self._record(session_record(self._live))
        else:
            self._say([f"# session {self._live.id}, {self._live.status.model}, mode {self._live.status.mode}"])

    def note(self, text: str) -> None:
        """Say something besides."""
        if self._output is not OutputFormat.STREAM_JSON:
            self._say([f"# {text}"])

    def show(self, notification: Notification) -> None:
        """Write one thing that happened."""
        if isinstance(notification, GoalChanged):
            self._goal = notification.goal
        if isinstance(notification, PhaseChanged) and self._live.status.checking:
            from treadle.present.goal_words import CHECKING_GOAL

            self.note(CHECKING_GOAL)
        if self._output is OutputFormat.STREAM_JSON:
            self._record(notification)
        else:
            self._say(self._progress.take(notification))

    def answer(self, record: "CommandRecord", *, warning: bool) -> int:
        """Write what a command gave; returns the exit code."""
        self._says_how_to_go_on = False
        if self.writes_record:
            self._record(record)
        elif record.text:
            write_wrapped(self._err if warning else self._out, harmless(record.text))
            self._out.flush()
        return record.exit_code

    def nothing_to_do(self) -> int:
        """Say that a resumed session has nothing open."""
        from treadle.door.program import Exit
        from treadle.headless.continuing import NOTHING_LEFT

        self._say([NOTHING_LEFT])
        if self.writes_record:
            from treadle.headless.records import result_record

            self._record(result_record(self._live, TurnOutcome(stop=TurnStop.END_TURN), Exit.DONE))
        return Exit.DONE

    @property
    def writes_record(self) -> bool:
        """Whether the end is written as a record."""
        return self._output is not OutputFormat.TEXT

    def cut_off(self, code: "Exit", ended: Iterable[TurnOutcome], by_now: TurnOutcome | None) -> "Exit":
        """Write how turns `ended`, and what one has come to, where a record is wanted before a signal ends it all."""
        turns = (*ended, *filter(None, [by_now]))
        if turns and self.writes_record:
            from treadle.headless.records import result_record

            whole, cut = turns_together(turns), by_now is not None
            with suppress(OSError):
                self._record(result_record(self._live, whole, code, goal=self._goal, cut_off=cut))
        return code

    def fail(self, error: TreadleError, ended: Sequence[TurnOutcome] = (), by_now: TurnOutcome | None = None) -> None:
        """Write why there is no end, where a record is wanted: such as that a hook keeps the task back.

        `ended` are turns before it, `by_now` is what the one has come to that it cut off.
        """
        if self.writes_record:
            from treadle.door.program import exit_of_error
            from treadle.headless.records import result_record

            why = " ".join(filter(None, (error.what, error.why)))
            last = replace(by_now or TurnOutcome(stop=TurnStop.ERROR), stop=TurnStop.ERROR, why=why)
            whole = turns_together((*ended, last))
            with suppress(OSError):
                self._record(result_record(self._live, whole, exit_of_error(error), goal=self._goal))

    def conclude(self, outcome: TurnOutcome, structured: "StructuredAnswer | None" = None) -> int:
        """Write the answer, which may have to be `structured`; returns the exit code."""
        from treadle.door.program import Exit, describe_model_error, exit_code

        code, missing = exit_code(outcome, self._goal), ""
        if structured is not None and structured.is_missing(outcome):
            from treadle.door.hosts import NO_ANSWER

            code, missing = Exit.FAILED, NO_ANSWER
        self._say(self._progress.finish(outcome.text))
        self._say(self._goal_unchecked())
        if self._output is OutputFormat.TEXT:
            if outcome.text and not self._was_seen(outcome):
                write_wrapped(self._out, harmless(outcome.text.rstrip()))
                self._out.flush()
        else:
            from treadle.headless.records import result_record

            value = None if structured is None else structured.value
            said = replace(outcome, why=missing or outcome.why)
            self._record(result_record(self._live, said, code, value=value, goal=self._goal))
        self._say(summary_lines(outcome, may_change=self._progress.may_change))
        self._say([f"# {missing}"] if missing else [])
        self._say(self._left_open(outcome))
        self._says_how_to_go_on &= outcome.stop is not TurnStop.END_TURN or self._err.isatty()
        self._say(self._how_to_go_on())
        if outcome.error is not None:
            self._say([describe_model_error(outcome.error, self._live.status.model)])
        return code

    def end(self) -> None:
        """Write what was held back when nothing concluded the turn, and how to go on with the session."""
        with suppress(OSError):
            self._say([*self._progress.finish(), *self._how_to_go_on(), *self._ended_with_it()])

    def _ended_with_it(self) -> list[str]:
        """Name what would have woken the agent later: a run ends with its turn."""
        if self._live.continues or not (outputs() / self._live.id / "watchers.json").is_file():
            return []
        from treadle.door.reports import armed_lines

        return [f"# ended with this run: {one}" for one in armed_lines(self._live.id)]

    def _goal_unchecked(self) -> list[str]:
        """Say of a goal that nothing checked why, here and in the record."""
        if self._goal is None:
            return []
        from treadle.present.goal_words import goal_words, left_unchecked

        left = left_unchecked(self._goal, self._live.status.mode)
        self._goal = left or self._goal
        return [f"# {goal_words(left)}"] if left else []

    def _left_open(self, outcome: TurnOutcome) -> list[str]:
        """Say what of the checklist is not done where the model said that the task is."""
        markdown = self._live.status.checklist
        if outcome.stop is not TurnStop.END_TURN or not markdown:
            return []
        from treadle.present.checklist_items import open_words

        left = open_words(markdown)
        return [f"# {left}, although the task ended"] if left else []

    def _how_to_go_on(self) -> list[str]:
        """Say it once, and only where there is something to go on with."""
        from treadle.door.program import resume_line

        wanted, self._says_how_to_go_on = self._says_how_to_go_on and not self._live.empty, False
        return [resume_line(self._live.id)] if wanted else []

    def _was_seen(self, outcome: TurnOutcome) -> bool:
        """Whether the text of a turn that was stopped is that of an earlier step, which is on the same screen."""
        return outcome.text.strip() == self._progress.last and self._out.isatty() and self._err.isatty()

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            write_wrapped(self._err, harmless(line))
        self._err.flush()

    def _record(self, record: object) -> None:
        self._out.write(f"{encode(record).decode()}\n")
        self._out.flush()
