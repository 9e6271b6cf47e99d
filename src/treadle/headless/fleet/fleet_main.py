"""A batch whose tasks are in a database that workers share, and a worker that does tasks of it."""

import time
from collections.abc import Sequence

from treadle.door.known_models import share_limits
from treadle.door.open_session import require_sandbox
from treadle.door.opening import home_name, require_queue
from treadle.door.program import Exit
from treadle.door.settings import load_settings
from treadle.headless.batch.added_tasks import AddedTasks
from treadle.headless.batch.batch_folder import BatchFolder, Prediction, is_meant
from treadle.headless.batch.batch_lines import BatchLines, BatchStarted
from treadle.headless.batch.batch_main import (
    BatchWishes,
    batch_notices,
    batch_options,
    conclude,
    left_alone,
    require_models,
    unmatched_kinds,
    wanted_tasks,
    without_skipped,
)
from treadle.headless.batch.batch_steps import BatchOptions, goes_on_from, next_attempt
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.fleet.absurd_engine import AbsurdEngine
from treadle.headless.fleet.dbos_engine import EngineProcess
from treadle.headless.fleet.fleet_database import FleetDatabase, shown_url
from treadle.headless.fleet.fleet_engine import LOOKS, OpenEngine, OwnEngine, id_of, task_name
from treadle.headless.fleet.fleet_state import FleetResult, FleetState
from treadle.headless.fleet.fleet_task import FleetPlace
from treadle.headless.fleet.fleet_worker import FleetDispatcher, OpenedEngine
from treadle.present.spending_words import Spending
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode

_COLLECTS_EACH = 0.5


class FleetWishes(Record, frozen=True, kw_only=True):
    """What the command line says of a fleet: its database, where logs are kept, which engine, and how patient it is.

    With `full` tasks may run without a sandbox, and with `trusts` their repositories may be trusted. With `once` a
    worker ends when no task is left.
    """

    database: str
    store: str
    engine: str
    adopt_after: float
    full: bool
    trusts: bool
    once: bool


def run_worker(fleet: FleetWishes, workers: int) -> int:
    """Do tasks of all runs of a database until a signal stops it. Raises `ConfigError`."""
    if not fleet.full:  # here, or each task that this worker takes would end for want of it
        require_sandbox(Mode.AUTO, load_settings({}))
    lines = BatchLines(as_json=False)
    state, engine = _opened(fleet, workers)
    lines.notice(
        f"{shown_url(fleet.database)}: this worker is {engine.worker} and does up to {workers} tasks side by side."
    )
    place = _place(fleet)
    dispatcher = FleetDispatcher(
        state,
        engine,
        place,
        lines,
        over=lambda: fleet.once and not any(one == fleet.engine for _, _, one in state.open_runs()),
    )
    share_limits()
    try:
        dispatcher.work(workers)
    finally:
        engine.calls.close()
    return Exit.DONE


def run_fleet_batch(wishes: BatchWishes, fleet: FleetWishes) -> int:
    """Submit tasks, do some of them, and write down what comes of all; returns the exit code. Raises `ConfigError`."""
    lines = BatchLines(as_json=wishes.as_json, database=shown_url(fleet.database))
    tasks, added = wanted_tasks(wishes, lines)
    folder = BatchFolder(wishes.out.expanduser().absolute())
    with folder.held(lines.waits):
        return _done(folder, wishes, fleet, tasks=tasks, added=added, lines=lines)


def _done(
    folder: BatchFolder,
    wishes: BatchWishes,
    fleet: FleetWishes,
    *,
    tasks: Sequence[BatchTask],
    added: AddedTasks,
    lines: BatchLines,
) -> int:
    options = batch_options(folder, wishes)
    known = folder.results()
    again = [task for task in tasks if task.id in known and (wishes.redo or is_meant(known[task.id], wishes.retry))]
    waiting = [task for task in tasks if task.id not in known or task in again]
    unmatched = unmatched_kinds(wishes, known, tasks, waiting)
    require_models(waiting, options)
    state, engine = _opened(fleet, wishes.workers)
    try:
        _open_run(state, options, fleet)
        _renew(state, folder, again, redo=wishes.redo)
        before = _spending(state, folder)
        lines.began(
            BatchStarted(
                run=folder.run,
                tasks=len(waiting),
                ended_before=len(tasks) - len(waiting),
                workers=wishes.workers,
                max_cost=options.run_cost,
                spent=None if before.unpriced else before.total,
            ),
            before,
            folder.path,
            left_alone(known, waiting),
        )
        for notice in batch_notices(folder, wishes, tasks, waiting):
            lines.notice(notice)
        if unmatched:
            lines.notice(unmatched)
        lines.heard(added.lines, added.refused)
        runnable = without_skipped(folder, wishes, waiting, lines)
        state.add_tasks(folder.run, runnable)
        _submit(state, engine, folder.run, runnable)
        collector = _Collector(state, folder, runnable, lines)
        dispatcher = FleetDispatcher(
            state, engine, _place(fleet), lines, run=folder.run, over=collector.is_over, each_round=collector.look
        )
        share_limits()
        dispatcher.work(wishes.workers)
        if not dispatcher.trouble:
            collector.look(now=True)
    finally:
        engine.calls.close()
    standing = state.standing(folder.run)
    left = len(collector.left)
    code = Exit.DONE if not left else Exit.BUDGET if standing.capped else Exit.TRANSIENT
    conclude(folder, lines, _spending(state, folder), left=(left, dispatcher.trouble), code=code)
    return code


