"""A replay from a step in a copy of the workspace, and what was recorded beside it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import session_log
from treadle.app.history.branching import Branch, before_step, checkpoint_at, files_at, with_moved_note
from treadle.app.history.forking import copy_session
from treadle.app.history.taking_copies import copy_worked_in, times_taken
from treadle.app.reports.session_review import open_review
from treadle.app.reports.step_list import PastStep, StepCall, past_steps
from treadle.app.subagents.writer_copies import WriterCopy, found_copies
from treadle.present.spending_words import Spending
from treadle.present.words import verb_of
from treadle.protocol.checkpoints import CheckpointTaken, Parent
from treadle.protocol.events import SessionStarted
from treadle.store.keeping import rename
from treadle.store.sqlite import SessionRow, Store
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.checkpoints.planning import Interval


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
        trees, exact = files_at(store, row, step)
        if trees:
            with closing(opened_checkpoints(store, row)) as kept:
                root = kept.roots[0].kept
                now = root.take(f"{row.id}/now").tree
                whole = [Interval(before=trees[0], after=now, by_session=True)]
                plan = root.plan_restore(trees[0], now, whole)
                done = root.apply(plan, into=copy.folder)
                exact = exact and not (done.conflicts or done.failed or plan.conflicts)
        new, _ = copy_session(
            store,
            row,
            to,
            lambda state: with_moved_note(state, row.workspace, str(copy.folder)),
            workspace=str(copy.folder),
        )
        rename(store, new, f"{row.title or row.id}, from step {step}")
    return Branch(id=new, folder=copy.folder, exact=exact)


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
    taken = Points(store, row.id).checkpoints
    unknown = since is None and steps and taken and taken[-1].data.step >= steps[0].number
    files = None if unknown else _own_files(store, row, since)
    ran = {call.about: call for step in steps for call in step.calls if call.verb == verb_of(EXECUTE_COMMAND.name)}
    return ReplaySide(
        session=row.id, model=row.model, steps=steps, spending=spending, files=files, commands=list(ran.values())
    )


def _own_files(
    store: Store, row: SessionRow, since: CheckpointTaken | None
) -> Sequence[tuple[str, int | None, int | None]]:
    if since is None:
        return ()
    review = open_review(store, row, old=since.n, new=Points(store, row.id).last().n)
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
