"""The five steps of a task: prepare, run, collect, check, report. Each may be begun twice, and goes on where it was.

They take and give plain values, so that an engine that keeps a journal can call them, too; what is between them is in
the folder of the batch and in the session's log.
"""

import asyncio
import hashlib
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec

from treadle.door.history import export_session, write_export
from treadle.door.opening import (
    Opening,
    ProjectCopy,
    RunShare,
    copy_project,
    mirror_of,
    open_session,
    project_patch,
    remove_project_copy,
)
from treadle.door.policy import try_command
from treadle.door.reports import SessionAccount, session_account
from treadle.door.settings import load_settings
from treadle.door.trust import session_trust
from treadle.headless.batch.batch_folder import BatchFolder, Prediction, TaskBegun, TaskRow
from treadle.headless.batch.batch_tasks import BatchTask, is_address
from treadle.headless.batch.task_errors import failure_line
from treadle.headless.continuing import CONTINUE
from treadle.headless.headless_main import HeadlessConsole, OutputFormat, finish_task
from treadle.headless.progress import HeadlessSignals, turns_together
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.limits import RUN_BUDGET
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notification, TurnOutcome, TurnStop

if TYPE_CHECKING:
    from treadle.door.open_session import LiveSession

TASK_CHECK_SECONDS = 600
"""Seconds that a check may take."""

_LONGEST_NAME = 48
_FAILURES: Mapping[TurnStop, str] = {
    TurnStop.MAX_TURN_REQUESTS: "steps",
    TurnStop.BUDGET: "budget",
    TurnStop.TIME: "time",
    TurnStop.MISTAKES: "mistakes",
    TurnStop.LOOP: "loop",
    TurnStop.REFUSAL: "refusal",
}


class BatchOptions(Record, frozen=True, kw_only=True):
    """What holds for all tasks: the run and what it may cost (US dollars), settings of the command line, trust.

    With `keeps_copies` the copy of a task that is done stays.
    """

    run: str
    run_cost: float | None = None
    flags: Mapping[str, Any] = {}
    trusts: bool = False
    keeps_copies: bool = False


class Said(Record, frozen=True, kw_only=True):
    """What a worker says: the step that it begins, the `session` that is there now, or how its task ended.

    `steps` is the number of the model's last step and `cost` what it cost (US dollars), None where that is not known.
    `capped` is why the money of the run ended it, empty where it did not.
    """

    step: str = ""
    steps: int = 0
    cost: float | None = 0.0
    session: str = ""
    row: TaskRow | None = None
    capped: str = ""


class UnfinishedError(Exception):
    """A task that goes on in another run; `capped` is why the money of this one allows no more of it, if it is that."""

    def __init__(self, *, capped: str = "") -> None:
        super().__init__()
        self.capped = capped


def copy_of(folder: BatchFolder, task_id: str, tree: str = "") -> ProjectCopy:
    """Say where the copy of a task is."""
    return ProjectCopy(
        folder=(folder.path / "copies" / task_id).absolute(),
        base=(folder.path / "tasks" / f"{task_id}.git").absolute(),
        tree=tree,
    )


def session_of(run: str, task_id: str, attempt: int) -> str:
    """Name the session of an attempt: always the same, so that whoever works on the task next goes on with its log."""
    short = task_id
    if len(task_id) > _LONGEST_NAME:
        short = f"{task_id[: _LONGEST_NAME - 9]}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}"
    return f"{run}.{short}" + (f"-{attempt}" if attempt > 1 else "")


def task_digest(task: BatchTask) -> str:
    """Say in short what a task is, to see whether it was changed."""
    return hashlib.sha256(msgspec.json.encode(task)).hexdigest()[:16]


def next_attempt(run: str, task: BatchTask, before: TaskBegun | None) -> TaskBegun:
    """Begin a task again, in a session and a copy of its own."""
    attempt = 1 if before is None else before.attempt + 1
    return TaskBegun(
        digest=task_digest(task),
        session=session_of(run, task.id, attempt),
        attempt=attempt,
        unpriced=before is not None and _is_unpriced(before),
    )


def _is_unpriced(begun: TaskBegun) -> bool:
    account = session_account(begun.session)
    return begun.unpriced or (account is not None and account.cost is None)


def is_run_unpriced(folder: BatchFolder, rows: Mapping[str, TaskRow]) -> bool:
    """Whether a part of what the run cost is not known; `rows` are its results."""
    return any(
        begun.unpriced or rows[name].cost is None if name in rows else _is_unpriced(begun)
        for name, begun in folder.noted()
    )


def goes_on_from(begun: TaskBegun) -> TaskBegun:
    """Let a session go on from the turn that an error ended."""
    account = session_account(begun.session)
    return msgspec.structs.replace(begun, goes_on_after=0 if account is None else account.turns)


