"""Running what is scheduled: one function for servers, of which any number may run over one data folder."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from treadle.app.compose import open_store
from treadle.app.schedules.schedule_book import (
    Schedule,
    ScheduledRun,
    note_run,
    read_schedules,
    schedules_file,
    take_due,
)
from treadle.protocol.errors import TreadleError

_LOOKS = 20.0
"""Seconds after which a server sees that the schedules were changed."""

_BEGINS_WITHIN = 120.0
_ENDS_WITHIN = 10.0
"""Seconds that a session which is just beginning has when the server ends."""

_MOST_SAID = 600


def session_command(schedule: Schedule) -> Sequence[str]:
    """Give the command line that begins a session of a schedule in the background, and prints its id."""
    settings = [("--mode", schedule.mode), ("--model", schedule.model)]
    return (
        *(sys.executable, "-m", "treadle", f"--bg={schedule.task}", "-C", schedule.folder),
        *("--max-cost", f"{schedule.max_cost:g}"),
        *(word for flag, value in settings if value for word in (flag, value)),
    )


BeginRun = Callable[[Schedule, ScheduledRun], Awaitable[ScheduledRun]]
"""Begins the session of a run, and gives what became of it. Raises `TreadleError` or `OSError`."""


async def run_schedules(
    tell: Callable[[str], None],
    *,
    begin: BeginRun | None = None,
    looks: float = _LOOKS,
    hears_next: Callable[[float | None], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Begin a session for each run that is due, until it is cancelled; `tell` is given what a person should read.

    Of several servers over one data folder one begins each. Without `begin` each is a process of its own, which goes on
    when the server ends. `hears_next` is given when something is due next (seconds since 1970), once in `looks`
    seconds at least.
    """
    said: set[str] = set()
    seen: tuple[int, ...] | None = None
    due: float | None = None
    latest = 0.0
    async with asyncio.TaskGroup() as group:
        while True:
            pause = looks
            try:
                found, now = _file_state(), clock()
                set_back, latest = now < latest, now
                if found is None or found != seen or set_back or (due is not None and due <= now):
                    taken, due = await asyncio.to_thread(_look, now)
                    seen = found  # what is taken changes the file, so it is looked at once more
                    for schedule, run in taken:
                        work = _become(schedule, run, begin or in_own_process)
                        group.create_task(_begin(schedule, work, tell), name=f"schedule {schedule.id}")
                    if hears_next is not None:
                        hears_next(due)
                if due is not None:
                    pause = max(0.05, min(looks, due - clock()))
            except TreadleError as error:
                if error.what not in said:
                    said.add(error.what)
                    tell(f"{error.what} {error.why} {error.fix}")
            await asyncio.sleep(pause)


def _file_state() -> tuple[int, ...] | None:
    """Give what tells the file from the one before, as each change makes a new one: `()` for none, None if unknown."""
    try:
        state = schedules_file().stat()
    except FileNotFoundError:
        return ()
    except OSError:
        return None
    return (state.st_ino, state.st_mtime_ns, state.st_size)


def _look(now: float) -> tuple[Sequence[tuple[Schedule, ScheduledRun]], float | None]:
    """Take what is due; gives also when something is due next."""
    if not schedules_file().exists():
        return (), None
    return take_due(now), min((due for one in read_schedules() if (due := one.next) is not None), default=None)


async def _begin(schedule: Schedule, work: Coroutine[Any, Any, ScheduledRun], tell: Callable[[str], None]) -> None:
    beginning = asyncio.ensure_future(work)
    try:
        done = await asyncio.shield(beginning)
    except asyncio.CancelledError:  # the server ends: the session that has begun goes on, so it is noted
        with suppress(TimeoutError, TreadleError):
            await asyncio.to_thread(note_run, schedule.id, await asyncio.wait_for(beginning, _ENDS_WITHIN))
        raise
    if done.problem:
        tell(f"The schedule {schedule.id} ({schedule.when}) was due: {done.problem}")
    with suppress(TreadleError):
        await asyncio.to_thread(note_run, schedule.id, done)


async def _become(schedule: Schedule, run: ScheduledRun, begin: BeginRun) -> ScheduledRun:
    try:
        return await begin(schedule, run)
    except (TreadleError, OSError) as error:
        return replace(run, problem=str(error))


def run_left_out(run: ScheduledRun, session_id: str) -> ScheduledRun:
    """Say of a run that it did not begin, as a session of an earlier one still works."""
    return replace(run, problem=f"left out: its session {session_id} still works")


async def in_own_process(schedule: Schedule, run: ScheduledRun) -> ScheduledRun:
    """Begin the session in a process of its own, unless an earlier one still works."""
    busy = await asyncio.to_thread(_still_works, schedule)
    if busy:
        return run_left_out(run, busy)
    return await _begun(schedule, run)


def _still_works(schedule: Schedule) -> str:
    """Give the session of an earlier run that is still open; empty for none."""
    store = open_store()
    try:
        leased = store.leased()
    finally:
        store.close()
    return next((one.session for one in schedule.runs if one.session in leased), "")


async def _begun(schedule: Schedule, run: ScheduledRun) -> ScheduledRun:
    """Begin the session, in a process of its own, which says its id as soon as the task is in its log."""
    if not await asyncio.to_thread(Path(schedule.folder).is_dir):
        return replace(run, problem=f"there is no folder {schedule.folder} any more")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *session_command(schedule),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), _BEGINS_WITHIN)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        return replace(run, problem=f"no session began within {_BEGINS_WITHIN:.0f} seconds")
    session = out.decode(errors="replace").strip()
    if process.returncode or not session:
        text = " ".join(said.decode(errors="replace").split())
        return replace(run, problem=text[-_MOST_SAID:] or f"it ended with status {process.returncode}")
    return replace(run, session=session)
