"""A task of a fleet in its process: taken over from whoever had it, reserved in the database, kept for others."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from treadle.door.opening import (
    LogPart,
    apply_project_patch,
    end_process,
    last_in_common,
    log_part,
    project_patch,
    put_log_back,
    remove_project_copy,
    session_sums,
    this_process,
    whole_log,
)
from treadle.door.reports import session_account
from treadle.headless.batch.batch_folder import BatchFolder, TaskBegun, TaskRow
from treadle.headless.batch.batch_steps import (
    BatchOptions,
    Said,
    UnfinishedError,
    copy_of,
    failed_row,
    next_attempt,
    prepare_task,
)
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.batch.batch_worker import HANDED_BACK, Say, work_on
from treadle.headless.batch.task_errors import failure_line, kind_of_error
from treadle.headless.fleet.artifact_store import ArtifactStore, artifact_store
from treadle.headless.fleet.fleet_database import waiting_database
from treadle.headless.fleet.fleet_state import Claim, FencedError, FleetState
from treadle.protocol.base import Record
from treadle.protocol.errors import TreadleError
from treadle.protocol.models import Spent

_T = TypeVar("_T")
_GIVEN = frozenset(
    {
        *("model", "base_url", "profile", "mode", "tool_protocol", "fallback", "thinking_budget"),
        *("max_steps", "max_seconds", "budget", "screen_reader", "wait_for_reset"),
    }
)
"""What the command line of a batch can say. Hooks, folders and variables are for the worker's computer to give."""

MOST_WORKER_DEATHS = 10
"""So often a task may have been at work when its whole worker was killed; then it may be what kills them."""

_BUSY = 3.0
"""Seconds before a task is tried again whose session another process still has open."""


class FleetPlace(Record, frozen=True, kw_only=True):
    """Where a worker works: the database, the name of its data folder, the folder of its copies, and the store.

    It says that it lives every `beat` seconds. `full` lets tasks run without a sandbox, and
    `trusts` lets a batch trust the repositories of its tasks.
    """

    url: str
    home: str
    folder: Path
    store: str = ""
    beat: float = 5.0
    full: bool = False
    trusts: bool = False


class KeptPart(Record, frozen=True, kw_only=True):
    """What is kept before a step: the rows of the log since the part before, and all changes of the files by then."""

    log: LogPart
    patch: bytes


class FleetWork(Record, frozen=True, kw_only=True):
    """Does the steps of a task that a worker claims."""

    place: FleetPlace
    claim: Claim

    def __call__(self, folder: BatchFolder, options: BatchOptions, task: BatchTask, say: Say, /) -> int:
        """Do it, and say how far it is; returns the exit code of the process."""
        state = FleetState(waiting_database(self.place.url))
        share = _Share(state, self.place, self.claim, folder)
        try:
            before = state.begin(self.claim, this_process())
            if before.process:
                end_process(before.process)  # else it would go on beside us when it wakes up
            if before.deaths >= MOST_WORKER_DEATHS:
                why = f"{before.deaths} workers were killed while they had it."
                state.said(before, f"{task.id} is given up: {why}")
                say(Said(row=failed_row(folder, task, "killed", why)))
                return 0
            if why := self._refusal(options):
                sys.stderr.write(f"{why}\n")
                say(Said(row=TaskRow(id=task.id, state="error", kind="setup", why=why)))
                return 0
            self._take_over(state, before, folder, options)
            return work_on(folder, options, task, partial(_say_too, say, share), share=share)
        except UnfinishedError:
            return HANDED_BACK
        except FencedError:
            _leave()
            return HANDED_BACK
        except (TreadleError, OSError) as error:
            why = f"prepare: {failure_line(error)}"
            sys.stderr.write(f"{why}\n")
            say(Said(row=failed_row(folder, task, kind_of_error(error), why)))
            return 0
        finally:
            share.settle()

    def _refusal(self, options: BatchOptions) -> str:
        """Say what of the options this worker does not do; empty where it does all of it."""
        if strange := sorted(options.flags.keys() - _GIVEN):
            return f"This worker takes no settings from a database but flags: not {strange}."
        if options.flags.get("mode") in (None, "full") and not self.place.full:
            return "This worker does no task without a sandbox. Start it with --full if it should."
        if options.trusts and not self.place.trusts:
            return "This worker trusts no repository. Start it with --trust if it should."
        return ""

    def _take_over(self, state: FleetState, before: Claim, folder: BatchFolder, options: BatchOptions) -> None:
        """Make what there is of a task here: what another computer has done by its last step, if that was kept."""
        task, begun, here = before.task, before.begun, folder.begun(before.id)
        if begun is None:
            return
        if here is not None and self.place.home == before.home and here.attempt >= begun.attempt:
            if here.attempt == begun.attempt:
                folder.note(task.id, msgspec.structs.replace(here, goes_on_after=begun.goes_on_after))
            return
        if not begun.tree:  # to be begun anew, by order
            folder.note(task.id, begun)
            return
        remove_project_copy(copy_of(folder, task.id))
        store = artifact_store(self.place.store)
        parts = [] if store is None else _kept_of(store, before, begun.session)
        if not whole_log([part.log for part in parts]):
            folder.note(task.id, next_attempt(options.run, task, begun))
            state.said(before, f"{task.id} begins again: its log is on another computer, and no store has it.")
            return
        folder.note(task.id, msgspec.structs.replace(begun, tree=""))
        made = prepare_task(folder, options, task)
        copy = copy_of(folder, task.id, made.tree)
        apply_project_patch(copy, parts[-1].patch)
        last = put_log_back([part.log for part in parts], str(copy.folder.resolve()))
        state.said(before, f"{task.id} continues where another computer was: event {last} of its log.")


