"""A replay from a step in a copy of the workspace: compared with what was recorded, and taken in its place."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.own_files import KeptRoot
from treadle.app.checkpoints.points import Points, TakenAt
from treadle.app.compose import session_log
from treadle.app.config.places import data_directory
from treadle.app.history.branching import Branch, before_step, files_at, with_moved_note
from treadle.app.history.forking import copy_session
from treadle.app.reports.copy_list import apply_copy, idle_copy, left_lines_of, planned_copy
from treadle.app.reports.step_list import PastStep, past_steps
from treadle.app.subagents.writer_copies import WriterCopy, found_copies
from treadle.present.spending_words import Spending
from treadle.protocol.checkpoints import Parent
from treadle.protocol.errors import SessionError
from treadle.protocol.events import SessionStarted
from treadle.store.keeping import rename
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.planning import Interval
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.temporary_files import TemporaryFiles

_NOW = "now"


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


class TakenReplay(Struct, frozen=True, kw_only=True):
    """Paths that changed in the workspace, and lines on what did not, and why."""

    files: Sequence[str]
    left: Sequence[str] = ()


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
                now = root.take(f"{row.id}/{_NOW}").tree
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
    with _root(store, recorded) as root:
        times = _times(root, row)
    return CopiedReplay(
        step=step,
        workspace=copy.workspace,
        copy=copy.child_id,
        exact=exact,
        recorded=_side(store, recorded, steps, (trees, Points(store, recorded.id).checkpoints)),
        replayed=_side(store, row, own, (taken[0].data.trees if taken else (), taken)),
        taken=times,
    )


def take_replay(session_id: str) -> TakenReplay:
    """Bring what a replay changed into the workspace; how it was before and after is kept, so that it can be undone.

    What differs there too stays as it is, and is named. Raises `SessionError` where the replay works still.
    """
    with session_log(session_id) as (row, store):
        _, recorded, copy = _require_origin(store, row)
        with idle_copy(copy.child_id) as held, _root(store, recorded) as root:
            planned = planned_copy(held, protected=False)
            before, after = _names(row, _times(root, row) + 1)
            root.kept.take(before)
            done = apply_copy(held, planned)
            if done.refused:
                raise SessionError("replay-moved", "Nothing was taken.", why=done.refused, fix="Try again.")
            if done.merged:
                root.kept.take(after)
    return TakenReplay(files=[shown_name(one.path) for one in done.merged], left=left_lines_of(done))


def undo_taken(session_id: str) -> TakenReplay:
    """Take back what `take_replay` did last; what others changed since stays, and is named. Raises `SessionError`."""
    with session_log(session_id) as (row, store):
        _, recorded, _ = _require_origin(store, row)
        with _root(store, recorded) as root:
            number = _times(root, row)
            before, after = map(root.kept.tree_of, _names(row, number))
            if before is None or after is None:
                raise SessionError("nothing-to-undo", "This replay is not in the folder.", fix="Load the page again.")
            now = root.kept.take(f"{row.id}/{_NOW}").tree
            plan = root.kept.plan_restore(before, now, [Interval(before=before, after=after, by_session=True)])
            done = root.kept.apply(plan, temporary_files=TemporaryFiles(str(data_directory() / "saving")))
            root.kept.forget(f"{row.id}/taken-{number}/")
            stays = [*((one.path, one.why) for one in (*plan.conflicts, *done.conflicts))]
            stays += [(one.path, one.why) for one in done.failed]
            left = [f"{root.shown(path)}: {why}" for path, why in stays]
            return TakenReplay(files=[*map(root.shown, (*done.written, *done.removed))], left=left)


def _side(
    store: Store, row: SessionRow, steps: Sequence[PastStep], kept_files: tuple[Sequence[str], Sequence[TakenAt]]
) -> ReplaySide:
    """Sum up the `steps` of one of the two; `kept_files` are the trees that it began with, and its checkpoints."""
    first, taken = kept_files
    replied = [one for one in steps if one.usage is not None]
    spending = Spending(
        ended=sum(one.cost or 0.0 for one in replied), unpriced=any(one.cost is None for one in replied)
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
    copy = next((one for one in found_copies() if str(one.folder) == row.workspace), None)
    parent = _parent(store, row)
    if copy is None or parent is None:
        return None
    recorded = next((one for one in store.sessions(str(copy.workspace)) if one.id == parent.session_id), None)
    return None if recorded is None else (parent, recorded, copy)


def _require_origin(store: Store, row: SessionRow) -> tuple[Parent, SessionRow, WriterCopy]:
    found = _origin(store, row)
    if found is None:
        raise SessionError(
            "no-replay",
            "This session is no replay of another one.",
            why="Its copy, or the session that it was made of, is gone, or it is a session of its own.",
            fix="Make a replay from the timeline of a session.",
        )
    return found


def _names(row: SessionRow, number: int) -> tuple[str, str]:
    """Under which names the workspace is kept as it was before, and after, its replay was taken."""
    return f"{row.id}/taken-{number}/before", f"{row.id}/taken-{number}/after"


def _times(root: KeptRoot, row: SessionRow) -> int:
    names = root.kept.names(f"{row.id}/taken-")
    return max((int(name.partition("/")[0]) for name in names if name.endswith("/after")), default=0)


@contextmanager
def _root(store: Store, row: SessionRow) -> Iterator[KeptRoot]:
    with closing(opened_checkpoints(store, row)) as kept:
        yield kept.roots[0]
