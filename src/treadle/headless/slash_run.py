"""One slash command without a person: what it shows goes to standard output."""

import sys
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from treadle.door.commands import CommandAnswer, SlashCommand, answered_aside, run_entered, with_outcome
from treadle.door.open_session import Feed, LiveSession, Reach
from treadle.door.opening import Opening
from treadle.door.program import Exit
from treadle.headless.continuing import until_quiet
from treadle.headless.headless_main import HeadlessConsole, OutputFormat, TextWriter, finish_task
from treadle.headless.progress import HEADLESS, HeadlessSignals
from treadle.headless.records import CommandRecord
from treadle.protocol.checkpoints import Restore
from treadle.protocol.goals import GoalState
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notice, Notification
from treadle.protocol.usage import Usage

_CUT_OFF = "A signal ended the program before the command was done. Enter it again."


def for_command(opening: Opening, row: SlashCommand, argument: str) -> Opening:
    """Open a session as a command needs it: one that looks leaves a turn that was going on, any other stops it."""
    looks = row.effect is Reach.SEE and (row.given in (None, Reach.SEE) or not argument)
    return replace(opening, looks=looks, stops=not looks)


async def run_slash_command(
    live: LiveSession,
    command: tuple[SlashCommand, str],
    output: OutputFormat,
    *,
    looks: bool = False,
    out: TextWriter = sys.stdout,
    err: TextWriter = sys.stderr,
) -> int:
    """Start the session and do a command with what follows it; returns the exit code.

    Where it only `looks` at a turn that does not go on, nothing is waited for.
    """
    console, was_active = HeadlessConsole(live, output, out, err), not live.quiet
    used = _Used(console, live.id, command[0].name)
    with HeadlessSignals(live) as signals:
        async with live.follow() as feed, live:
            try:
                console.begin()
                if was_active:
                    await _leave_turn(live, feed, console, looks=looks)
                _each(feed, console.show)
                signals.work_begins()
                answer, code = await _done(live, command, feed, used, waits=not (was_active and looks))
                if answer.send:
                    return await finish_task(live, (Text(text=answer.send),), feed, console, signals=signals)
                signals.end_is_known()
                code = Exit.INTERRUPTED if signals.interrupted else code
                return console.answer(used.record(answer.text, code), warning=answer.warning)
            finally:
                console.end()
    code = signals.code_of_signal()
    return (
        console.answer(replace(used.record(_CUT_OFF, code), cost=None), warning=True) if console.writes_record else code
    )


async def _done(
    live: LiveSession, command: tuple[SlashCommand, str], feed: Feed, used: "_Used", *, waits: bool
) -> tuple[CommandAnswer, Exit]:
    """Do a command, and wait for what it began where it `waits`; an answer with something to send has done nothing."""
    row, argument = command
    post = partial(live.post, source=HEADLESS)
    answer = await run_entered(row, argument, live, post, done="")
    problem = Exit.USAGE
    if answer.send and row.name == "btw":
        answer, problem = await answered_aside(answer.send, live, post), Exit.FAILED
        _each(feed, used.count)
    elif not answer.send:
        if any(isinstance(op, Restore) for op in answer.ops):
            problem = Exit.FAILED
        if waits:
            await until_quiet(live, feed, used.show)
        _each(feed, used.show)
        answer = with_outcome(answer, used.shown)
    goal = live.status.goal
    blocked = row.name == "goal" and goal is not None and goal.state is GoalState.BLOCKED
    return answer, problem if answer.warning else Exit.GOAL if blocked and argument == "resume" else Exit.DONE


def _each(feed: Feed, take: Callable[[Notification], None]) -> None:
    for notification in feed.taken():
        take(notification)


class _Used:
    """What models used for a command, while no turn went on."""

    def __init__(self, console: HeadlessConsole, session_id: str, name: str) -> None:
        self._console = console
        self._session_id = session_id
        self._name = name
        self._usage = Usage()
        self._cost: float | None = 0.0
        self.shown: list[Notification] = []

    def count(self, notification: Notification) -> None:
        """Take what it tells of that no turn counts."""
        if isinstance(notification, Notice) and notification.usage != Usage():
            unknown = self._cost is None or notification.cost is None
            self._usage += notification.usage
            self._cost = None if unknown else (self._cost or 0.0) + (notification.cost or 0.0)

    def show(self, notification: Notification) -> None:
        """Count it, and write it."""
        self.count(notification)
        self.shown.append(notification)
        self._console.show(notification)

    def record(self, text: str, code: int) -> CommandRecord:
        """Say what the command gave."""
        return CommandRecord(
            session_id=self._session_id,
            name=self._name,
            text=text,
            exit_code=code,
            usage=self._usage,
            cost=self._cost,
        )


async def _leave_turn(live: LiveSession, feed: Feed, console: HeadlessConsole, *, looks: bool) -> None:
    """Say what becomes of the turn that was going on: where the command only `looks`, it stays open."""
    if looks:
        console.note('The turn that was going on when the session ended is open: treadle -p "" --continue')
        return
    await until_quiet(live, feed, console.show)
    console.note("The turn that was going on when the session ended is stopped.")