def _say_too(say: Say, share: "_Share", said: Said) -> None:
    if said.step == "run" and not said.steps:
        share.prepared()
    if said.cost is None:
        share.unpriced()
    if said.row is not None and said.row.kind == "busy":  # whoever had it is not gone yet
        time.sleep(_BUSY)
        raise UnfinishedError
    say(said)


def kept_parts(store: ArtifactStore, claim: Claim) -> list[KeptPart]:
    """Read what was kept of a task's session, in order; what cannot be read is left out with all that came after."""
    parts: list[KeptPart] = []
    for key in store.list(_prefix(claim)):
        try:
            parts.append(msgspec.msgpack.decode(store.get(key), type=KeptPart))
        except (OSError, msgspec.MsgspecError):
            break
    return parts


def _kept_of(store: ArtifactStore, claim: Claim, session: str) -> list[KeptPart]:
    return [part for part in kept_parts(store, claim) if part.log.session == session]


def forget_parts(store: ArtifactStore, claim: Claim) -> None:
    """Forget what was kept of a task that has ended. Raises `OSError`."""
    for key in store.list(_prefix(claim)):
        store.delete(key)


def _prefix(claim: Claim) -> str:
    return f"{claim.run}/{claim.id}/"


class _Share:
    """The `RunShare` of a task's session."""

    def __init__(self, state: FleetState, place: FleetPlace, claim: Claim, folder: BatchFolder) -> None:
        self._state = state
        self._claim = claim
        self._home = place.home
        self._store = artifact_store(place.store)
        self._folder = folder
        self._begun: TaskBegun | None = None
        self._after: int | None = None

    def prepared(self) -> None:
        """Say which session the task has, once its copy is there; it is this home's from now on."""
        self._begun = self._folder.begun(self._claim.id)
        if self._begun is not None:
            self._own(partial(self._state.note, self._claim, self._begun, self._home))

    def unpriced(self) -> None:
        """Note that a part of what the task has cost is not known, wherever it goes on."""
        if self._begun is not None and not self._begun.unpriced:
            self._begun = msgspec.structs.replace(self._begun, unpriced=True)
            self._folder.note(self._claim.id, self._begun)
            self._own(partial(self._state.note, self._claim, self._begun, self._home))

    async def reserve(self, session_id: str, spent: float, worst: float, *, aside: bool) -> Spent:
        """Reserve in the database; a process that has lost the task ends there."""
        sums = {"spent": spent, "aside" if aside else "step": worst}
        total = await asyncio.to_thread(
            self._own, partial(self._state.reserve, self._claim, session_id, self._home, sums)
        )
        return Spent(cost=max(0.0, total - worst))

    async def before_step(self, session_id: str) -> None:
        """Keep what was done by now."""
        if self._store is not None and self._begun is not None and session_id == self._begun.session:
            await asyncio.to_thread(self._keep, self._store, self._begun)

    def _keep(self, store: ArtifactStore, begun: TaskBegun) -> None:
        if self._after is None:
            parts = [part.log for part in _kept_of(store, self._claim, begun.session)]
            self._after = last_in_common(parts, begun.session)
        log = log_part(begun.session, self._after)
        if log is None:
            return
        patch = project_patch(copy_of(self._folder, self._claim.id, begun.tree))
        last = log.lines[-1].seq
        key = f"{_prefix(self._claim)}{begun.attempt:06}-{self._claim.number:09}-{last:012}"
        try:
            store.put(key, msgspec.msgpack.encode(KeptPart(log=log, patch=patch)))
        except OSError as error:
            sys.stderr.write(f"The store has not kept what was done by now: {error}\n")
            return
        self._after = last

    def settle(self) -> None:
        """Say what was spent, now that no call goes on."""
        begun = self._begun
        if begun is None:
            return
        with suppress(TreadleError):  # what was reserved counts then
            for session, spent in session_sums(begun.session).items():
                self._state.settle(self._claim.run, session, self._home, spent)
            account = session_account(begun.session)
            if account is not None and account.cost is None:
                self.unpriced()

    @staticmethod
    def _own(work: Callable[[], _T]) -> _T:
        try:
            return work()
        except FencedError:
            _leave()
            raise


def _leave() -> None:
    """End at once: the task is somebody else's, and nothing may be written any more."""
    sys.stderr.write("Another worker has this task now. This process ends.\n")
    sys.stderr.flush()
    os._exit(HANDED_BACK)
