"""Hands the tasks of a batch to workers, a process forked for each, and writes down how they end.

This process has no thread and no open log, so that what it forks begins clean; all that is loaded is shared.
"""

import gc
import math
import os
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import msgspec

from treadle.door.settings import data_directory
from treadle.headless.batch.batch_folder import BatchFolder, TaskRow, why_unwritable
from treadle.headless.batch.batch_lines import BatchLines
from treadle.headless.batch.batch_steps import BatchOptions, Said, failed_row, report_task
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.batch.batch_worker import HANDED_BACK, WorkOn, work_in_fork, work_on
from treadle.headless.batch.task_errors import failure_line
from treadle.protocol.errors import TreadleError

MOST_DEATHS = 3
"""So often a worker of a task may be killed, or fail by its environment, before the task counts as an error."""

LEAVES_WITHIN = 30.0
"""Seconds that workers have to hand their tasks back."""

_LOOKS = 1.0
_CHUNK = 65_536
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TaskProcess:
    """One process, and what it said so far."""

    def __init__(self, pid: int, task: BatchTask, hears: int, *, alone: bool) -> None:
        self.pid = pid
        self.task = task
        self.hears = hears
        self.alone = alone
        self.row: TaskRow | None = None
        self.capped = ""
        self._rest = b""

    def said(self) -> Iterator[Said]:
        """Read what came; the pipe does not block."""
        with suppress(BlockingIOError):
            while data := os.read(self.hears, _CHUNK):
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    said = msgspec.json.decode(line, type=Said)
                    self.row, self.capped = said.row or self.row, self.capped or said.capped
                    yield said