def _spending(state: FleetState, folder: BatchFolder) -> Spending:
    """Give what the run has spent and reserved by now, and whether the cost of a result, or of a task, is not known."""
    begun = (begun for _, begun in state.begun(folder.run).values() if begun is not None)
    unpriced = any(row.cost is None for row in folder.results().values()) or any(one.unpriced for one in begun)
    return Spending(ended=state.standing(folder.run).counted, unpriced=unpriced)


def _opened(fleet: FleetWishes, workers: int) -> tuple[FleetState, OpenedEngine]:
    require_queue(None)
    state = FleetState(FleetDatabase(fleet.database, forks=True))

    def make(worker: str) -> OpenEngine:
        match fleet.engine:
            case "own":
                return OwnEngine(state.database, worker)
            case "absurd":
                return AbsurdEngine(state.database, worker, fleet.adopt_after)
            case _:
                return EngineProcess(fleet.database, worker, workers)

    return state, OpenedEngine(fleet.engine, make)


def _place(fleet: FleetWishes) -> FleetPlace:
    home, folder = home_name()
    return FleetPlace(
        url=fleet.database,
        home=home,
        folder=folder,
        store=fleet.store,
        beat=fleet.adopt_after / LOOKS,
        full=fleet.full,
        trusts=fleet.trusts,
    )


def _open_run(state: FleetState, options: BatchOptions, fleet: FleetWishes) -> None:
    has = state.open_run(options, fleet.engine)
    if has != fleet.engine:
        raise ConfigError(
            "fleet-engine",
            f"The tasks of {options.run} are in another engine.",
            why=f"It was begun with --engine {has}.",
            fix=f"Continue it with --engine {has}.",
        )


def _renew(state: FleetState, folder: BatchFolder, again: Sequence[BatchTask], *, redo: bool) -> None:
    """Let tasks be done again: what an error ended goes on in its session where that is here, others begin anew."""
    if not again:
        return
    rows, there = folder.results(), state.begun(folder.run)
    for task in again:
        _, begun = there.get(task.id, ("", None))
        if begun is not None:
            goes_on = rows[task.id].state == "error" and not redo and bool(begun.tree)
            begun = goes_on_from(begun) if goes_on else next_attempt(folder.run, task, begun)
        state.renew(folder.run, task, begun)
    folder.forget({task.id for task in again})


def _submit(state: FleetState, engine: OpenedEngine, run: str, tasks: Sequence[BatchTask]) -> None:
    """Give the engine what it does not have yet: also after a kill between the table and the engine."""
    generations = state.generations(run)
    names = {task.id: task_name(run, task.id, generations[task.id]) for task in tasks if task.id in generations}
    there = set(engine.calls.list(run))
    new = [name for name in names.values() if name not in there]
    before = [name for name in there if names.get(id_of(name), name) != name]
    if before:  # of tasks that were to be done again
        engine.calls.cancel(before)
    if new:
        engine.calls.submit(run, new)


class _Collector:
    """Writes down in the folder of a batch what all workers have done."""

    def __init__(self, state: FleetState, folder: BatchFolder, tasks: Sequence[BatchTask], lines: BatchLines) -> None:
        self._state = state
        self._folder = folder
        self._lines = lines
        self._place = 0
        self._looked = 0.0
        self._unpriced = any(row.cost is None for row in folder.results().values())
        self.left = {task.id for task in tasks}

    def look(self, *, now: bool = False) -> None:
        """Take what is new."""
        moment = time.monotonic()
        if not now and moment - self._looked < _COLLECTS_EACH:
            return
        self._looked = moment
        live = self._state.live(self._folder.run)
        self._unpriced = self._unpriced or live.unpriced
        self._lines.stands(Spending(ended=live.counted, unpriced=self._unpriced), live.steps)
        while found := self._state.results(self._folder.run, self._place):
            for place, result, notes in found:
                self._place = place
                if result.row.id in self.left:
                    self._take(result, notes)

    def _take(self, result: FleetResult, notes: str) -> None:
        row, folder = result.row, self._folder
        self._unpriced = self._unpriced or row.cost is None
        for name, end, data in (
            ("patches", "diff", result.patch),
            ("sessions", "json", result.session.encode() or None),
            ("checks", "txt", result.check.encode() or None),
        ):
            if data is not None:
                folder.keep(name, f"{row.id}.{end}", data)
        prediction = None
        if row.state in ("done", "failed"):
            patch = (result.patch or b"").decode()
            prediction = Prediction(instance_id=row.id, model_name_or_path=result.model, model_patch=patch)
        folder.add(row, prediction)
        self.left.discard(row.id)
        for note in notes.splitlines():
            self._lines.notice(note)
        self._lines.ended(row)

    def is_over(self) -> bool:
        """Whether nothing more will come: all have ended, or the money is used up and nobody works any more."""
        if not self.left:
            return True
        return self._state.standing(self._folder.run).capped and not self._state.busy(self._folder.run)