def prepare_task(folder: BatchFolder, options: BatchOptions, task: BatchTask) -> TaskBegun:
    """Make the copy that the task is worked on in, unless it is there. Raises `ConfigError`."""
    begun, digest = folder.begun(task.id), task_digest(task)
    if begun is None or (begun.digest != digest and begun.tree):
        begun = next_attempt(options.run, task, begun)
        folder.note(task.id, begun)
    copy = copy_of(folder, task.id, begun.tree)
    account = session_account(begun.session)
    there = bool(begun.tree) and copy.folder.is_dir()
    if account is not None and (not account.model or not there):
        # A kill left it without its first event, or the copy is gone, and with it what the session knows of.
        begun = msgspec.structs.replace(next_attempt(options.run, task, begun), tree=begun.tree if there else "")
        folder.note(task.id, begun)
    if there:
        return begun
    source = task.repo
    if is_address(source):
        source = str(mirror_of(source, folder.path / "repositories"))
    commit = task.commit or ("HEAD" if is_address(task.repo) else "")
    made = copy_project(source, commit, copy, leave_out=folder.path.resolve())
    sys.stderr.writelines(f"# {note}\n" for note in made.notes)
    begun = msgspec.structs.replace(begun, digest=digest, tree=made.tree)
    folder.note(task.id, begun)
    return begun


def run_task(
    folder: BatchFolder,
    options: BatchOptions,
    task: BatchTask,
    begun: TaskBegun,
    *,
    hears: Callable[[Notification], None] = lambda _: None,
    share: RunShare | None = None,
) -> None:
    """Work on the task in its session until its turn ends. Raises `TreadleError`.

    What is in the log is not done again: a turn that was begun goes on, and of one that ended nothing is left to do,
    unless the money of the run ended it, or somebody wants it to go on.
    """
    account = session_account(begun.session)
    content = _next_words(account, task, begun)
    if account is not None and not (account.active or _comes_more(account) or content):
        return
    workspace = copy_of(folder, task.id).folder
    flags = _flags(options, task)
    trust = session_trust(workspace.resolve(), once=options.trusts)
    opening = Opening(
        workspace=trust.workspace,
        settings=load_settings(flags, workspace=trust.workspace, trusted=trust.trusted),
        user_present=False,
        one_task=True,
        given=frozenset(flags if account is None else flags.keys() & {"budget", "mode"}),
        trust=trust,
        run=options.run,
        run_cost=options.run_cost,
        share=share,
        variables=task.env,
        session_id=begun.session,
        resume="" if account is None else begun.session,
    )
    asyncio.run(_worked(opening, content, hears))


def _next_words(account: SessionAccount | None, task: BatchTask, begun: TaskBegun) -> str:
    """Give what to say to the model; empty where its turn goes on, or where all was said."""
    if account is None or not account.prompted:
        return task.prompt
    if account.active or account.outcome is None:
        return ""
    goes_on = account.turns == begun.goes_on_after and account.outcome.stop is not TurnStop.END_TURN
    return CONTINUE if goes_on or why_capped(account.outcome) else ""


def _comes_more(account: SessionAccount) -> bool:
    """Whether another turn follows on the last one by itself, such as one that a subagent wakes."""
    return account.goes_on and (account.outcome is None or account.outcome.stop is TurnStop.END_TURN)


def why_capped(outcome: TurnOutcome) -> str:
    """Say why the money of the run ended a turn; empty where it did not."""
    refused = outcome.stop is TurnStop.ERROR and outcome.error is not None
    why = outcome.error.message if refused and outcome.error is not None else outcome.why
    return why if (refused or outcome.stop is TurnStop.BUDGET) and why.startswith(RUN_BUDGET) else ""


def _flags(options: BatchOptions, task: BatchTask) -> dict[str, Any]:
    flags = dict(options.flags)
    if task.model:
        flags["model"] = task.model
    if task.timeout is not None:
        flags["max_seconds"] = task.timeout
    if task.max_cost is not None:
        flags["budget"] = {**flags.get("budget", {}), "session_cost": task.max_cost}
    return flags


async def _worked(opening: Opening, content: str, hears: Callable[[Notification], None]) -> None:
    live = await open_session(opening)
    console, code = _HeardConsole(live, hears), 0
    with HeadlessSignals(live) as signals:
        async with live.follow() as feed, live:
            try:
                console.begin()
                task = (Text(text=content),) if content else ()
                code = await finish_task(live, task, feed, console, signals=signals)
            finally:
                console.end()
    if signals.heard or code in (128 + signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGHUP):
        raise UnfinishedError


class _HeardConsole(HeadlessConsole):
    """Writes what happens to the log of the task, and passes it on."""

    def __init__(self, live: "LiveSession", hears: Callable[[Notification], None]) -> None:
        super().__init__(live, OutputFormat.TEXT, sys.stdout, sys.stderr)
        self._hears = hears

    def show(self, notification: Notification) -> None:
        """Write one thing that happened."""
        super().show(notification)
        self._hears(notification)


