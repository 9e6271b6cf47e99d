"""A change set on its way into the workspace: what a merge would do, and doing exactly that."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.checkpoints.conflicts import FileConflict
from treadle.app.config.places import data_directory
from treadle.app.subagents.writer_changes import ChangeSet
from treadle.app.subagents.writer_merging import MergePlan, MergePlanner, PersonsPaths
from treadle.app.subagents.writer_record import BASE, base_of, copy_store, writer_place, writer_record
from treadle.protocol.errors import SessionError
from treadle.protocol.tools import FileChange
from treadle.workspace.checkpoints.comparing import entry_diff, lines_between
from treadle.workspace.checkpoints.restoring import Restorer, RestoreReport
from treadle.workspace.checkpoints.revising import RevisedFile
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.checkpoints.trees import BlobReader, TreeEntry
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.temporary_files import TemporaryFiles

_REPOSITORY = "branches, settings or hooks of the copy's repository; take them with git"


class HeldChange(Struct, frozen=True):
    """A change that is not made without a person's yes: its absolute path in the workspace, and why."""

    path: str
    why: str


class MergeOutcome(Struct, frozen=True, kw_only=True):
    """What a merge did, or would do: each path is absolute, in the workspace, and in one of these at most.

    `diff` shows exactly what is written, over what is there now; `digest` names it. `refused` says why nothing was
    written at all, `failed` what could not be. `left_out` is what changed in the copy and cannot be handed back.
    """

    merged: tuple[FileChange, ...] = ()
    conflicts: tuple[FileConflict, ...] = ()
    held: tuple[HeldChange, ...] = ()
    left_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    diff: str = ""
    digest: str = ""
    refused: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing of the copy's changes stays behind."""
        return not (self.conflicts or self.held or self.left_out or self.failed or self.refused)


class _Written(NamedTuple):
    """A path that is written or removed."""

    path: bytes
    change: FileChange
    diff: str


