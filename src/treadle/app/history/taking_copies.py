"""Bringing what a session changed in a copy of a folder into that folder, and taking that back."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256

from msgspec import Struct

from treadle.app.checkpoints.opening_checkpoints import session_checkpoints
from treadle.app.compose import session_log
from treadle.app.config.layers import load_settings
from treadle.app.config.places import data_directory
from treadle.app.reports.copy_list import apply_copy, idle_copy, left_lines_of, planned_copy
from treadle.app.subagents.writer_copies import WriterCopy, found_copies
from treadle.app.subagents.writer_record import BASE, base_of, copy_store, writer_place, writer_record
from treadle.protocol.errors import SessionError
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.checkpoints.planning import Interval
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.temporary_files import TemporaryFiles


class TakenChanges(Struct, frozen=True, kw_only=True):
    """Paths that changed in the folder, those that an undo has deleted there, and lines on what did not, and why."""

    files: Sequence[str]
    removed: Sequence[str] = ()
    left: Sequence[str] = ()


def copy_worked_in(row: SessionRow) -> WriterCopy | None:
    """Find the copy that a session works in; None where that is no copy, or is gone."""
    return next((one for one in found_copies() if str(one.folder) == row.workspace), None)


def times_taken(store: Store, row: SessionRow, copy: WriterCopy) -> int:
    """Count how often the changes of a session in a copy were taken, and that was not undone."""
    if not copy.workspace.is_dir():
        return 0
    with _kept(store, row, copy) as kept:
        return _times(kept, row)


def take_changes(session_id: str) -> TakenChanges:
    """Bring what a session changed in its copy into the folder; how that was before and after is kept for an undo.

    What differs there too stays as it is, and is named. Raises `SessionError` where the session works still.
    """
    with session_log(session_id) as (row, store):
        copy = _require_copy(row)
        with idle_copy(copy.child_id) as held, _kept(store, row, copy) as kept, copy_beginning(copy) as begun:
            planned = planned_copy(held, protected=False)
            number = _times(kept, row) + 1
            before, after = _names(row, number)
            kept.take(before)
            begun.keep(f"taken-{number}", base_of(begun, held))
            done = apply_copy(held, planned)
            if done.merged:
                kept.take(after)
            else:
                kept.forget(before)
            if done.refused:
                raise SessionError("copy-moved", "Nothing was taken.", why=done.refused, fix="Try again.")
    return TakenChanges(files=[shown_name(one.path) for one in done.merged], left=left_lines_of(done))


def undo_taken(session_id: str) -> TakenChanges:
    """Take back what `take_changes` did last; what others changed since stays, and is named. Raises `SessionError`."""
    with session_log(session_id) as (row, store):
        copy = _require_copy(row)
        with _kept(store, row, copy) as kept, copy_beginning(copy) as begun:
            number = _times(kept, row)
            before, after = map(kept.tree_of, _names(row, number))
            if before is None:
                why = "Nothing of its copy is in the folder."
                raise SessionError("nothing-to-undo", why, fix="Load the page again.")
            now = kept.take(f"{row.id}/now").tree
            plan = kept.plan_restore(before, now, [_taken(kept, copy, (before, after, now))])
            done = kept.apply(plan, temporary_files=TemporaryFiles(str(data_directory() / "saving")))
            if base := begun.tree_of(f"taken-{number}"):
                begun.keep(BASE, base)  # what was taken can be taken again
            begun.forget(f"taken-{number}")
            kept.forget(f"{row.id}/taken-{number}/")
    stays = [*((one.path, one.why) for one in (*plan.conflicts, *done.conflicts))]
    stays += [(one.path, one.why) for one in done.failed]
    return TakenChanges(
        files=[shown_name(os.fsdecode(one)) for one in done.written],
        removed=[shown_name(os.fsdecode(one)) for one in done.removed],
        left=[f"{shown_name(os.fsdecode(path))}: {why}" for path, why in stays],
    )


def _taken(kept: CheckpointStore, copy: WriterCopy, trees: tuple[str, str | None, str]) -> Interval:
    """Say what was done between `before` and `after`. A program that was killed meanwhile left no `after`: then what
    is `now` as it is in the copy came from there, and whatever else is not as before is named and stays.
    """
    before, after, now = trees
    if after is not None:
        return Interval(before=before, after=after, by_session=True)
    there = (copy.folder / os.fsdecode(path) for path in kept.paths(before, now))
    own = frozenset(sha256(one.read_bytes()).hexdigest() for one in there if one.is_file() and not one.is_symlink())
    return Interval(before=before, after=now, by_session=True, unclear=own)


def _require_copy(row: SessionRow) -> WriterCopy:
    copy = copy_worked_in(row)
    if copy is None:
        raise SessionError(
            "no-copy",
            "This session works in no copy.",
            why="It works in the folder itself, or its copy is gone.",
            fix="A session is started in a copy with treadle -w NAME, or on the page.",
        )
    if not copy.workspace.is_dir():
        what = f"The folder {copy.workspace} is not there."
        raise SessionError("workspace-missing", what, fix="Put it back where it was.")
    return copy


def _names(row: SessionRow, number: int) -> tuple[str, str]:
    """Under which names the folder is kept as it was before, and after, the changes were taken."""
    return f"{row.id}/taken-{number}/before", f"{row.id}/taken-{number}/after"


def _times(kept: CheckpointStore, row: SessionRow) -> int:
    names = kept.names(f"{row.id}/taken-")
    return max((int(name.partition("/")[0]) for name in names if name.endswith("/before")), default=0)


@contextmanager
def copy_beginning(copy: WriterCopy) -> Iterator[CheckpointStore]:
    """Open what is kept of how a copy began, as `BASE`: what was taken is its beginning from then on."""
    (_, target), row = copy.roots[0], writer_record(copy).roots[0]
    with copy_store(writer_place(copy.child_id), 0, target, covers_ignored=row.covers_ignored) as begun:
        yield begun


@contextmanager
def _kept(store: Store, row: SessionRow, copy: WriterCopy) -> Iterator[CheckpointStore]:
    """Open what is kept of the folder that the copy is one of."""
    ignored = load_settings({}).checkpoints.ignored
    with closing(session_checkpoints(store, row.id, (str(copy.workspace),), ignored=ignored)) as kept:
        yield kept.roots[0].kept
