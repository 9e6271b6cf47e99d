"""What a batch says as it goes: one line on a terminal that is written over, lines elsewhere, or JSON lines."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from treadle.door.program import harmless, screen_width, shortened, write_wrapped
from treadle.headless.batch.batch_folder import TaskRow
from treadle.present.spending_words import Spending
from treadle.present.words import counted
from treadle.protocol.base import Record
from treadle.protocol.models import money

_SECONDS_A_DAY = 86_400
_NARROW = 80
_BETWEEN = 0.2
"""Seconds between two writings of the line."""


class BatchStarted(Record, frozen=True, kw_only=True, omit_defaults=False, tag="batch_started", tag_field="type"):
    """What begins: the run's name, how many tasks are to be done, and how many had ended before.

    `spent` is what the run has cost before (US dollars), None where a part is not known.
    """

    run: str
    tasks: int
    ended_before: int
    workers: int
    max_cost: float | None
    spent: float | None


class BatchNotice(Record, frozen=True, kw_only=True, omit_defaults=False, tag="batch_notice", tag_field="type"):
    """What a person should know."""

    text: str


class TaskStarted(Record, frozen=True, kw_only=True, omit_defaults=False, tag="task_started", tag_field="type"):
    """A worker took a task."""

    id: str


class TaskStep(Record, frozen=True, kw_only=True, omit_defaults=False, tag="task_step", tag_field="type"):
    """A task begins a step (prepare, run, collect, check), or its model has made one: then with its number and cost.

    `cost` is US dollars, None where it is not known.
    """

    id: str
    step: str
    model_step: int
    cost: float | None


class TaskHandedBack(Record, frozen=True, kw_only=True, omit_defaults=False, tag="task_handed_back", tag_field="type"):
    """A task goes on later from its log."""

    id: str


class TaskEnded(Record, frozen=True, kw_only=True, omit_defaults=False, tag="task_ended", tag_field="type"):
    """How a task ended, as in `results.jsonl`."""

    result: TaskRow


class BatchEnded(Record, frozen=True, kw_only=True, omit_defaults=False, tag="batch_ended", tag_field="type"):
    """All results of the folder by state and by kind, what the run has spent, and the exit code.

    `cost` is US dollars, None where a part is not known.
    """

    states: Mapping[str, int]
    kinds: Mapping[str, int]
    left: int
    cost: float | None
    exit_code: int


class BatchLines:
    """Says what happens. Progress goes to standard error, JSON lines and the sums at the end to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._live = not as_json and sys.stderr.isatty()
        self._states: Counter[str] = Counter()
        self._running: dict[str, str] = {}
        self._tasks = 0
        self._spending = Spending()
        self._most: float | None = None
        self._began = time.monotonic()
        self._shown = 0.0
        self._drawn = False

    def began(self, started: BatchStarted, spending: Spending) -> None:
        """Say what begins; `spending` is what the run has cost before."""
        self._tasks, self._most, self._spending = started.tasks, started.max_cost, spending
        self._write(started)
        before = f", {started.ended_before} ended before" if started.ended_before else ""
        limit = "" if started.max_cost is None else f", at most {money(started.max_cost)}"
        tasks, workers = counted(started.tasks, "task"), counted(started.workers, "worker")
        self._say(f"# {started.run}: {tasks}{before}, {workers}{limit}")

    def waits(self) -> None:
        """Say that the workers of another batch are still there."""
        self.notice("waiting for the workers of the batch before")

    def notice(self, text: str) -> None:
        """Say what a person should know."""
        self._write(BatchNotice(text=text))
        self._say(f"# {text}")

    def problems(self, found: Sequence[str]) -> None:
        """Name what is wrong with the tasks, whatever the form of the output."""
        for one in found:
            write_wrapped(sys.stderr, harmless(one))

    def started(self, task_id: str) -> None:
        """Say that a task begins."""
        self._running[task_id] = ""
        self._write(TaskStarted(id=task_id))
        self._draw()

    def went(self, task_id: str, step: str, steps: int, cost: float | None) -> None:
        """Say how far a task is, and what its model's last step cost (US dollars), None where that is not known."""
        self._running[task_id] = f"{step} {steps}" if steps else step
        before = self._spending
        self._spending = replace(before, turn=before.turn + (cost or 0.0), unpriced=before.unpriced or cost is None)
        self._write(TaskStep(id=task_id, step=step, model_step=steps, cost=cost))
        self._draw()

    def handed_back(self, task_id: str) -> None:
        """Say that a task goes on later."""
        self._running.pop(task_id, None)
        self._write(TaskHandedBack(id=task_id))
        self._draw()

    def ended(self, row: TaskRow) -> None:
        """Say how a task ended."""
        self._running.pop(row.id, None)
        self._states[row.state] += 1
        self._write(TaskEnded(result=row))
        if not self._json:
            self._say(row_line(row))
        self._draw(now=True)

    def concluded(self, ended: BatchEnded, words: Sequence[str]) -> None:
        """Say how it all ended."""
        self._clear()
        self._write(ended)
        if not self._json:
            write_wrapped(sys.stdout, "\n".join(words))
            sys.stdout.flush()

    def _say(self, line: str) -> None:
        if not self._json:
            self._clear()
            write_wrapped(sys.stderr, harmless(line))
            sys.stderr.flush()

    def _write(self, record: Record) -> None:
        if self._json:
            sys.stdout.write(f"{msgspec.json.encode(record).decode()}\n")
            sys.stdout.flush()

    def _draw(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if not self._live or (moment - self._shown < _BETWEEN and not now):
            return
        self._shown = moment
        line = shortened(harmless(self._status(moment - self._began)), (screen_width(sys.stderr) or _NARROW) - 1)
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            self._drawn = False

    def _status(self, seconds: float) -> str:
        """Say how far it is: what ended, what it costs, how long it may take, and what runs."""
        ended = sum(self._states.values())
        states = [f"{number} {state}" for state, number in sorted(self._states.items())]
        cost = self._spending.words + ("" if self._most is None else f" of {money(self._most)}")
        left = seconds / ended * (self._tasks - ended) if ended else 0.0
        rest = [f"about {_span(left)} left"] if left else []
        running = [f"{name}: {step}" for name, step in self._running.items()]
        return " · ".join([f"{ended}/{self._tasks}", *states, cost, *rest, *running])


def _span(seconds: float) -> str:
    if seconds >= _SECONDS_A_DAY:
        return f"{seconds / _SECONDS_A_DAY:.1f} days"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{max(1, minutes)} min"


def row_line(row: TaskRow) -> str:
    """Say in a line how a task ended."""
    kind = f" ({row.kind})" if row.kind else ""
    return f"{row.id}: {row.state}{kind}, {counted(row.steps, 'step')}, {money(row.cost)}, {row.seconds:.0f} s"