class Dispatcher:
    """The tasks that wait, and the workers. `spent` gives what the run has spent and reserved (US dollars).

    `arrived` gives the tasks that were added since it was asked last; it is asked once more when no other is left.
    `capped` says that the money stopped it, `no_money` why where some is left, `trouble` what else stopped it, where
    that was no signal.
    """

    def __init__(
        self,
        folder: BatchFolder,
        options: BatchOptions,
        tasks: Iterable[BatchTask],
        lines: BatchLines,
        *,
        spent: Callable[[], float],
        arrived: Callable[[], Iterable[BatchTask]] = tuple,
    ) -> None:
        self._folder = folder
        self._options = options
        self._waiting = deque(tasks)
        self._lines = lines
        self._spent = spent
        self._arrived = arrived
        self._workers: dict[int, TaskProcess] = {}
        self._deaths: dict[str, int] = {}
        self._selector = selectors.DefaultSelector()
        self._stops = 0
        self._stopped_at = 0.0
        self._crowd = 0
        self._own: list[int] = []
        self._idles = False
        self.capped = False
        self.no_money = self.trouble = ""

    @property
    def left(self) -> int:
        """How many tasks have not ended."""
        return len(self._waiting) + len(self._workers)

    def work(self, workers: int) -> None:
        """Work until every task has ended, nobody may spend any more, or a signal stops it."""
        self._crowd = workers
        with self._signals() as woken, _pipe() as (lives, holds):
            self._own += [holds]
            gc.collect()
            gc.freeze()  # what is collected in a fork is no longer shared
            self._selector.register(woken, selectors.EVENT_READ)
            while self._goes_on():
                self._start(lives)
                if self._workers or self._idles:
                    self._wait(woken)
                    self._reap()
                self._press()
                if not self._stops:
                    self._waiting.extend(self._arrived())

    def _goes_on(self) -> bool:
        return bool(self._workers) or bool(self._waiting and not self._stops and not self.capped)

    def _start(self, lives: int) -> None:
        while self._waiting and len(self._workers) < self._crowd and not self._stops and not self.capped:
            task = self._affordable()
            if task is None:
                self.capped = not self._workers
                if self.capped and self._rest() > 0:
                    self.no_money = "the rest is less than what a task may cost by itself"
                return
            self._waiting.remove(task)
            self._fork(task, lives)

    def _affordable(self) -> BatchTask | None:
        """Give the next task whose own limit the rest of the money covers; the rest has to be something anyway."""
        if self._options.run_cost is None:
            return self._waiting[0]
        rest = self._rest()
        usual = self._options.flags.get("budget", {}).get("session_cost") or 0.0
        return next((one for one in self._waiting if rest > 0 and (one.max_cost or usual) <= rest), None)

    def _rest(self) -> float:
        """Give what the run may still spend (US dollars)."""
        return math.inf if self._options.run_cost is None else self._options.run_cost - self._spent()

    def _fork(self, task: BatchTask, lives: int) -> None:
        hears, says = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if not pid:
            self._selector.close()
            for end in (*self._own, *(worker.hears for worker in self._workers.values()), hears):
                os.close(end)
            work_in_fork(self._folder, self._options, task, self._work(task), says=says, lives=lives)
        os.close(says)
        os.set_blocking(hears, False)
        worker = TaskProcess(pid, task, hears, alone=not self._workers)
        for other in self._workers.values():
            other.alone = False
        self._workers[pid] = worker
        self._selector.register(hears, selectors.EVENT_READ, worker)
        self._lines.started(task.id)

    def _work(self, task: BatchTask) -> WorkOn:  # noqa: ARG002 - for those whose work is different
        return work_on

    def _wait(self, woken: int) -> None:
        for key, _ in self._selector.select(_LOOKS):
            if key.data is None:
                with suppress(BlockingIOError):
                    os.read(woken, _CHUNK)
            else:
                self._hear(key.data)

    def _hear(self, worker: TaskProcess) -> None:
        for said in worker.said():
            if said.session:
                self._lines.opened(worker.task.id, said.session)
            if said.step:
                self._lines.went(worker.task.id, said.step, said.steps, said.cost)

    def _reap(self) -> None:
        for worker in tuple(self._workers.values()):
            if worker.pid not in self._workers:  # the end of another one ended it
                continue
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._hear(worker)
                self._selector.unregister(worker.hears)
                os.close(worker.hears)
                del self._workers[pid]
                self._ended(worker, os.waitstatus_to_exitcode(status))

    def _ended(self, worker: TaskProcess, code: int) -> None:
        task = worker.task
        if worker.row is not None:
            self._judge(task, worker.row)
        elif worker.capped:
            # Others may have reserved more than they will spend: who was alone has seen the end of the money.
            self._lines.handed_back(task.id)
            if worker.alone:
                self.capped, self.no_money = True, worker.capped
            self._crowd = max(1, len(self._workers))
            self._waiting.append(task)
        elif self._stops:
            self._hand_back(task)
        elif code < 0 or code == HANDED_BACK:
            if not self._try_again(task):
                self._report(
                    task, failed_row(self._folder, task, "killed", f"Its process was killed {MOST_DEATHS} times.")
                )
        else:
            why = f"Its process ended with exit code {code}: see logs/{task.id}.txt."
            self._report(task, failed_row(self._folder, task, "internal", why))

    def _judge(self, task: BatchTask, row: TaskRow) -> None:
        """Report a result; what failed by its environment is tried again first, once there is room on the disk."""
        if row.kind != "environment":
            self._report(task, row)
        elif trouble := why_unwritable(self._folder.path, data_directory()):
            self._hand_back(task)
            self._cannot_write(trouble)
        elif self._stops:
            self._hand_back(task)
        elif self._try_again(task):
            self._lines.notice(f"{task.id} is tried again: {row.why}")
        else:
            self._report(task, row)

    def _try_again(self, task: BatchTask) -> bool:
        """Let a task that this computer ended continue in another process, unless it was tried often enough."""
        self._deaths[task.id] = self._deaths.get(task.id, 0) + 1
        if self._deaths[task.id] >= MOST_DEATHS:
            return False
        self._lines.handed_back(task.id)
        self._waiting.appendleft(task)
        return True

    def _hand_back(self, task: BatchTask) -> None:
        self._lines.handed_back(task.id)
        self._waiting.append(task)

    def _report(self, task: BatchTask, row: TaskRow) -> None:
        """Write a result; where that fails, as on a full disk, all tasks are handed back: their logs keep the work."""
        try:
            notice = report_task(self._folder, row, keeps_copies=self._options.keeps_copies)
        except TreadleError as error:
            self._hand_back(task)
            self._cannot_write(failure_line(error))
            return
        self._lines.ended(row)
        if notice:
            self._lines.notice(notice)

    def _cannot_write(self, trouble: str) -> None:
        """Let the workers hand back what they have, as nothing can be written down."""
        self.trouble = trouble
        self._lines.notice(trouble)
        if not self._stops:
            self._stop()

    def _stop(self) -> None:
        """Let the workers hand back what they have; the second time they are killed."""
        self._stops += 1
        self._stopped_at = time.monotonic()
        self._kill(signal.SIGTERM if self._stops == 1 else signal.SIGKILL)

    def _press(self) -> None:
        """Say that it stops, and end workers that do not hand back what they have."""
        if self._stops:
            self._lines.stops()
        if self._stops and time.monotonic() - self._stopped_at > LEAVES_WITHIN:
            self._kill(signal.SIGKILL)

    def _kill(self, number: signal.Signals) -> None:
        for pid in self._workers:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    @contextmanager
    def _signals(self) -> Iterator[int]:
        """Hear of signals in the loop: the first one hands all tasks back, the second one kills the workers."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            self._stop()

        with _pipe() as (woken, wakes):
            self._own += [woken, wakes]
            for end in (woken, wakes):
                os.set_blocking(end, False)
            before = {number: signal.getsignal(number) for number in (*_STOPS, signal.SIGCHLD)}
            signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
            for number in _STOPS:
                if before[number] is not signal.SIG_IGN:  # as under nohup
                    signal.signal(number, stop)
            old = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
            try:
                yield woken
            finally:
                signal.set_wakeup_fd(old)
                for number, handler in before.items():
                    signal.signal(number, handler)


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)
