"""A batch from its beginning to its end: which tasks are left, what has to be there, and the exit code."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.door.known_models import Models, share_limits
from treadle.door.open_session import require_sandbox
from treadle.door.opening import require_queue
from treadle.door.program import Exit
from treadle.door.reports import spent_by_run
from treadle.door.settings import load_settings
from treadle.headless.batch.added_tasks import AddedTasks
from treadle.headless.batch.batch_folder import PREDICTIONS, RESULTS, BatchFolder, TaskRow, is_meant
from treadle.headless.batch.batch_lines import BatchEnded, BatchLines, BatchStarted
from treadle.headless.batch.batch_steps import (
    BatchOptions,
    goes_on_from,
    is_run_unpriced,
    next_attempt,
    report_task,
    task_digest,
)
from treadle.headless.batch.batch_tasks import BatchTask, TaskChoice, chosen_tasks, read_tasks
from treadle.headless.batch.dispatching import Dispatcher
from treadle.headless.batch.task_errors import failure_line
from treadle.present.spending_words import Spending
from treadle.present.words import counted
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode


class BatchWishes(Record, frozen=True, kw_only=True):
    """What the command line says. `max_cost` is US dollars for all tasks of the folder, in all its runs together.

    `retry` names states or kinds of results to do again, `redo` all. With `without_images` tasks that need an image are
    done without it. `flags` are settings for all tasks, `words` all that the command line says.
    """

    tasks: Path
    out: Path
    workers: int
    max_cost: float | None = None
    choice: TaskChoice = TaskChoice()
    retry: Sequence[str] = ()
    redo: bool = False
    repositories: Path | None = None
    without_images: bool = False
    keeps_copies: bool = False
    trusts: bool = False
    as_json: bool = False
    flags: Mapping[str, Any] = {}
    words: Sequence[str] = ()


def run_batch(wishes: BatchWishes) -> int:
    """Do the tasks; returns the exit code. Raises `TreadleError` before anything is started."""
    lines = BatchLines(as_json=wishes.as_json, command=wishes.words)
    tasks, added = wanted_tasks(wishes, lines)
    folder = BatchFolder(wishes.out.expanduser().absolute())
    with folder.held(lines.waits):
        return _done(folder, wishes, tasks=tasks, added=added, lines=lines)


def _nothing(what: str, why: str) -> ConfigError:
    return ConfigError("batch-option", what, why=why, fix="Name another one, or leave it out.")


def wanted_tasks(wishes: BatchWishes, lines: BatchLines) -> tuple[list[BatchTask], AddedTasks]:
    """Read the tasks, and choose those that are meant; several mistakes are a line each. Raises `ConfigError`.

    What was added to the folder is meant by whoever added it; gives where more of it is read.
    """
    every = _read(wishes, lines)
    out, options = wishes.out.expanduser().absolute(), _options("", wishes)
    added = AddedTasks(
        out, wishes.tasks.parent, wishes.repositories, taken=every, check=lambda task: _why_unusable(task, options)
    )
    try:
        tasks = [*chosen_tasks(every, wishes.choice), *added.new()]
    except OSError as error:
        raise ConfigError(
            "batch-tasks",
            f"{added.file} cannot be read.",
            why=str(error),
            fix="Make it readable, or move it away: it has the tasks that were added.",
        ) from error
    if not tasks:
        given = (("--filter", wishes.choice.pattern), ("--slice", wishes.choice.cut))
        flags = " and ".join(f"{flag} {value!r}" for flag, value in given if value)
        raise _nothing(f"{flags} leaves no task of {wishes.tasks}.", "--filter is a regular expression for ids.")
    return tasks, added


def _read(wishes: BatchWishes, lines: BatchLines) -> list[BatchTask]:
    try:
        return read_tasks(wishes.tasks, wishes.repositories)
    except ConfigError as error:
        problems = error.why.splitlines()
        if len(problems) == 1:
            raise
        lines.problems(problems)
        why = "They are listed above." if problems else ""
        raise ConfigError(error.code, error.what, why=why, fix=error.fix) from error


def batch_options(folder: BatchFolder, wishes: BatchWishes) -> BatchOptions:
    """Say what holds for all tasks of a folder."""
    return _options(folder.run, wishes)


def _options(run: str, wishes: BatchWishes) -> BatchOptions:
    return BatchOptions(
        run=run,
        run_cost=wishes.max_cost,
        flags={"mode": Mode.AUTO.value, **wishes.flags},
        trusts=wishes.trusts,
        keeps_copies=wishes.keeps_copies,
    )


def _done(
    folder: BatchFolder, wishes: BatchWishes, *, tasks: Sequence[BatchTask], added: AddedTasks, lines: BatchLines
) -> int:
    options = batch_options(folder, wishes)
    known = folder.results()
    again = {task.id for task in tasks if task.id in known and (wishes.redo or is_meant(known[task.id], wishes.retry))}
    waiting = [task for task in tasks if task.id not in known or task.id in again]
    unmatched = unmatched_kinds(wishes, known, tasks, waiting)
    require_models(waiting, options)
    _forget(folder, [(task, known[task.id]) for task in waiting if task.id in again], redo=wishes.redo)
    spending = _spending(folder)
    started = BatchStarted(
        run=folder.run,
        tasks=len(waiting),
        ended_before=len(tasks) - len(waiting),
        workers=wishes.workers,
        max_cost=options.run_cost,
        spent=None if spending.unpriced else spending.total,
    )
    lines.names([task.id for task in waiting], added.taken)
    lines.began(started, spending, folder.path, left_alone(known, waiting))
    for notice in batch_notices(folder, wishes, tasks, waiting):
        lines.notice(notice)
    if unmatched:
        lines.notice(unmatched)
    lines.heard(added.lines, added.refused)
    runnable = without_skipped(folder, wishes, waiting, lines)
    share_limits()

    def arrived() -> list[BatchTask]:
        return without_skipped(folder, wishes, _arrived(folder, added, lines), lines)

    dispatcher = Dispatcher(
        folder, options, runnable, lines, spent=lambda: spent_by_run(folder.run).cost, arrived=arrived
    )
    dispatcher.work(wishes.workers)
    code = Exit.DONE if not dispatcher.left else Exit.BUDGET if dispatcher.capped else Exit.TRANSIENT
    conclude(
        folder, lines, _spending(folder), left=(dispatcher.left, dispatcher.no_money or dispatcher.trouble), code=code
    )
    return code


def _arrived(folder: BatchFolder, added: AddedTasks, lines: BatchLines) -> list[BatchTask]:
    """Give the tasks that were added since the last look, and have no result yet."""
    before = added.lines
    try:
        new = added.new()
    except OSError as error:
        lines.unheard(
            f"{added.file} cannot be read: {error.strerror or error}. Tasks that were added wait until it can."
        )
        return []
    if added.lines == before:
        return []
    known = folder.results() if new else {}
    new = [task for task in new if task.id not in known]
    lines.heard(added.lines, added.refused, tasks=[task.id for task in new])
    return new


def _why_unusable(task: BatchTask, options: BatchOptions) -> str:
    """Say why a task has a model that cannot be called, or that no limit in money holds for; empty where it can be."""
    try:
        require_models([task], options)
    except ConfigError as error:
        return failure_line(error)
    return ""


def left_alone(known: Mapping[str, TaskRow], waiting: Sequence[BatchTask]) -> list[TaskRow]:
    """Give the results of tasks that are not done this time."""
    again = {task.id for task in waiting}
    return [row for row in known.values() if row.id not in again]


def unmatched_kinds(
    wishes: BatchWishes, known: Mapping[str, TaskRow], tasks: Sequence[BatchTask], waiting: Sequence[BatchTask]
) -> str:
    """Say which kinds that are to be retried no result has; raises `ConfigError` where nothing at all is to be done."""
    kinds = [
        word
        for word in wishes.retry
        if not any(is_meant(known[task.id], (word,)) for task in tasks if task.id in known)
    ]
    if kinds and not waiting:
        raise _nothing(
            f"No result here is of the kind {' or '.join(kinds)}.",
            "--retry names a state or a kind of results.jsonl.",
        )
    return f"No result is of the kind {' or '.join(kinds)}: nothing is done again for --retry." if kinds else ""


def without_skipped(
    folder: BatchFolder, wishes: BatchWishes, waiting: Sequence[BatchTask], lines: BatchLines
) -> list[BatchTask]:
    """Give the tasks that can be worked on, and report the others."""
    skipped = [] if wishes.without_images else [task for task in waiting if task.image]
    for task in skipped:
        row = TaskRow(id=task.id, state="skipped", kind="image")
        report_task(folder, row, keeps_copies=True)
        lines.ended(row)
    return [task for task in waiting if task not in skipped]


def _forget(folder: BatchFolder, ended: Sequence[tuple[BatchTask, TaskRow]], *, redo: bool) -> None:
    """Forget the results of tasks that are to be done again.

    What an error of ours or the provider's ended goes on with its session: nothing that was done is done again.
    """
    for task, row in ended:
        begun = folder.begun(task.id)
        if begun is None:
            continue
        goes_on = row.state == "error" and not redo and bool(begun.tree)
        folder.note(task.id, goes_on_from(begun) if goes_on else next_attempt(folder.run, task, begun))
    if ended:
        folder.forget({task.id for task, _ in ended})


_UNTRUSTED = "Without --trust no rules of a project are used, and its programs run only where that is harmless."


_IMAGES = "Treadle starts no containers, and these need an image. --no-image does them in a plain copy."


def batch_notices(
    folder: BatchFolder, wishes: BatchWishes, tasks: Sequence[BatchTask], waiting: Sequence[BatchTask]
) -> list[str]:
    """Say what trust would change, and which tasks were changed since they ended: their results are of before."""
    trust = [] if wishes.trusts else [_UNTRUSTED]
    if images := [] if wishes.without_images else [task for task in waiting if task.image]:
        trust.append(f"{counted(len(images), 'task')} skipped: {_IMAGES}")
    left = {task.id for task in waiting}
    changed = [
        task.id
        for task in tasks
        if task.id not in left and (begun := folder.begun(task.id)) is not None and begun.digest != task_digest(task)
    ]
    if not changed:
        return trust
    return [
        *trust,
        f"{counted(len(changed), 'task')} changed since their results: {', '.join(changed[:10])}. --redo repeats.",
    ]


def require_models(tasks: Sequence[BatchTask], options: BatchOptions) -> None:
    """Raise `ConfigError` for a model that cannot be called, or whose price no limit in money can go by."""
    require_queue(None)
    capped = options.run_cost is not None or "budget" in options.flags
    for named in sorted({task.model for task in tasks}):
        flags = {**options.flags, **({"model": named} if named else {})}
        settings = load_settings(flags)
        mode = Mode(settings.mode)
        require_sandbox(mode, settings)
        models = Models(settings)
        asyncio.run(models.ask_server(named, mode=mode))
        spec = models.choose(named, mode=mode).spec
        if spec.prices is None and (capped or any(task.max_cost for task in tasks if task.model == named)):
            raise ConfigError(
                "batch-price",
                f"The price of {spec.ref} is not known, so no limit in money holds for it.",
                why="--max-cost, --task-cost or `max_cost` of a task is set.",
                fix=f'Set input_price and output_price under [models."{spec.ref}"], or leave the limits out.',
            )


def _spending(folder: BatchFolder) -> Spending:
    """Give what the run has spent and reserved by now, and whether a part of it is not known."""
    spent = spent_by_run(folder.run)
    unpriced = is_run_unpriced(folder, folder.results())
    return Spending(ended=spent.cost, unpriced=unpriced, estimated=spent.estimated)


def conclude(folder: BatchFolder, lines: BatchLines, spending: Spending, *, left: tuple[int, str], code: Exit) -> None:
    """Say how a batch ended, and what it has spent; `left` is how many tasks have not, and why where that is known."""
    rows = folder.results().values()
    states = Counter(str(row.state) for row in rows)
    kinds = Counter(f"{row.state}: {row.kind}" for row in rows if row.kind)
    number_left, trouble = left
    why, again = trouble.rstrip(".") or "the batch was stopped", "The same command"
    if code is Exit.BUDGET:
        why = f"--max-cost allows no more ({trouble})" if trouble else "--max-cost is used up"
        again = "The same command with a larger one"
    words = [f"{folder.path}: {', '.join(f'{states[one]} {one}' for one in sorted(states)) or 'no results'}."]
    words += [f"  {kind}: {number}" for kind, number in sorted(kinds.items())]
    words.append(f"Spent by all runs: {spending.words}.")
    if number_left:
        words.append(f"{counted(number_left, 'task')} left: {why}. {again} continues them.")
    words.append(f"Results: {folder.path / RESULTS}. Patches: {folder.path / PREDICTIONS}.")
    cost = None if spending.unpriced else spending.total
    ended = BatchEnded(
        states=dict(states),
        kinds=dict(kinds),
        left=number_left,
        why=why if number_left else "",
        cost=cost,
        exit_code=int(code),
    )
    lines.concluded(ended, words, spending)
