"""A replay from a step in a copy of the workspace, and what was recorded beside it."""

import os
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log
from treadle.app.history.branching import Branch, before_step, checkpoint_at, with_moved_note
from treadle.app.history.forking import copy_session, name_copy
from treadle.app.history.taking_copies import copy_beginning, copy_worked_in, times_taken
from treadle.app.reports.session_review import open_review
from treadle.app.reports.step_list import PastStep, StepCall, past_steps
from treadle.app.subagents.writer_copies import WriterCopy, found_copies
from treadle.app.subagents.writer_record import BASE
from treadle.present.spending_words import Spending
from treadle.present.words import verb_of
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Parent
from treadle.protocol.events import SessionStarted
from treadle.store.sqlite import SessionRow, Store
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.checkpoints.planning import (
    Interval,
    PlannedRemoval,
    PlannedWrite,
    RestorePlan,
    WantedFile,
)
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.checkpoints.trees import TreeKind


class ReplaySide(Struct, frozen=True, kw_only=True):
    """What one of the two did from the step on. `files` are its own work, by path, with the lines added and removed
    (None for what is no text); None where no checkpoint knows with which files it began. `commands` are those that it
    ran, each as it ended last.
    """

    session: str
    model: str
    steps: Sequence[PastStep]
    spending: Spending
    files: Sequence[tuple[str, int | None, int | None]] | None
    commands: Sequence[StepCall] = ()


class CopiedReplay(Struct, frozen=True, kw_only=True):
    """A replay beside what was recorded, from `step` on. `exact`: it began with the files of that step, else with those
    of when it was made. `taken` counts how often its files were brought into the workspace, each to be undone.
    """

    step: int
    workspace: Path
    exact: bool
    recorded: ReplaySide
    replayed: ReplaySide
    taken: int


def branch_in_copy(session_id: str, step: int, copy: WriterCopy) -> Branch:
    """Copy a session up to a step, to go on in a copy of its folder, whose files become those of that step.

    Raises `SessionError` where there is no such step, `StoreError`.
    """
    with session_log(session_id) as (row, store):
        to = before_step(store, row, step)
        since, exact = checkpoint_at(store, row, step)
        if since is not None:
            exact = _set_back(store, row, since, copy) and exact
        new, _ = copy_session(
            store,
            row,
            to,
            lambda state: with_moved_note(state, row.workspace, str(copy.folder)),
            workspace=str(copy.folder),
        )
        name_copy(store, row, new, f"step {step}")
    return Branch(id=new, folder=copy.folder, exact=exact)


def _set_back(store: Store, row: SessionRow, since: CheckpointTaken, copy: WriterCopy) -> bool:
    """Bring a copy of the folder to the files of a checkpoint; gives whether all of them are as in that.

    Where it begins, the session's own work since is kept: what is taken later takes that back, and nothing of others.
    """
    with closing(opened_checkpoints(store, row)) as kept, copy_beginning(copy) as begun:
        root, then = kept.roots[0].kept, since.trees[0]
        now = root.take(f"{row.id}/now").tree
        plan = root.plan_restore(then, now, [Interval(before=then, after=now, by_session=True)])
        done = root.apply(plan, into=copy.folder)
        at_step = begun.take(f"{row.id}/step").tree
        later = [one.data for one in Points(store, row.id).checkpoints if one.data.n >= since.n]
        by_others = [
            Interval(before=one.trees[0], after=other.trees[0], by_session=not other.moment.ends_work)
            for one, other in pairwise(later)
        ]
        by_others.append(Interval(before=later[-1].trees[0], after=now, by_session=True))
        root.apply(_own_work(root, then, now, by_others), into=copy.folder)
        base = begun.take(BASE).tree
        begun.apply(begun.plan_restore(at_step, base, [Interval(before=at_step, after=base, by_session=True)]))
        begun.forget(f"{row.id}/step")
    return not (done.conflicts or done.failed or plan.conflicts)


