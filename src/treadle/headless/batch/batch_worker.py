"""The process of one task: does the steps but the last, and says along a pipe how far it is, a JSON line each time."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BufferedWriter, FileIO, TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import msgspec

from treadle.door.opening import RunShare
from treadle.headless.batch.batch_folder import BatchFolder, TaskRow
from treadle.headless.batch.batch_steps import (
    BatchOptions,
    Said,
    UnfinishedError,
    check_task,
    collect_task,
    failed_row,
    prepare_task,
    run_task,
)
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.batch.task_errors import failure_line, kind_of_error
from treadle.protocol.errors import TreadleError
from treadle.protocol.notifications import MessageDone, Notification

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HANDED_BACK = 75
"""The exit code of a worker whose task goes on in another one."""


Say = Callable[[Said], None]


class WorkOn(Protocol):
    """Does a task in a process of its own; gives the exit code of that."""

    def __call__(self, folder: BatchFolder, options: BatchOptions, task: BatchTask, say: Say, /) -> int:
        """Do it, and say how far it is."""
        ...


def work_in_fork(
    folder: BatchFolder, options: BatchOptions, task: BatchTask, work: WorkOn, *, says: int, lives: int
) -> None:
    """Do a task in this process, which was forked for it, and end. `says` is where it writes to.

    From `lives` nothing ever comes; its end is that of the batch, and then the task is handed back.
    """
    code = 1
    try:
        os.setsid()
        say = partial(_say, says)
        try:
            _write_to(folder, task)
        except OSError as error:
            say(Said(row=failed_row(folder, task, "environment", f"prepare: {failure_line(error)}")))
            os._exit(0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, _hand_back)
        threading.Thread(target=partial(_end_with, lives), daemon=True).start()
        code = work(folder, options, task, say)
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        if code == 1:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        os._exit(code)


def work_on(
    folder: BatchFolder, options: BatchOptions, task: BatchTask, say: Say, /, *, share: RunShare | None = None
) -> int:
    """Do the steps of a task, and say what comes of them; returns the exit code of the process."""
    try:
        row = _row(folder, options, task, say, share=share)
    except UnfinishedError as error:
        say(Said(capped=error.capped))
        return HANDED_BACK
    say(Said(row=row))
    return 0


def _row(folder: BatchFolder, options: BatchOptions, task: BatchTask, say: Say, *, share: RunShare | None) -> TaskRow:
    step = "prepare"
    try:
        say(Said(step=step))
        begun = prepare_task(folder, options, task)
        say(Said(step=(step := "run")))
        run_task(folder, options, task, begun, hears=_Heard(say, begun.session), share=share)
        signal.signal(signal.SIGTERM, _hand_back)  # the session had it meanwhile
        say(Said(step=(step := "collect")))
        row = collect_task(folder, task, begun)
        if not task.check or row.state != "done":
            return row
        say(Said(step=(step := "check")))
        if check_task(folder, task):
            return row
        return msgspec.structs.replace(row, state="failed", kind="check")
    except (TreadleError, OSError) as error:
        why = f"{step}: {failure_line(error)}"
        sys.stderr.write(f"{why}\n{error.fix if isinstance(error, TreadleError) else ''}\n")
        return failed_row(folder, task, kind_of_error(error), why)


class _Heard:
    """Counts the steps, and what they cost, as they come; says first that the session is there."""

    def __init__(self, say: Say, session: str) -> None:
        self._say = say
        self._session = session

    def __call__(self, notification: Notification) -> None:
        """Take what happened in the session."""
        if self._session:
            self._say(Said(session=self._session))
            self._session = ""
        if isinstance(notification, MessageDone):
            self._say(Said(step="run", steps=notification.step, cost=notification.cost))


class _TaskLog(FileIO):
    """What is said of a task. What cannot be written, as on a full disk, is lost, and ends nothing."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write as much as can be; says that it was all."""
        with suppress(OSError):
            return super().write(data) or 0
        return memoryview(data).nbytes


def _write_to(folder: BatchFolder, task: BatchTask) -> None:
    """Let what the task says go to its log, and let it hear nothing."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    log = os.open(folder.file("logs", f"{task.id}.txt"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for source, number in ((nowhere, 0), (log, 1), (log, 2)):
        os.dup2(source, number)
    for number in (1, 2):
        raw = BufferedWriter(_TaskLog(number, "w", closefd=False))
        stream = TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        setattr(sys, "stdout" if number == 1 else "stderr", stream)
    os.close(nowhere)
    os.close(log)


def _hand_back(_number: int, _frame: FrameType | None) -> None:
    raise UnfinishedError


def _end_with(lives: int) -> None:
    """Wait for the end of the batch, and end like it."""
    with suppress(OSError):
        os.read(lives, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _say(says: int, said: Said) -> None:
    with suppress(OSError):
        os.write(says, msgspec.json.encode(said) + b"\n")
