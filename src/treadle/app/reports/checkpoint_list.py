"""The checkpoints of a session as they are listed, and what changed since one."""

import os
from contextlib import closing

from msgspec import Struct

from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.own_files import KeptRoot
from treadle.app.checkpoints.points import Points
from treadle.protocol.base import Record
from treadle.protocol.checkpoints import CheckpointTaken, Moment, Restore
from treadle.protocol.events import Compacted, EditChecklist, Noted, Pin, Prompt, ReplyFinished
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.comparing import TreeChange, bytes_diff
from treadle.workspace.checkpoints.planning import PlannedWrite
from treadle.workspace.checkpoints.trees import TreeKind

WHY_TAKEN = {
    Moment.BEFORE: "before changes",
    Moment.AFTER: "after changes",
    Moment.RESTORING: "before files were restored",
    Moment.RESTORED: "after files were restored",
    Moment.FOUND: "after the program ended",
}


_SAYING = tuple(map(tag_of, (Compacted, EditChecklist, Noted, Pin, Prompt, ReplyFinished)))
"""The events after which a conversation is another one."""


class ListedCheckpoint(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A checkpoint: its number, the step it belongs to, its time (milliseconds since 1970, UTC), why it was taken.

    Those around a restore belong to none: their step is 0.
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
            step=one.data.step if one.data.moment.of_step else 0,
            at=one.at,
            why=WHY_TAKEN[one.data.moment],
            files=one.data.files,
            added=one.data.added,
            removed=one.data.removed,
            not_covered=(*one.data.not_covered, *([f"and {one.data.more} more"] if one.data.more else [])),
        )
        for one in Points(store, session_id).checkpoints
    ]


def own_files(store: Store, session_id: str) -> int:
    """Count the files that have something of a session's own work, as the last checkpoint that counts them says."""
    for _, _, raw, version in reversed(store.of_types(session_id, (tag_of(CheckpointTaken),))):
        data = event_data(raw, version)
        if isinstance(data, CheckpointTaken) and data.total is not None:
            return data.total.files
    return 0


def changed_since(store: Store, row: SessionRow, n: int) -> ChangesSince:
    """Compare a checkpoint with the files as they are now. Raises `TreadleError`."""
    old = Points(store, row.id).checkpoint(n)
    with closing(opened_checkpoints(store, row)) as kept:
        now = kept.look()
        changes = tuple(
            ChangedPath(path=root.shown(one.path), change=_change(one), added=one.added, removed=one.removed)
            for root, one in kept.changes(old.trees, now)
        )
        return ChangesSince(changes=changes, diff=kept.diff(old.trees, now))


def _change(one: TreeChange) -> str:
    return "added" if one.before is None else "deleted" if one.after is None else "changed"


class PreviewedPath(Struct, frozen=True, kw_only=True):
    """A path and what restoring would do to it: `write`, `delete`, `keep` or `conflict`, and why.

    `diff` shows what would change in it where that was asked for, with so many lines. `comes`: it is not there now.
    """

    what: str
    path: str
    why: str = ""
    diff: str = ""
    comes: bool = False

    @property
    def added(self) -> int:
        """The lines that its diff adds."""
        return self._lines("+")

    @property
    def removed(self) -> int:
        """The lines that its diff takes away."""
        return self._lines("-")

    def _lines(self, sign: str) -> int:
        return sum(line.startswith(sign) for line in self.diff.partition("\n@@")[2].split("\n"))


class RestorePreview(Struct, frozen=True, kw_only=True):
    """What restoring would do: where the conversation would be, how many of its turns leave it, and each path.

    `cut` is the number of a turn of which a part stays, 0 for none. `moves` says that the conversation would be another
    one than now, `returns` that it gets back what it was without since somebody went back in it.
    """

    to: int = 0
    leaving: int = 0
    turns: int = 0
    cut: int = 0
    moves: bool = False
    returns: bool = False
    paths: tuple[PreviewedPath, ...] = ()


def restore_preview(
    store: Store, row: SessionRow, kept: FileCheckpoints, wanted: Restore, *, diffs: int = 0
) -> RestorePreview:
    """Find out what restoring would do; with the diffs of so many files. Raises `TreadleError`."""
    to = leaving = turns = cut = 0
    moves = returns = False
    if wanted.conversation:
        points = Points(store, row.id)
        to = wanted.to or points.conversation_at(wanted.checkpoint)
        turns = len(points.turns())
        leaving = sum(turn.after >= to for turn in points.turns())
        cut = points.cut_turn(to)
        cuts = store.left_behind(row.id)
        returns = any(to in one for one in cuts)
        said = (seq for seq, *_ in store.of_types(row.id, _SAYING) if seq > to)
        moves = returns or any(not any(seq in one for one in cuts) for seq in said)
    paths: list[PreviewedPath] = []
    for root, plan in kept.plans(wanted.checkpoint, kept.look()) if wanted.files else ():
        for one in plan.writes:
            shown = diffs > len(paths) and one.entry.kind is TreeKind.FILE
            diff = _diff_of(root, one) if shown else ""
            paths.append(PreviewedPath(what="write", path=root.shown(one.path), diff=diff, comes=one.now is None))
        for gone in plan.removals:
            shown = diffs > len(paths) and gone.now.kind is TreeKind.FILE
            diff = bytes_diff(os.fsdecode(gone.path), root.kept.read(gone.now.what), b"") if shown else ""
            paths.append(PreviewedPath(what="delete", path=root.shown(gone.path), diff=diff))
        paths += [PreviewedPath(what="keep", path=root.shown(one.path), why=one.why) for one in plan.kept]
        paths += [PreviewedPath(what="conflict", path=root.shown(one.path), why=one.why) for one in plan.conflicts]
    return RestorePreview(
        to=to, leaving=leaving, turns=turns, cut=cut, moves=moves, returns=returns, paths=tuple(paths)
    )


def _diff_of(root: KeptRoot, write: PlannedWrite) -> str:
    now = write.now
    old = root.kept.read(now.what) if now is not None and now.kind is not TreeKind.NOT_COVERED else b""
    new = root.kept.read(write.entry.what) if write.content is None else write.content
    return bytes_diff(os.fsdecode(write.path), old, new)


def preview_lines(found: RestorePreview, wanted: Restore) -> list[str]:
    """Say what restoring would do."""
    lines: list[str] = []
    if wanted.conversation:
        rest = f", and what turn {found.cut} did after that" if found.cut else ""
        lines.append(f"conversation: back to event {found.to}; {found.leaving} of {found.turns} turns leave it{rest}")
    for one in found.paths:
        what = one.what.upper() if one.what == "conflict" else one.what
        lines.append(f"{what:<9} {one.path}" + (f": {one.why}" if one.why else ""))
    if wanted.files and all(one.what == "keep" for one in found.paths):
        lines.append("files: nothing to restore")
    return lines
