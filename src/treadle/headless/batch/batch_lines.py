"""What a batch says as it goes: one line on a terminal that is written over, lines elsewhere, or JSON lines."""

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from treadle.door.opening import this_process
from treadle.door.program import harmless, screen_width, shortened, write_wrapped
from treadle.door.reports import ADDED_TASKS, keep_progress
from treadle.headless.batch.batch_folder import TaskRow
from treadle.present.batch_progress import BatchProgress, TaskMark, progress_line
from treadle.present.spending_words import Spending
from treadle.present.words import counted
from treadle.protocol.base import Record
from treadle.protocol.models import money

_NARROW = 80
_BETWEEN = 0.2
"""Seconds between two writings of the line."""

_KEEPS, _KEEPS_A_TASK = 1.0, 0.002
"""Seconds between two writings for the page, and how much more for each task."""


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


class TasksAdded(Record, frozen=True, kw_only=True, omit_defaults=False, tag="tasks_added", tag_field="type"):
    """Tasks that were added while the batch works."""

    ids: Sequence[str]


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

    `left` is how many tasks have not ended, and `why` says why, empty where none are. `cost` is US dollars, None where
    a part is not known.
    """

    states: Mapping[str, int]
    kinds: Mapping[str, int]
    left: int
    why: str = ""
    cost: float | None
    exit_code: int


class BatchLines:
    """Says what happens. Progress goes to standard error, JSON lines and the sums at the end to standard output."""

    def __init__(self, *, as_json: bool, database: str = "", command: Sequence[str] = ()) -> None:
        self._json = as_json
        self._live = not as_json and sys.stderr.isatty()
        self._database = database
        self._command, self._began_in = command, str(Path.cwd())
        self._stopping = False
        self._process = this_process()
        self._started: BatchStarted | None = None
        self._folder = ""
        self._states: Counter[str] = Counter()
        self._running: dict[str, str] = {}
        self._elsewhere: Mapping[str, str] = {}
        self._ended: list[TaskMark] = []
        self._before: Sequence[TaskMark] = ()
        self._sessions: dict[str, str] = {}
        self._chosen: list[str] = []
        self._besides: Sequence[str] = ()
        self._heard = 0
        self._unheard = ""
        self._refused: Mapping[int, str] = {}
        self._spending = Spending()
        self._began = time.monotonic()
        self._began_at = int(time.time() * 1000)
        self._shown = 0.0
        self._kept = 0.0
        self._drawn = False

    def names(self, chosen: Iterable[str], taken: Iterable[str]) -> None:
        """Take the names of the tasks of this time, and those in small letters that no other task can have."""
        self._chosen = list(chosen)
        self._besides = sorted(set(taken) - {name.lower() for name in self._chosen})

    def began(self, started: BatchStarted, spending: Spending, folder: Path, before: Collection[TaskRow] = ()) -> None:
        """Say what begins; `spending` is what the run has cost before, `before` what had ended in its folder."""
        self._started, self._folder, self._spending = started, str(folder), spending
        self._before = [_mark(row) for row in before]
        self._write(started)
        said = f", {started.ended_before} ended before" if started.ended_before else ""
        limit = "" if started.max_cost is None else f", at most {money(started.max_cost)}"
        tasks, workers = counted(started.tasks, "task"), counted(started.workers, "worker")
        self._say(f"# {started.run}: {tasks}{said}, {workers}{limit}")
        self._keep(now=True)

    def heard(self, lines: int, refused: Mapping[int, str], tasks: Sequence[str] = ()) -> None:
        """Say which `tasks` were added, and which of so many `lines` are newly left out, by their numbers, and why."""
        for number, why in refused.items():
            if number not in self._refused:
                self.notice(f"Line {number} of {Path(self._folder) / ADDED_TASKS} is left out. {why}")
        self._heard, self._refused = lines, dict(refused)
        self._chosen += tasks
        if tasks and self._started is not None:
            self._started = replace(self._started, tasks=self._started.tasks + len(tasks))
            self._write(TasksAdded(ids=tasks))
            self._say(f"# {counted(len(tasks), 'task')} added: {', '.join(tasks)}")
        self._keep(now=True)

    def unheard(self, trouble: str) -> None:
        """Say once that it cannot be known which tasks were added."""
        if trouble != self._unheard:
            self._unheard = trouble
            self.notice(trouble)

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

    def opened(self, task_id: str, session: str) -> None:
        """Take the session in which a task is worked on, now that it is there."""
        self._sessions[task_id] = session
        self._keep(now=True)

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
        self._sessions.pop(row.id, None)
        self._states[row.state] += 1
        self._ended.append(_mark(row))
        self._write(TaskEnded(result=row))
        if not self._json:
            self._say(row_line(row))
        self._draw(now=True)

    def stops(self) -> None:
        """Note that no task begins any more, and that those which run are handed back."""
        if not self._stopping:
            self._stopping = True
            self._keep(now=True)

    def stands(self, spending: Spending, running: Mapping[str, str]) -> None:
        """Say what all workers together have spent and reserved, and at which step tasks are elsewhere."""
        self._spending, self._elsewhere = spending, running
        self._draw()

    def concluded(self, ended: BatchEnded, words: Sequence[str], spending: Spending) -> None:
        """Say how it all ended, and what it has cost."""
        self._clear()
        self._write(ended)
        self._running, self._elsewhere, self._spending = {}, {}, spending
        self._keep(now=True, exit_code=ended.exit_code)
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
        self._keep()
        moment = time.monotonic()
        if not self._live or (moment - self._shown < _BETWEEN and not now):
            return
        self._shown = moment
        progress = self._progress()
        line = "" if progress is None else harmless(progress_line(progress))
        line = shortened(line, (screen_width(sys.stderr) or _NARROW) - 1)
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        self._drawn = True

    def _keep(self, *, now: bool = False, exit_code: int | None = None) -> None:
        """Write down how far it is, for the page."""
        moment = time.monotonic()
        between = _KEEPS + _KEEPS_A_TASK * (len(self._ended) + len(self._before))
        if moment - self._kept < between and not now:
            return
        self._kept = moment
        progress = self._progress()
        if progress is not None:
            keep_progress(replace(progress, ended=self._ended, before=self._before, exit_code=exit_code))

    def _progress(self) -> BatchProgress | None:
        """Give how far it is, without each task that ended; None for who does tasks of no batch in particular."""
        if self._started is None:
            return None
        return BatchProgress(
            run=self._started.run,
            folder=self._folder,
            process=self._process,
            began_at=self._began_at,
            at=self._began_at + int((time.monotonic() - self._began) * 1000),
            tasks=self._started.tasks,
            workers=self._started.workers,
            spending=self._spending,
            most=self._started.max_cost,
            database=self._database,
            states=self._states,
            running={**self._elsewhere, **self._running},
            stopping=self._stopping,
            command=self._command,
            began_in=self._began_in,
            sessions=self._sessions,
            chosen=self._chosen,
            besides=self._besides,
            heard=self._heard,
            refused=self._refused,
        )

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            self._drawn = False


def _mark(row: TaskRow) -> TaskMark:
    return TaskMark(id=row.id, state=row.state, kind=row.kind, session=row.session, cost=row.cost)


def row_line(row: TaskRow) -> str:
    """Say in a line how a task ended."""
    kind, why = f" ({row.kind})" if row.kind else "", f": {row.why}" if row.why else ""
    return f"{row.id}: {row.state}{kind}, {counted(row.steps, 'step')}, {money(row.cost)}, {row.seconds:.0f} s{why}"
