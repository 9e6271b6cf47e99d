"""A replay from a step in a copy of the workspace, and what was recorded beside it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points, TakenAt
from treadle.app.compose import session_log
from treadle.app.history.branching import Branch, before_step, files_at, with_moved_note
from treadle.app.history.forking import copy_session
from treadle.app.history.taking_copies import copy_worked_in, times_taken
from treadle.app.reports.step_list import PastStep, past_steps
from treadle.app.subagents.writer_copies import WriterCopy, found_copies
from treadle.present.spending_words import Spending
from treadle.protocol.checkpoints import Parent
from treadle.protocol.events import SessionStarted
from treadle.store.keeping import rename
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.planning import Interval
from treadle.workspace.files.names import shown_name


class ReplaySide(Struct, frozen=True, kw_only=True):
    """What one of the two did from the step on. `files` are paths in the folder with the lines added and removed there
    (None for what is no text); None where a checkpoint of it is not kept.
    """

    session: str
    model: str
    steps: Sequence[PastStep]
    spending: Spending
    files: Sequence[tuple[str, int | None, int | None]] | None


class CopiedReplay(Struct, frozen=True, kw_only=True):
    """A replay beside what was recorded, from `step` on. `exact`: it began with the files of that step, else with those
    of when it was made. `taken` counts how often its files were brought into the workspace, each to be undone.
    """

    step: int
    workspace: Path
    copy: str
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


def replays_of(store: Store, row: SessionRow) -> list[SessionRow]:
    """List the replays of a session whose copies are kept, the last used first."""
    folders = [str(copy.folder) for copy in found_copies() if str(copy.workspace) == row.workspace]
    rows = [one for folder in folders for one in store.sessions(folder)]
    own = [one for one in rows if (parent := _parent(store, one)) is not None and parent.session_id == row.id]
    return sorted(own, key=lambda one: one.updated_at, reverse=True)


def compared_replay(store: Store, row: SessionRow) -> CopiedReplay | None:
    """Put a replay beside what was recorded; None for a session that is none. Takes its time; raises `TreadleError`."""
    found = _origin(store, row)
    if found is None:
        return None
    parent, recorded, copy = found
    steps = [one for one in past_steps(store, recorded) if one.seq > parent.seq and one.number and not one.left]
    step = steps[0].number if steps else 0
    trees, exact = files_at(store, recorded, step)
    own = [one for one in past_steps(store, row) if one.seq > parent.seq and one.number]
    taken = [one for one in Points(store, row.id).checkpoints if one.seq > parent.seq]
    return CopiedReplay(
        step=step,
        workspace=copy.workspace,
        copy=copy.child_id,
        exact=exact,
        recorded=_side(store, recorded, steps, (trees, Points(store, recorded.id).checkpoints)),
        replayed=_side(store, row, own, (taken[0].data.trees if taken else (), taken)),
        taken=times_taken(store, row, copy),
    )


def _side(
    store: Store, row: SessionRow, steps: Sequence[PastStep], kept_files: tuple[Sequence[str], Sequence[TakenAt]]
) -> ReplaySide:
    """Sum up the `steps` of one of the two; `kept_files` are the trees that it began with, and its checkpoints."""
    first, taken = kept_files
    replied = [(one.usage, one.cost) for one in steps if one.usage is not None]
    spending = Spending(
        ended=sum(cost or 0.0 for _, cost in replied),
        unpriced=any(cost is None for _, cost in replied),
        estimated=any(usage.estimated for usage, _ in replied),
    )
    files: list[tuple[str, int | None, int | None]] | None = [] if not taken else None
    if taken and len(first) == len(last := taken[-1].data.trees):
        with closing(opened_checkpoints(store, row)) as kept:
            changed = kept.changes(first, last)
            files = [(shown_name(one.path), one.added, one.removed) for _, one in changed]
    return ReplaySide(session=row.id, model=row.model, steps=steps, spending=spending, files=files)


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