class Merging:
    """One change set on its way into the folders."""

    def __init__(self, change_set: ChangeSet, targets: Sequence[Path], persons: PersonsPaths) -> None:
        self._set = change_set
        self._targets = targets
        self._stack = contextlib.ExitStack()
        self._stores: list[CheckpointStore] = []
        self._planners: list[MergePlanner] = []
        self._plans: list[MergePlan] = []
        try:
            self._open(persons)
            self.outcome = self._planned()
        except BaseException:
            self.close()
            raise

    def _open(self, persons: PersonsPaths) -> None:
        change_set, record = self._set, writer_record(self._set.copy)
        for number, target in enumerate(self._targets):
            row, place = record.roots[number], writer_place(change_set.copy.child_id)
            copied = change_set.copy.roots[number][1]
            opened = copy_store(place, number, copied, covers_ignored=row.covers_ignored)
            store = self._stack.enter_context(opened)
            self._stores.append(store)
            mine = [change for change in change_set.files if change.root == number]
            planner = MergePlanner(str(target), mine, self._reader(store), persons)
            self._stack.callback(planner.close)
            self._planners.append(planner)
            self._plans.append(planner.plan())

    def close(self) -> None:
        """Let go of stores and folders."""
        self._stack.close()

    def _reader(self, store: CheckpointStore) -> BlobReader:
        made = self._set.made
        return lambda what: made[what] if what in made else store.read(what)

    def _planned(self) -> MergeOutcome:
        held = [
            HeldChange(f"{target}/{os.fsdecode(path)}", why)
            for target, made in zip(self._targets, self._plans, strict=True)
            for path, why in made.held.items()
        ]
        return MergeOutcome(
            merged=tuple(one.change for number in range(len(self._plans)) for one in self._written(number)),
            conflicts=tuple(
                planner.conflict(path)
                for planner, made in zip(self._planners, self._plans, strict=True)
                for path in made.conflicts
            ),
            held=tuple(held),
            left_out=(*self._set.left_out, *(f"{shown_name(one)}: {_REPOSITORY}" for one in self._set.repositories)),
            diff="".join(map(self._diff, range(len(self._plans)))),
            digest=self._digest(),
        )

    def _digest(self) -> str:
        rows = [
            (number, path.hex(), now, wanted)
            for number, made in enumerate(self._plans)
            for path, now, wanted in (
                *((one.path, one.now, one.entry) for one in made.restore.writes),
                *((one.path, one.now, None) for one in made.restore.removals),
                *((path, None, None) for path in (*made.conflicts, *made.held)),
            )
        ]
        return sha256(msgspec.json.encode([*map(str, self._targets), rows])).hexdigest()

    def _diff(self, number: int) -> str:
        """Show what is written in a folder, with paths below it."""
        diff = "".join(one.diff for one in self._written(number))
        return f"In {shown_name(str(self._targets[number]))}:\n{diff}" if number and diff else diff

    def _written(self, number: int) -> Iterator[_Written]:
        made, read = self._plans[number].restore, self._planners[number].read
        rows: list[tuple[bytes, TreeEntry | None, TreeEntry | None, bytes | None]] = [
            *((one.path, one.now, one.entry, one.content) for one in made.writes),
            *((one.path, one.now, None, None) for one in made.removals),
        ]
        for path, now, entry, content in sorted(rows, key=lambda row: row[0]):
            old = b"" if now is None else read(now.what)
            new = content if content is not None else b"" if entry is None else read(entry.what)
            added, removed = lines_between(old, new)
            change = FileChange(
                path=f"{self._targets[number]}/{os.fsdecode(path)}",
                before="" if now is None else now.what,
                after="" if entry is None else entry.what,
                added=added or 0,
                removed=removed or 0,
            )
            yield _Written(path, change, entry_diff(os.fsdecode(path), now, entry, (old, new)))

    def carry_out(self) -> MergeOutcome:
        """Write; what was written becomes the beginning of the copy."""
        merged: list[FileChange] = []
        conflicts = list(self.outcome.conflicts)
        failed: list[str] = []
        for number, target in enumerate(self._targets):
            made, planner = self._plans[number], self._planners[number]
            wanted = {one.path: one.change for one in self._written(number)}
            notes = TemporaryFiles(str(data_directory() / "saving"))
            report = Restorer(str(target), planner.read, notes).carry_out(made.restore)
            done = [*report.written, *report.removed]
            merged += [wanted[path] for path in sorted(done)]
            conflicts += [planner.conflict(one.path) for one in report.conflicts]
            failed += self._failures(number, report)
            self._begin_anew(number, [*done, *made.same])
        return replace(self.outcome, merged=tuple(merged), conflicts=tuple(conflicts), failed=tuple(failed))

    def _failures(self, number: int, report: RestoreReport) -> Iterator[str]:
        for one in report.failed:
            yield f"{shown_name(f'{self._targets[number]}/{os.fsdecode(one.path)}')}: {one.why}"

    def _begin_anew(self, number: int, paths: Sequence[bytes]) -> None:
        changed = {change.path: change.kept for change in self._set.files if change.root == number}
        revisions = {path: self._beginning(changed[path]) for path in paths}
        if revisions:
            store = self._stores[number]
            store.revise(BASE, base_of(store, self._set.copy), revisions)

    def _beginning(self, kept: TreeEntry | None) -> RevisedFile | None:
        """Give what a path of the copy begins with from now on; of a part of a file the store has no bytes yet."""
        return None if kept is None else RevisedFile(entry=kept, content=self._set.made.get(kept.what))


@contextlib.contextmanager
def merging(change_set: ChangeSet, into: Path | None, persons: PersonsPaths) -> Iterator[Merging]:
    targets = [source for source, _ in change_set.copy.roots]
    if into is not None:
        targets[0] = into.resolve()
    try:
        merging = Merging(change_set, targets, persons)
    except OSError as error:
        raise SessionError(
            "writer-merge",
            f"The changes of the copy {change_set.copy.child_id} could not be applied.",
            why=f"{shown_name(str(error.filename or targets[0]))}: {error.strerror}.",
            fix="Nothing was changed. Make sure that the folder is there, or apply them to another one: "
            f"treadle copies apply {change_set.copy.child_id} --into DIR",
        ) from error
    try:
        yield merging
    finally:
        merging.close()
