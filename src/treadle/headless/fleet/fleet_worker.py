"""A worker of a fleet: takes tasks of the runs in a database, forks a process for each, and says how they ended."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from treadle.door.opening import remove_project_copy, this_process
from treadle.door.reports import session_account
from treadle.door.settings import data_directory
from treadle.headless.batch.batch_folder import BatchFolder, TaskRow, why_unwritable
from treadle.headless.batch.batch_lines import BatchLines
from treadle.headless.batch.batch_steps import BatchOptions, copy_of, failed_row
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.batch.batch_worker import WorkOn
from treadle.headless.batch.dispatching import Dispatcher, TaskProcess
from treadle.headless.batch.task_errors import failure_line
from treadle.headless.fleet.artifact_store import artifact_store
from treadle.headless.fleet.fleet_engine import (
    TASK_STEPS,
    EngineGoneError,
    OpenEngine,
    TakenForDeadError,
    id_of,
    task_name,
)
from treadle.headless.fleet.fleet_state import Claim, FencedError, FleetResult, FleetState
from treadle.headless.fleet.fleet_task import FleetPlace, FleetWork, forget_parts
from treadle.protocol.errors import TreadleError

_RUNS_EACH = 1.0


class FleetHome(BatchFolder):
    """The part of a run that is on this computer, for all workers of a data folder: copies, notes and logs of tasks."""

    def __init__(self, path: Path, run: str) -> None:
        super().__init__(path)
        self.run = run
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)  # others may read the folder of a data folder, and an older version made it so


class OpenedEngine:
    """An engine that can be made anew under another name, as after others took this worker for dead.

    `descriptor` is what processes that are forked have to close, or -1.
    """

    def __init__(self, name: str, make: Callable[[str], OpenEngine]) -> None:
        self.name = name
        self._make = make
        self.worker = this_process()
        self.calls = make(self.worker)

    @property
    def descriptor(self) -> int:
        """What processes that are forked have to close, or -1."""
        return self.calls.descriptor

    def renew(self) -> None:
        """Let others have what this worker has, and go on as another one."""
        self.calls.close()
        self.worker = this_process()
        self.calls = self._make(self.worker)


class FleetDispatcher(Dispatcher):
    """The dispatcher of a batch whose tasks come from a database: of one run, or of the oldest open run each time.

    `over` says whether to end where nothing is left to do. `each_round` is called at least once a second.
    """

    def __init__(
        self,
        state: FleetState,
        engine: OpenedEngine,
        place: FleetPlace,
        lines: BatchLines,
        *,
        run: str = "",
        over: Callable[[], bool] = lambda: False,
        each_round: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(BatchFolder(place.folder), BatchOptions(run=run), (), lines, spent=self._counted)
        self._state = state
        self._engine = engine
        self._store = artifact_store(place.store)
        self._place = place
        self._only = run
        self._over = over
        self._each_round = each_round
        self._claims: dict[str, Claim] = {}
        self._steps: dict[str, int] = {}
        self._beaten = 0.0
        self._looked = 0.0
        self._strange: set[str] = set()
        self._engine_gone = False
        self._idles = True
        self._unwritable = False
        self._own += [engine.descriptor] if engine.descriptor >= 0 else []
        self._ended_here = False
        state.database.over = lambda: self._stops > 0

    def _counted(self) -> float:
        return self._state.counted(self._options.run) if self._options.run else 0.0

    def _goes_on(self) -> bool:
        if self._workers:
            return True
        return not self._stops and not self._ended_here

    def _start(self, lives: int) -> None:
        self._beat()
        try:
            self._each_round()
        except TreadleError as error:
            super()._cannot_write(failure_line(error))
        if not self._workers and self._over():
            self._ended_here = True
            return
        if self._unwritable and not self._is_writable_again():
            return
        try:
            self._choose_run()
        except OSError as error:
            self._cannot_write(failure_line(error))
            return
        if not self._options.run or self.capped:
            return
        while len(self._workers) < self._crowd and not self._stops:
            if not self._waiting and not self._claim():
                return
            task = self._affordable()
            if task is None:
                if not self._workers and not self._state.busy(self._options.run, self._engine.worker):
                    self._cap()
                return
            self._waiting.remove(task)
            self._steps[task.id] = 0
            self._fork(task, lives)

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten < self._place.beat and self._beaten and not self._engine_gone:
            return
        self._beaten = now
        try:
            if not self._engine_gone:
                self._engine.calls.beat()
        except EngineGoneError:
            self._engine_gone = True
        except TakenForDeadError:
            self._lines.notice("Others took this worker for dead: it begins again, and its tasks continue elsewhere.")
            self._drop()
        if self._engine_gone:
            self._lines.notice(
                "The engine's process has ended: this worker begins again, and its tasks continue elsewhere."
            )
            self._engine_gone = False
            self._drop()

    def _drop(self) -> None:
        """Leave all tasks to others, and go on as another worker."""
        self._kill(signal.SIGKILL)
        for pid, worker in self._workers.items():
            os.waitpid(pid, 0)
            self._selector.unregister(worker.hears)
            os.close(worker.hears)
            self._lines.handed_back(worker.task.id)
        self._workers.clear()
        self._claims.clear()
        self._waiting.clear()
        old = self._engine.descriptor
        self._engine.renew()
        self._own = [self._engine.descriptor if one == old >= 0 else one for one in self._own]

    def _cannot_write(self, trouble: str) -> None:
        """Leave all tasks to others as long as nothing can be written here."""
        if not self._unwritable:
            self._lines.notice(f"{trouble} This worker waits until it can be, and its tasks continue elsewhere.")
        self._unwritable = True
        self._drop()

    def _is_writable_again(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _RUNS_EACH:
            self._looked = now
            self._unwritable = bool(why_unwritable(self._place.folder, data_directory()))
        return not self._unwritable

    def _choose_run(self) -> None:
        """Turn to the oldest run in which there is work, once nothing of the present one is left here."""
        now = time.monotonic()
        if self._workers or (self._waiting and not self.capped) or now - self._looked < _RUNS_EACH:
            return
        self._looked = now
        open_runs = self._state.open_runs()
        found = [(run, options) for run, options, engine in open_runs if self._only in ("", run) and self._does(engine)]
        run, options = next(iter(found), ("", BatchOptions(run=self._only)))
        if self._waiting and run != self._options.run:
            self._drop()
        self._folder = FleetHome(self._place.folder / run, run) if found else self._folder
        self._options, self.capped = options, not found and bool(self._only)
        if found:
            self._claims = {claim.id: claim for claim in self._state.held_by(run, self._engine.worker)}
            self._waiting = deque(claim.task for claim in self._claims.values())

    def _does(self, engine: str) -> bool:
        if engine != self._engine.name and engine not in self._strange:
            self._strange.add(engine)
            self._lines.notice(
                f"Runs with --engine {engine} are left to other workers: this one has {self._engine.name}."
            )
        return engine == self._engine.name

    def _claim(self) -> bool:
        try:
            return self._claimed()
        except EngineGoneError:
            self._engine_gone = True
            return False

    def _claimed(self) -> bool:
        run = self._options.run
        while (name := self._engine.calls.claim(run, self._crowd - len(self._workers))) is not None:
            claim = self._state.hold(run, id_of(name), self._engine.worker)
            if claim is not None and task_name(run, claim.id, claim.again) == name:
                self._claims[claim.id] = claim
                self._waiting.append(claim.task)
                return True
            for step in TASK_STEPS:  # it has ended: only its engine did not hear of it
                self._engine.calls.finish(name, step)
        return False

    def _work(self, task: BatchTask) -> WorkOn:
        return FleetWork(place=self._place, claim=self._claims[task.id])

    def _hear(self, worker: TaskProcess) -> None:
        task = worker.task.id
        for said in worker.said():
            if said.step:
                self._lines.went(task, said.step, said.steps, said.cost)
            if said.step and not said.steps and task in self._claims:
                self._went(self._claims[task], said.step)

    def _went(self, claim: Claim, step: str) -> None:
        """Let the engine know which steps are done, now that the next one begins."""
        with suppress(FencedError):
            self._state.went(claim, step)
        self._finish(claim, TASK_STEPS.index(step))

    def _finish(self, claim: Claim, steps: int) -> None:
        name = task_name(claim.run, claim.id, claim.again)
        try:
            for step in TASK_STEPS[self._steps.get(claim.id, 0) : steps]:
                self._engine.calls.finish(name, step)
        except EngineGoneError:  # whoever gets the task next finds in its state which steps are done
            self._engine_gone = True
        self._steps[claim.id] = max(steps, self._steps.get(claim.id, 0))

    def _ended(self, worker: TaskProcess, code: int) -> None:
        claim = self._claims.get(worker.task.id)
        if claim is None:  # of before others took this worker for dead
            return
        try:
            self._state.rests(claim)
        except FencedError:
            self._claims.pop(claim.id)
            self._lines.handed_back(claim.id)
            return
        capped = worker.capped and worker.row is None
        super()._ended(worker, code)
        if capped and not self._stops:
            self.capped = False
            if worker.alone and not self._state.busy(self._options.run, self._engine.worker):
                self._cap()

    def _cap(self) -> None:
        """Say that the run has no money left: nobody takes its tasks until it is given more."""
        self._state.cap(self._options.run, self._options.run_cost)
        self.capped = True

    def _report(self, task: BatchTask, row: TaskRow) -> None:  # noqa: ARG002 - the shape of its base
        claim = self._claims.pop(row.id)
        try:
            result = self._result(row)
        except OSError as error:
            self._lines.notice(f"What comes of {row.id} cannot be read: {error}.")
            row = failed_row(self._folder, claim.task, "environment", f"report: {failure_line(error)}")
            result = FleetResult(row=row)
        try:
            self._state.end(claim, result)
        except FencedError:
            self._lines.handed_back(row.id)
            return
        self._finish(claim, len(TASK_STEPS))
        if self._store is not None:
            try:
                forget_parts(self._store, claim)
            except OSError as error:
                sys.stderr.write(f"The store still has parts of {row.id}: {error}\n")
        if row.state == "done" and not self._options.keeps_copies:
            copy = copy_of(self._folder, row.id)
            try:
                remove_project_copy(copy)
            except OSError as error:
                self._lines.notice(f"{copy.folder} could not be removed: {error.strerror or error}.")
        if self._only == "":
            self._lines.ended(row)

    def _result(self, row: TaskRow) -> FleetResult:
        def read(folder: str, name: str) -> bytes:
            return (self._folder.path / folder / name).read_bytes()

        account = session_account(row.session) if row.session else None
        made, check = row.patch_sha256 is not None, b""
        with suppress(FileNotFoundError):
            check = read("checks", f"{row.id}.txt")
        return FleetResult(
            row=row,
            model="" if account is None else account.model,
            patch=read("patches", f"{row.id}.diff") if made else None,
            session=read("sessions", f"{row.id}.json").decode() if made else "",
            check=check.decode(errors="replace"),
        )
