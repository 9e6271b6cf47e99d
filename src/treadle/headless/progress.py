"""What a task without a person says as it goes, as lines for one who reads along; and the signals that it hears."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from treadle.protocol.attach import Stamped
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Interrupt, Source
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    Notification,
    PhaseChanged,
    PromptDelivered,
    QueueChanged,
    TurnOutcome,
    TurnResumed,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.tools import FileChange, Flow, ToolKind

if TYPE_CHECKING:
    from treadle.door.open_session import LiveSession
    from treadle.door.program import Exit
    from treadle.present.item_lines import ProgressLine, ProgressLines

_KIND = "headless"
_LOOKS = (ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK, ToolKind.FETCH)


class Progress:
    """Says in lines what happens, without the answer: what may be it is held back until something comes after it."""

    def __init__(self) -> None:
        self._begun: ProgressLines | None = None
        self._before: list[Notification] = []
        self._held: Sequence[str] = ()
        self._text = ""
        self.last = ""
        self.may_change = False  # whether something ran that may change files, as far as that is known

    def take(self, notification: Notification) -> list[str]:
        """Give the lines that can be shown by now."""
        self.may_change |= _may_change(notification)
        if self._begun is None and _begins(notification):
            self._before.append(notification)
            return []
        lines = self._lines(notification)
        if not lines:
            return []
        shown = [*self._held]
        self.last = self._text or self.last
        self._text = "".join(line.text for line in lines if not line.sign)
        cut = len(lines) if lines[-1].sign else len(lines) - 1
        self._held = [line.text for line in lines[cut:]]
        return [*shown, *(line.signed for line in lines[:cut])]

    def _lines(self, notification: Notification) -> "list[ProgressLine]":
        if self._begun is None:
            from treadle.present.item_lines import ProgressLines

            self._begun = ProgressLines(_KIND)
            for one in self._before:
                self._begun.take(Stamped(notification=one))
        return self._begun.take(Stamped(notification=notification))

    def finish(self, answer: str = "") -> list[str]:
        """Give what is still held back, unless it is the answer, or a part of it."""
        held, text = self._held, self._text
        self._held, self._text = (), ""
        if text and f"\n\n{text}\n\n" in f"\n\n{answer.strip()}\n\n":
            return []
        self.last = text or self.last
        return [*held]


def _may_change(notification: Notification) -> bool:
    """Whether something runs that may change files; what another program did with the turn is not known."""
    match notification:
        case CallChanged(status=CallStatus.RUNNING | CallStatus.FINISHED, flow=Flow.RUN, kind=kind):
            return kind not in _LOOKS
        case TurnResumed():
            return True
        case _:
            return False


def _begins(notification: Notification) -> bool:
    """Whether it belongs to the beginning of a turn, of which nothing is said: the first request waits for nothing."""
    match notification:
        case PhaseChanged() | TurnStarted() | QueueChanged():
            return True
        case PromptDelivered(by=by, enclosed=enclosed):
            return not by and not enclosed
        case _:
            return False


def summary_lines(outcome: TurnOutcome, *, may_change: bool = True) -> Iterator[str]:
    """Sum up a turn: the files, the tokens, the money, what stopped it; without `may_change` nothing ran that could."""
    from treadle.present.escape import exact_line
    from treadle.present.figures import by_name, unlisted_words, unseen_words
    from treadle.present.words import spent

    for change in by_name(outcome.changes):
        yield f"  {exact_line(change.path)} (+{change.added} -{change.removed})"
    if outcome.unseen:
        yield f"# {unseen_words(outcome.unseen)}"
    elif why := unlisted_words(outcome):
        yield f"# at least these files changed: {why}"
    known = outcome.exact or not (may_change or outcome.unseen)
    if known and not outcome.changes and outcome.stop is TurnStop.END_TURN:
        yield "# no file was changed"  # whatever the model says of that
    usage = outcome.usage
    cached = f", {usage.cache_read_tokens} from cache" if usage.cache_read_tokens else ""
    about = "about " if usage.estimated else ""
    paid = spent(usage, outcome.cost)
    tokens = f"{about}{usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens} tokens in{cached}"
    steps = "1 step" if outcome.steps == 1 else f"{outcome.steps} steps"
    yield f"# {outcome.stop}: {steps}, {tokens}, {usage.output_tokens} out, {paid}"
    if outcome.denied:
        one = outcome.denied == 1
        calls, them = ("1 call was", "it") if one else (f"{outcome.denied} calls were", "them")
        yield f"# {calls} denied because nobody was there to approve {them}; see --mode"
    if outcome.why:
        yield f"# stopped by {outcome.why}"


def is_at_work(live: "LiveSession") -> bool:
    """Whether something goes on, or waits, or works by itself and will wake the session."""
    status = live.status
    return bool(status.turn_active or status.checking or status.queue or live.awaits_subagents())


def goes_on(live: "LiveSession", outcome: TurnOutcome) -> bool:
    """Whether a run goes on after its last turn: another one has begun, or a subagent that nobody waits for works."""
    return live.status.turn_active or (outcome.stop is TurnStop.END_TURN and live.awaits_subagents())


def turns_together(outcomes: Sequence[TurnOutcome]) -> TurnOutcome:
    """Sum up turns that followed on each other by themselves; the last one says how they ended.

    Where it has no text, such as one that a limit left no step, the one before it says what came of the task.
    """
    whole = outcomes[0]
    for one in outcomes[1:]:
        whole = replace(
            one,
            text=one.text or whole.text,
            steps=whole.steps + one.steps,
            usage=whole.usage + one.usage,
            cost=None if whole.cost is None or one.cost is None else whole.cost + one.cost,
            changes=_changes_together(whole.changes, one.changes),
            unseen=tuple(dict.fromkeys((*whole.unseen, *one.unseen))),
            denied=whole.denied + one.denied,
            refused=whole.refused + one.refused,
            exact=whole.exact
            and one.exact
            and not {each.path for each in whole.changes} & {each.path for each in one.changes},
        )
    return whole


def _changes_together(before: Sequence[FileChange], then: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """Give each file once: what two turns did to it is one change, and none where the second undid the first."""
    changed = {change.path: change for change in before}
    for change in then:
        if (first := changed.get(change.path)) is not None:
            added, removed = first.added + change.added, first.removed + change.removed
            changed[change.path] = replace(change, before=first.before, added=added, removed=removed)
        else:
            changed[change.path] = change
    return tuple(change for change in changed.values() if change.before != change.after)


HEADLESS = Source(kind="headless", id="main")


_IMPATIENT = 5
"""Signals after the end is known that end a close which hangs."""


class HeadlessSignals:
    """SIGINT interrupts the work, a second one ends the program; SIGTERM and SIGHUP end it; all leave it resumable.

    It is entered before its session and left after it. Before there is work, SIGINT ends the program, too. Once the
    end is known, a signal changes nothing: the session closes, and the exit code is the one that was told; only a fifth
    one ends a close that hangs. A signal that ends the program ends the block, and `code` is set. Under nohup SIGHUP is
    ignored, and stays so.
    """

    def __init__(self, live: "LiveSession") -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._working = False
        self._interrupting: asyncio.Task[None] | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._late = 0
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

    def code_of_signal(self) -> "Exit":
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
            self._late += 1
            if self._late >= _IMPATIENT:
                os._exit(128 + number)
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