def _own_work(root: CheckpointStore, then: str, now: str, by_others: Sequence[Interval]) -> RestorePlan:
    """Plan how to do to the files of `then` what the session has done since; where nobody can tell, nothing."""
    back = root.plan_restore(then, now, by_others)
    without: dict[bytes, WantedFile] = {one.path: WantedFile(one.entry, one.content) for one in back.writes}
    without |= {one.path: WantedFile(None) for one in back.removals}
    theirs = frozenset[bytes]().union(*(root.paths(one.before, one.after) for one in by_others if one.by_session))
    unknown = theirs.intersection([*(one.path for one in back.conflicts), *(one.path for one in back.kept)])
    writes: list[PlannedWrite] = []
    removals: list[PlannedRemoval] = []
    for change in root.compare(then, now):
        path, was = os.fsencode(change.path), change.before
        wanted = without.get(path, WantedFile(change.after))
        kinds = {one.kind for one in (was, wanted.entry) if one is not None}
        if path in unknown or wanted.entry == was or TreeKind.NOT_COVERED in kinds:
            continue
        if wanted.entry is not None:
            writes.append(PlannedWrite(path=path, entry=wanted.entry, now=was, content=wanted.content))
        elif was is not None:
            removals.append(PlannedRemoval(path=path, now=was))
    return RestorePlan(writes=tuple(writes), removals=tuple(removals))


def replays_of(store: Store, row: SessionRow) -> list[tuple[SessionRow, int]]:
    """List the replays of a session whose copies are kept, with the last event that both have, the newest first."""
    folders = [str(copy.folder) for copy in found_copies() if str(copy.workspace) == row.workspace]
    rows = [one for folder in folders for one in store.sessions(folder)]
    own = [
        (one, parent.seq) for one in rows if (parent := _parent(store, one)) is not None and parent.session_id == row.id
    ]
    return sorted(own, key=lambda found: found[0].updated_at, reverse=True)


def compared_replay(store: Store, row: SessionRow) -> CopiedReplay | None:
    """Put a replay beside what was recorded; None for a session that is none. Takes its time; raises `TreadleError`."""
    found = _origin(store, row)
    if found is None:
        return None
    parent, recorded, copy = found
    steps = [one for one in past_steps(store, recorded) if one.seq > parent.seq and one.number and not one.left]
    step = steps[0].number if steps else 0
    since, exact = checkpoint_at(store, recorded, step)
    own = [one for one in past_steps(store, row) if one.seq > parent.seq and one.number]
    first = next((one.data for one in Points(store, row.id).checkpoints if one.seq > parent.seq), None)
    return CopiedReplay(
        step=step,
        workspace=copy.workspace,
        exact=exact,
        recorded=_side(store, recorded, steps, since),
        replayed=_side(store, row, own, first),
        taken=times_taken(store, row, copy),
    )


def _side(store: Store, row: SessionRow, steps: Sequence[PastStep], since: CheckpointTaken | None) -> ReplaySide:
    """Sum up the `steps` of one of the two, and its own work in the files since a checkpoint."""
    replied = [(one.usage, one.cost) for one in steps if one.usage is not None]
    spending = Spending(
        ended=sum(cost or 0.0 for _, cost in replied),
        unpriced=any(cost is None for _, cost in replied),
        estimated=any(usage.estimated for usage, _ in replied),
    )
    taken = [one.data for one in Points(store, row.id).checkpoints]
    unknown = since is None and steps and taken and taken[-1].step >= steps[0].number
    last = max(
        (one.n for one in taken if steps and one.moment is Moment.AFTER and one.step <= steps[-1].number), default=0
    )
    files = None if unknown else _own_files(store, row, since, last)
    ran = {call.about: call for step in steps for call in step.calls if call.verb == verb_of(EXECUTE_COMMAND.name)}
    return ReplaySide(
        session=row.id, model=row.model, steps=steps, spending=spending, files=files, commands=list(ran.values())
    )


def _own_files(
    store: Store, row: SessionRow, since: CheckpointTaken | None, last: int
) -> Sequence[tuple[str, int | None, int | None]]:
    """Give a session's work between two checkpoints; what became of it later is no part of that."""
    if since is None or last <= since.n:
        return ()
    review = open_review(store, row, old=since.n, new=last)
    if review is None:
        return ()
    try:
        return [(one.path, one.added, one.removed) for one in review.files if one.own]
    finally:
        review.close()


def _parent(store: Store, row: SessionRow) -> Parent | None:
    started = next(iter(store.read(row.id, before=2)), None)
    return started.data.parent if started is not None and isinstance(started.data, SessionStarted) else None


def _origin(store: Store, row: SessionRow) -> tuple[Parent, SessionRow, WriterCopy] | None:
    copy = copy_worked_in(row)
    parent = _parent(store, row)
    if copy is None or parent is None:
        return None
    recorded = next((one for one in store.sessions(str(copy.workspace)) if one.id == parent.session_id), None)
    return None if recorded is None else (parent, recorded, copy)
