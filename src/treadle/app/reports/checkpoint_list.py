"""The checkpoints of a session as they are listed, and what changed since one."""

from msgspec import Struct

from treadle.app.checkpoints.files import FileCheckpoints
from treadle.app.checkpoints.opening import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.protocol.base import Record
from treadle.protocol.checkpoints import Moment, Restore
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.comparing import TreeChange

_WHY = {
    Moment.BEFORE: "before changes",
    Moment.AFTER: "after changes",
    Moment.RESTORING: "before files were restored",
    Moment.RESTORED: "after files were restored",
    Moment.FOUND: "after the program ended",
}


class ListedCheckpoint(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A checkpoint: its number, the step it belongs to, its time (milliseconds since 1970, UTC), why it was taken.

    `files`, `added` and `removed` count what changed since the one before; `not_covered` names what is not in it.
    """

    n: int
    step: int
    at: int
    why: str
    files: int
    added: int
    removed: int
    not_covered: tuple[str, ...]


class ChangedPath(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A path that changed, absolute; lines are None for what is no text."""

    path: str
    change: str
    added: int | None
    removed: int | None


class ChangesSince(Struct, frozen=True, kw_only=True):
    """What changed between a checkpoint and now."""

    changes: tuple[ChangedPath, ...]
    diff: str


def listed_checkpoints(store: Store, session_id: str) -> list[ListedCheckpoint]:
    """List the checkpoints of a session, oldest first."""
    return [
        ListedCheckpoint(
            n=one.data.n,
            step=one.data.step,
            at=one.at,
            why=_WHY[one.data.moment],
            files=one.data.files,
            added=one.data.added,
            removed=one.data.removed,
            not_covered=(*one.data.not_covered, *([f"and {one.data.more} more"] if one.data.more else [])),
        )
        for one in Points(store, session_id).checkpoints
    ]


def changed_since(store: Store, row: SessionRow, n: int) -> ChangesSince:
    """Compare a checkpoint with the files as they are now. Raises `TreadleError`."""
    old = Points(store, row.id).checkpoint(n)
    kept = opened_checkpoints(store, row)
    now = kept.look()
    changes = tuple(
        ChangedPath(path=root.shown(one.path), change=_change(one), added=one.added, removed=one.removed)
        for root, one in kept.changes(old.trees, now)
    )
    return ChangesSince(changes=changes, diff=kept.diff(old.trees, now))


def _change(one: TreeChange) -> str:
    return "added" if one.before is None else "deleted" if one.after is None else "changed"


def preview_lines(store: Store, row: SessionRow, kept: FileCheckpoints, wanted: Restore) -> list[str]:
    """Say what restoring would do."""
    lines: list[str] = []
    if wanted.conversation:
        points = Points(store, row.id)
        to = wanted.to or points.conversation_at(wanted.checkpoint)
        gone = [turn for turn in points.turns() if turn.after >= to]
        lines.append(f"conversation: back to event {to}; {len(gone)} of {len(points.turns())} turns leave it")
    if wanted.files:
        now = kept.look()
        for root, plan in kept.plans(wanted.checkpoint, now):
            lines += [f"write     {root.shown(one.path)}" for one in plan.writes]
            lines += [f"delete    {root.shown(one.path)}" for one in plan.removals]
            lines += [f"keep      {root.shown(one.path)}: {one.why}" for one in plan.kept]
            lines += [f"CONFLICT  {root.shown(one.path)}: {one.why}" for one in plan.conflicts]
        if not any(line.startswith(("write", "delete", "CONFLICT")) for line in lines):
            lines.append("files: nothing to restore")
    return lines
