"""Copies of the workspace in which subagents write, and the way of their changes back into it.

A copy is found again by its child's id whatever ended the program, and none that holds unapplied changes is removed
by itself. What was merged becomes the beginning of the copy, so that what differs from that is what is not applied.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.subagents.copy_holding import hold_copy
from treadle.app.subagents.writer_changes import ChangeSet, writer_changes
from treadle.app.subagents.writer_merge import HeldChange, MergeOutcome, merging
from treadle.app.subagents.writer_merging import PersonsPaths
from treadle.app.subagents.writer_record import (
    BASE,
    CHILD_ID,
    RECORD,
    CopiedRoot,
    CopyRecord,
    WriterCopy,
    copy_store,
    hex_of,
    large_digests,
    open_copy,
    opened_copy,
    repository_digest,
    writer_place,
    writer_record,
    writers_folder,
)
from treadle.protocol.errors import SessionError, TreadleError
from treadle.workspace.checkpoints.store import open_checkpoints
from treadle.workspace.copies.whole_copy import WholeCopy, copy_folder, never
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.private_file import make_private_folder, write_private
from treadle.workspace.files.walking import walk
from treadle.workspace.files.whole_folders import remove_tree

__all__ = [
    "ChangeSet",
    "HeldChange",
    "LeftCopy",
    "MergeOutcome",
    "WriterCopy",
    "found_copies",
    "left_copies",
    "make_writer_copy",
    "merge",
    "open_copy",
    "plan",
    "remove_copy",
    "writer_changes",
]


class LeftCopy(Struct, frozen=True, kw_only=True):
    """A copy that is kept: its bytes on the disk, and how many files in it are changed and not applied.

    `unapplied` is None where that cannot be said; `whole`: it was made to its end, and somebody may have worked in it.
    """

    child_id: str
    folder: Path
    workspace: Path | None
    size: int
    unapplied: int | None
    whole: bool


def make_writer_copy(
    workspace: Path,
    roots: Sequence[Path],
    child_id: str,
    *,
    like: WriterCopy | None = None,
    stopped: Callable[[], bool] = never,
) -> WriterCopy:
    """Copy the folders of a workspace for a writer; gives the copy that there is, if this was done before.

    One that is `like` another has what that has, which is one of the same folders in which nobody worked yet. For a
    thread. Raises `ConfigError` for a folder that cannot be copied, `SessionError` where it fails or is `stopped`; then
    nothing is left of it.
    """
    place = writer_place(child_id)
    if (found := open_copy(child_id)) is not None:
        return found
    targets = {} if like is not None else _targets(place, _outer(dict.fromkeys(map(Path.resolve, (workspace, *roots)))))
    try:
        remove_tree(place)
        make_private_folder(place.parent)
        place.mkdir(mode=0o700)
        record = _copied(place, targets, stopped) if like is None else _copied_again(place, like, stopped)
        if stopped():
            raise InterruptedError(errno.ECANCELED, "It was stopped")
        write_private(place / RECORD, msgspec.json.encode(record))
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(place)
        if isinstance(error, OSError):
            raise SessionError(
                "writer-copy",
                f"{workspace} could not be copied.",
                why=f"{error.strerror or error}.",
                fix=f"Free space below {place.parent}, or work without a copy.",
            ) from error
        raise
    return opened_copy(child_id, record)


def _targets(place: Path, folders: Sequence[Path]) -> dict[Path, Path]:
    """Say where each folder goes. Raises `ConfigError` for one that cannot be copied."""
    targets: dict[Path, Path] = {}
    for number, folder in enumerate(folders):
        open_checkpoints(place / "store" / str(number), str(folder)).close()  # refuses what has no checkpoints either
        taken = {path.name for path in targets.values()}
        within = place / "files" if folder.name not in taken else place / f"files-{number}"
        targets[folder] = within / (folder.name or "root")
    return targets


def _copied(place: Path, targets: dict[Path, Path], stopped: Callable[[], bool]) -> CopyRecord:
    moved = {str(folder): str(target) for folder, target in targets.items()}
    rows: list[CopiedRoot] = []
    notes: list[str] = []
    for number, (folder, target) in enumerate(targets.items()):
        target.parent.mkdir(mode=0o700, exist_ok=True)
        row, said = _noted(place, number, (folder, target), copy_folder(folder, target, moved, stopped=stopped))
        rows.append(row)
        notes += said
    return CopyRecord(roots=tuple(rows), notes=tuple(notes))


def _copied_again(place: Path, like: WriterCopy, stopped: Callable[[], bool]) -> CopyRecord:
    """Copy a copy, with what is stored of its beginning: that is read anew only where this one differs from it."""
    origin = writer_place(like.child_id)
    leave = hold_copy(like.child_id, alone=False)
    try:
        record = writer_record(like)
        moved = {str(target): str(place / target.relative_to(origin)) for _, target in like.roots}
        rows: list[CopiedRoot] = []
        notes = dict.fromkeys(record.notes)
        (place / "store").mkdir(mode=0o700)
        for number, ((folder, from_), row) in enumerate(zip(like.roots, record.roots, strict=True)):
            target = Path(moved[str(from_)])
            target.parent.mkdir(mode=0o700, exist_ok=True)
            done = copy_folder(from_, target, moved, stopped=stopped)
            store = Path("store", str(number))
            copy_folder(origin / store, place / store, {}, stopped=stopped)
            if done.same:
                rows.append(row)
            else:
                anew, said = _noted(place, number, (folder, target), done)
                rows.append(anew)
                notes.update(dict.fromkeys(said))
    finally:
        leave()
    return CopyRecord(roots=tuple(rows), notes=tuple(notes))


def _noted(place: Path, number: int, copied: tuple[Path, Path], done: WholeCopy) -> tuple[CopiedRoot, list[str]]:
    """Store how a folder that was `copied` begins; gives its record, and what is not in it as it is in the folder."""
    folder, target = copied
    # Without a repository of its own git's ignore files of the folders above would say what is handed back.
    covers_ignored = not (target / ".git").exists()
    with copy_store(place, number, target, covers_ignored=covers_ignored) as store:
        taken = store.take(BASE)
    row = CopiedRoot(
        source=hex_of(folder),
        target=hex_of(target.relative_to(place)),
        covers_ignored=covers_ignored,
        repositories={os.fsencode(name).hex(): repository_digest(target / name) for name in done.repositories},
        uncovered=tuple(one.path.hex() for one in taken.not_covered),
        large=large_digests(target, [one.path for one in taken.not_covered]),
    )
    uncovered = (f"{shown_name(os.fsdecode(one.path))}: not handed back: {one.why}" for one in taken.not_covered)
    return row, [*done.notes, *uncovered]


_NONE: frozenset[str] = frozenset()


def plan(
    change_set: ChangeSet,
    into: Path | None = None,
    *,
    approved: frozenset[str] = _NONE,
    unsaved: frozenset[str] = _NONE,
) -> MergeOutcome:
    """Say what a merge would do; nothing is written. See `merge`."""
    with merging(change_set, into, PersonsPaths(approved, unsaved)) as begun:
        return begun.outcome


def merge(
    change_set: ChangeSet,
    into: Path | None = None,
    *,
    digest: str = "",
    approved: frozenset[str] = _NONE,
    unsaved: frozenset[str] = _NONE,
) -> MergeOutcome:
    """Bring a change set into the workspace (or `into`): a file that differs there too is merged line by line.

    With the `digest` of a plan nothing is written unless it would do exactly that. `approved` are absolute paths of
    held changes that a person said yes to, `unsaved` are held for a text that a person has not saved. Nothing is
    written over a conflict, and through no link. For a thread.
    Raises `StoreError`, `SessionError`.
    """
    with merging(change_set, into, PersonsPaths(approved, unsaved)) as begun:
        if digest and digest != begun.outcome.digest:
            why = "The workspace changed since this was planned. Nothing was written."
            return replace(begun.outcome, merged=(), refused=why)
        return begun.carry_out()


def remove_copy(child_id: str, *, discard: bool = False) -> None:
    """Remove a copy. Raises `SessionError` where something in it is not applied, unless that may go (`discard`)."""
    copy = open_copy(child_id)
    place = writer_place(child_id)
    if copy is not None and not discard and (why := _why_kept(copy)):
        raise SessionError(
            "writer-unapplied",
            f"The copy of {shown_name(str(copy.workspace))} in {copy.folder} is kept.",
            why=why,
            fix=f"Apply its changes, or discard them: treadle copies show {child_id}",
        )
    if place.is_dir():
        gone = place.with_name(f".removed-{child_id}-{os.urandom(4).hex()}")
        place.rename(gone)  # a copy that is removed by half is found by nobody
        remove_tree(gone)


def found_copies() -> tuple[WriterCopy, ...]:
    """Give the whole copies that can be read, without a look at what is changed in them."""
    found: list[WriterCopy] = []
    with contextlib.suppress(OSError):
        for place in sorted(writers_folder().iterdir()):
            with contextlib.suppress(SessionError):
                copy = open_copy(place.name) if CHILD_ID.fullmatch(place.name) else None
                found += [] if copy is None else [copy]
    return tuple(found)


def left_copies(workspace: Path | None = None) -> tuple[LeftCopy, ...]:
    """List the copies that are kept, and what is left of removed ones, with their sizes. For a thread.

    With a `workspace` only those that are known to be its own; no other one is looked through.
    """
    if workspace is not None:
        return tuple(_left(writer_place(one.child_id)) for one in found_copies() if one.workspace == workspace)
    with contextlib.suppress(OSError):
        return tuple(_left(place) for place in sorted(writers_folder().iterdir()) if place.is_dir())
    return ()


def _left(place: Path) -> LeftCopy:
    try:
        copy = open_copy(place.name) if CHILD_ID.fullmatch(place.name) else None
        known = True
    except SessionError:
        copy, known = None, False
    return LeftCopy(
        child_id=place.name,
        folder=place,
        workspace=None if copy is None else copy.workspace,
        size=_size(place),
        unapplied=None if not known else 0 if copy is None else _unapplied(copy),
        whole=copy is not None or not known,
    )


def _why_kept(copy: WriterCopy) -> str:
    try:
        outcome = plan(writer_changes(copy))
    except TreadleError as error:
        return f"Whether its changes are applied cannot be said: {error.what}"
    left = [f"{count} {what}" for count, what in _counts(outcome) if count]
    return f"It holds what is not applied: {', '.join(left)}." if left else ""


def _counts(outcome: MergeOutcome) -> tuple[tuple[int, str], ...]:
    return (
        (len(outcome.merged), "changed"),
        (len(outcome.conflicts), "in conflict"),
        (len(outcome.held), "held back"),
        (len(outcome.left_out), "too large or not compared"),
    )


def _unapplied(copy: WriterCopy) -> int | None:
    try:
        return sum(count for count, _ in _counts(plan(writer_changes(copy))))
    except TreadleError:
        return None


def _outer(folders: Sequence[Path] | dict[Path, None]) -> list[Path]:
    """Leave out folders that lie in others."""
    return [one for one in folders if not any(one != other and one.is_relative_to(other) for other in folders)]


def _size(folder: Path) -> int:
    """Give the bytes that a folder takes on the disk; what has another name elsewhere is not counted."""
    total = 0
    for place, _, files in walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(place, name))  # noqa: PTH118 - many of them
                total += status.st_blocks * 512 if status.st_nlink == 1 else 0
    return total