def collect_task(folder: BatchFolder, task: BatchTask, begun: TaskBegun) -> TaskRow:
    """Keep the patch and the log of the session; gives how it ended, without the check. Raises `TreadleError`.

    All of its turns together say how. Raises `UnfinishedError` where they have not ended, or the money of the run ended
    the last one.
    """
    account = session_account(begun.session)
    if account is None or account.active or account.outcome is None or _comes_more(account):
        raise UnfinishedError
    if why := why_capped(account.outcome):
        raise UnfinishedError(capped=why)
    patch = project_patch(copy_of(folder, task.id, begun.tree))
    folder.file("patches", f"{task.id}.diff").write_bytes(patch)
    write_export(folder.file("sessions", f"{task.id}.json").absolute(), export_session(begun.session, "json"))
    went = how_it_went(task.id, turns_together(account.outcomes))
    return _with_account(went, account, begun.session, hashlib.sha256(patch).hexdigest())


def how_it_went(task_id: str, outcome: TurnOutcome) -> TaskRow:
    """Say how a task ended by how its turns did: `error` is not the model's failure."""
    if outcome.stop is TurnStop.END_TURN:
        return TaskRow(id=task_id, state="done", kind="denied" if outcome.denied else "")
    if outcome.stop is TurnStop.CANCELLED:
        why = f"stopped by {outcome.why}" if outcome.by_hook else "interrupted."
        return TaskRow(id=task_id, state="error", kind="interrupted", why=f"run: its turn was {why}")
    if outcome.stop is TurnStop.ERROR:
        kind, said = ("", outcome.why) if outcome.error is None else (f"-{outcome.error.kind}", outcome.error.message)
        return TaskRow(id=task_id, state="error", kind=f"provider{kind}", why=f"run: {said or 'no answer came.'}")
    return TaskRow(id=task_id, state="failed", kind=_FAILURES[outcome.stop])


def failed_row(folder: BatchFolder, task: BatchTask, kind: str, why: str) -> TaskRow:
    """Say of a task that an error ended it, and why, with what its session has used by then as far as that is known."""
    row = TaskRow(id=task.id, state="error", kind=kind, why=why)
    try:
        begun = folder.begun(task.id)
        account = None if begun is None else session_account(begun.session)
    except TreadleError as error:  # a disk or a log that failed the task may fail again
        return msgspec.structs.replace(
            row, cost=None, why=f"{why} What it has cost is not known: {failure_line(error)}"
        )
    return row if begun is None or account is None else _with_account(row, account, begun.session, None)


def _with_account(row: TaskRow, account: SessionAccount, session: str, patch: str | None) -> TaskRow:
    return msgspec.structs.replace(
        row,
        cost=account.cost,
        tokens=account.tokens,
        steps=account.steps,
        seconds=account.seconds,
        session=session,
        patch_sha256=patch,
    )


def check_task(folder: BatchFolder, task: BatchTask, seconds: float = TASK_CHECK_SECONDS) -> bool:
    """Run the task's check on a throw-away copy of its copy, without network or secrets; gives whether it passed.

    One that a signal from outside ended (status -n or 128 + n) says nothing: it runs once more. Raises `ConfigError`.
    """
    status, output = _checked(folder, task, seconds)
    if max(-status, status - 128) in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        status, output = _checked(folder, task, seconds)
    folder.file("checks", f"{task.id}.txt").write_text(f"exit status {status}\n\n{output}", encoding="utf-8")
    return status == 0


def _checked(folder: BatchFolder, task: BatchTask, seconds: float) -> tuple[int, str]:
    printed: list[bytes] = []
    try:
        with _time_limit(seconds):
            status = try_command(
                (task.check,),
                copy_of(folder, task.id).folder.resolve(),
                apply=False,
                out=printed.append,
                err=printed.append,
                variables=task.env,
            ).status
    except TimeoutError:
        printed.append(f"\nIt did not end within {seconds:.0f} s.\n".encode())
        status = 1
    return status, b"".join(printed).decode(errors="replace")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def report_task(folder: BatchFolder, row: TaskRow, *, keeps_copies: bool) -> str:
    """Write how a task ended, and the patch where the model had its say; a copy that nobody needs is removed.

    Gives what could not be removed, and why. Raises `TreadleError` where nothing was written.
    """
    prediction = None
    if row.state in ("done", "failed"):
        file = folder.path / "patches" / f"{row.id}.diff"
        try:
            patch = file.read_bytes().decode()
        except OSError as error:
            raise ConfigError("batch-folder", f"{file} cannot be read.", why=f"{error.strerror or error}.") from error
        account = session_account(row.session)
        name = "" if account is None else account.model
        prediction = Prediction(instance_id=row.id, model_name_or_path=name, model_patch=patch)
    folder.add(row, prediction)
    copy = copy_of(folder, row.id)
    if row.state == "done" and not keeps_copies:
        try:
            remove_project_copy(copy)
        except OSError as error:
            return f"{copy.folder} could not be removed: {error.strerror or error}."
    return ""
