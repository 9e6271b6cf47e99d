"""The copies that are kept of subagents and sessions: listed, shown change by change, applied, and discarded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from treadle.app.checkpoints.conflicts import ConflictPart, FileConflict
from treadle.app.compose import open_store
from treadle.app.subagents.copy_holding import hold_copy
from treadle.app.subagents.writer_changes import ChangeSet
from treadle.app.subagents.writer_copies import (
    LeftCopy,
    MergeOutcome,
    WriterCopy,
    found_copies,
    left_copies,
    merge,
    open_copy,
    plan,
    remove_copy,
    writer_changes,
)
from treadle.app.subagents.writer_hunks import CopyHunk, copy_hunks, part_of
from treadle.present.words import counted
from treadle.protocol.children import ChildEnded
from treadle.protocol.errors import SessionError, TreadleError
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import visible

_MOST_LINES = 2_000


class CopyPlan(Struct, frozen=True):
    """What is to be applied of a copy: `change_set` all of it or a part, and what that `would` do."""

    change_set: ChangeSet
    would: MergeOutcome
    approved: frozenset[str]
    into: Path | None


def named_copy(name: str, workspace: Path | None = None) -> WriterCopy:
    """Find a kept copy (of this `workspace`) by its name, or the beginning of it. Raises `SessionError`."""
    found = [
        one.child_id
        for one in found_copies()
        if one.child_id.startswith(name) and (workspace is None or one.workspace == workspace)
    ]
    exact = [one for one in found if one == name] or found
    copy = open_copy(exact[0]) if name and len(exact) == 1 else None
    if copy is None:
        if not found and workspace is None:
            _require_usable(name)
        what = f"{len(found)} copies begin with {name}." if found and name else f"No copy is named {visible(name)}."
        raise SessionError("copy-unknown", what, fix="`treadle copies` lists them, in a session /copies.")
    return copy


def _require_usable(name: str) -> None:
    """Raise `SessionError` for a copy that is listed, and of which nothing can be shown or applied."""
    row = next((one for one in left_copies() if one.child_id == name), None)
    if row is None:
        return
    if row.whole:
        open_copy(name)
    raise SessionError(
        "writer-copy",
        f"The copy {visible(name)} is unfinished, and nobody worked in it.",
        fix=f"To remove it, remove this folder: {visible(str(row.folder))}",
    )


@contextmanager
def idle_copy(name: str, workspace: Path | None = None) -> Iterator[WriterCopy]:
    """Find a kept copy in which nobody works, and keep it so. Raises `SessionError`."""
    copy = named_copy(name, workspace)
    _require_idle(copy)  # first, as it can say who works there
    leave = hold_copy(copy.child_id, alone=True)
    try:
        _require_idle(copy)
        yield copy
    finally:
        leave()


def _require_idle(copy: WriterCopy) -> None:
    store = open_store()
    try:
        if found := _working_in(copy, store):
            raise SessionError(
                "copy-busy",
                f"The copy {copy.child_id} is in use.",
                why="Its subagent or session works, or its changes are being applied.",
                fix=f"Wait for its end, or stop it: treadle stop {found}",
            )
    finally:
        store.close()


def _working_in(copy: WriterCopy, store: Store) -> str:
    """Give the session that works in a copy, or whose subagent does; empty where nobody does."""
    leased, rows = store.leased(), store.sessions(subagents=True)
    for row in rows:
        if row.id in leased and _is_within(row, copy):
            return row.id
    child = next((row for row in rows if row.id == copy.child_id), None)
    if child is None or child.root not in leased:
        return ""
    ends = (event_data(row[2], row[3]) for row in store.of_types(child.root, (tag_of(ChildEnded),)))
    is_over = any(isinstance(end, ChildEnded) and end.session_id == copy.child_id for end in ends)
    return "" if is_over else child.root


def _is_within(row: SessionRow, copy: WriterCopy) -> bool:
    return any(Path(row.workspace).is_relative_to(target) for _, target in copy.roots)


def _has_session(copy: WriterCopy) -> bool:
    """Whether a person's own session works in a copy, and can go on there."""
    store = open_store()
    try:
        return any(not row.root and _is_within(row, copy) for row in store.sessions())
    finally:
        store.close()


def copy_rows() -> Iterator[Mapping[str, str | int | bool | None]]:
    """Give the kept copies as they are printed for programs; sizes are bytes."""
    for one in left_copies():
        yield {
            "id": one.child_id,
            "folder": str(one.folder),
            "workspace": None if one.workspace is None else str(one.workspace),
            "size": one.size,
            "unapplied": one.unapplied,
            "whole": one.whole,
        }


def copies_text(rows: Sequence[LeftCopy], command: str = "treadle copies") -> str:
    """List copies with what of them is not applied, and what the `command` that lists them does with one."""
    lines = [line for one in rows for line in _row(one)]
    if not lines:
        return "No copy is kept."
    usage = (
        f"{command} show ID: its changes",
        f"{command} apply ID [KEY ...]: apply them, or only these",
        f"{command} discard ID: remove the copy",
    )
    return visible("\n".join([*lines, "", *usage]))


def _row(one: LeftCopy) -> Iterator[str]:
    size = f"{one.size / 1_000_000:,.1f} MB"
    if not one.whole:
        yield f"{one.child_id}  unfinished, nobody worked in it, {size}: {one.folder}"
        return
    state = (
        "what is not applied cannot be said"
        if one.unapplied is None
        else f"{counted(one.unapplied, 'file')} not applied"
        if one.unapplied
        else "all applied"
    )
    yield f"{one.child_id}  {state}, {size}, of {one.workspace or 'an unknown folder'}"


def copy_text(copy: WriterCopy) -> str:
    """Show what is not applied of a copy, change by change, and why parts of it are not applied with the rest."""
    change_set = writer_changes(copy)
    parts = copy_hunks(change_set)
    lines = [f"Copy {copy.child_id} of {copy.workspace}, in {copy.folder}"]
    lines += [line for one in parts for line in _part(one)]
    if len(lines) > _MOST_LINES:
        left = len(lines) - _MOST_LINES
        lines = [*lines[:_MOST_LINES], f"[{left:,} more lines are not shown: see {copy.folder}]"]
    if not change_set:
        lines.append("All of it is applied.")
    try:
        lines += left_lines_of(plan(change_set))
    except SessionError as error:  # the folder is gone: what is in the copy can be seen, and applied to another one
        lines += [f"What applying it would do is unknown: {error.why}", error.fix]
    lines += [f"Not in the copy as in the folder: {note}" for note in copy.notes]
    return visible("\n".join(lines))


def _part(one: CopyHunk) -> Iterator[str]:
    note = f" ({one.protected} is protected: apply it by its key)" if one.protected else ""
    about = f" ({one.about})" if one.about else ""
    if one.hunk is None:
        yield f"[{one.key}] {one.shown}: {one.about}{note}"
        return
    hunk = one.hunk
    yield f"[{one.key}] {one.shown}, line {max(hunk.new_first, 1)}{about}{note}"
    for sign, lines in ((" ", hunk.above), ("-", hunk.old), ("+", hunk.new), (" ", hunk.below)):
        yield from (f"{sign}{line}" for line in lines)


def left_lines_of(would: MergeOutcome) -> list[str]:
    """Name what of a copy stays where it is, and why."""
    lines = [line for one in would.conflicts for line in _conflict(one)]
    lines += [f"Only by its key, with treadle copies apply: {shown_name(one.path)} ({one.why})" for one in would.held]
    lines += [f"Not handed back: {one}" for one in would.left_out]
    return [*lines, *(f"Failed: {one}" for one in would.failed)]


def _conflict(one: FileConflict) -> Iterator[str]:
    yield f"Conflict: {one.path} is changed in the folder, too, in the same lines. It stays as it is."
    for name, about in zip(("at the beginning", "in the copy", "in the folder"), one.about, strict=True):
        if about:
            yield f"  {name}: {about}"
    for place in one.places:
        for name, part in (("at the beginning", place.before), ("in the copy", place.session), ("now", place.now)):
            yield from _side(name, part)


def _side(name: str, part: ConflictPart) -> Iterator[str]:
    yield f"  {name}, line {part.first}:"
    yield from (f"    {line}" for line in part.lines)


def planned_copy(
    copy: WriterCopy, keys: Sequence[str] = (), into: Path | None = None, *, protected: bool = True
) -> CopyPlan:
    """Say what applying a copy, or the changes of it with these keys, would do; nothing is written.

    A protected file is among it only where `protected` and a key names it. Raises `ConfigError`, `SessionError`,
    `StoreError`.
    """
    change_set = writer_changes(copy)
    named: frozenset[str] = frozenset()
    if keys:
        change_set, named = part_of(change_set, keys)
    if into is not None:
        base, there = f"{copy.workspace}/", f"{into.resolve()}/"
        named = frozenset(there + path.removeprefix(base) if path.startswith(base) else path for path in named)
    approved = named if protected else frozenset()
    return CopyPlan(change_set, plan(change_set, into, approved=approved), approved, into)


def apply_copy(copy: WriterCopy, wanted: CopyPlan) -> MergeOutcome:
    """Apply exactly what was planned; the copy of a subagent of which nothing is left then is removed.

    Raises as `planned_copy`, but for what fails after something was applied: then the copy stays.
    """
    done = merge(wanted.change_set, wanted.into, digest=wanted.would.digest, approved=wanted.approved)
    if not done.refused:
        with suppress(TreadleError, OSError):
            if not (_has_session(copy) or writer_changes(copy)):
                remove_copy(copy.child_id, discard=True)
    return done


def applied_text(copy: WriterCopy, done: MergeOutcome) -> str:
    """Say what was applied, and what is left."""
    if done.refused:
        return f"Nothing was applied: {done.refused}"
    lines = [f"Applied: {shown_name(one.path)} (+{one.added} -{one.removed})" for one in done.merged]
    lines = [*(lines or ["Nothing was applied."]), *left_lines_of(done)]
    try:
        lines.append(_what_stays(copy, done))
    except (TreadleError, OSError) as error:  # what was applied is said nevertheless
        lines.append(f"The copy stays in {copy.folder}. What is left in it cannot be said: {error}")
    return visible("\n".join(lines))


def _what_stays(copy: WriterCopy, done: MergeOutcome) -> str:
    if open_copy(copy.child_id) is None:
        return "Nothing is left in the copy. It was removed."
    rest = "All of it is applied." if done.complete and not writer_changes(copy) else "The rest is kept in it."
    return f"The copy stays in {copy.folder}. {rest} To remove it: treadle copies discard {copy.child_id}"


def discard_copy(copy: WriterCopy) -> str:
    """Remove a copy with all that is not applied of it."""
    remove_copy(copy.child_id, discard=True)
    return f"The copy {copy.child_id} was removed. What was not applied of it is gone."


def rows_of_folder(store: Store, workspace: Path) -> list[SessionRow]:
    """List the sessions of a folder, and those in copies of it that are kept, the last used first."""
    copies = (copy.folder for copy in found_copies() if copy.workspace == workspace)
    rows = [row for folder in (workspace, *copies) for row in store.sessions(str(folder))]
    return sorted(rows, key=lambda row: (row.updated_at, row.id), reverse=True)


def rows_of_project(store: Store, workspace: Path | None) -> list[tuple[SessionRow, str]]:
    """List all sessions with the folder that each works for, or only those that work for one, the last used first.

    A subagent works for the folder of whoever began it, and who works in a copy that is kept, for what was copied.
    """
    rows = store.sessions(subagents=True)
    folders = {row.id: row.workspace for row in rows}
    copied = {str(copy.folder): str(copy.workspace) for copy in found_copies()}
    projects = ((row, folders.get(row.root, row.workspace)) for row in rows)
    found = [(row, copied.get(folder, folder)) for row, folder in projects]
    return [one for one in found if workspace is None or one[1] == str(workspace)]


_USAGE = "/copies lists them; /copies show ID, /copies apply ID [KEY ...], /copies discard ID"


def copies_command(workspace: Path, argument: str) -> str:
    """Do what a person wants of the copies of a folder, in a session in it; lists them. Raises `TreadleError`."""
    match argument.split():
        case []:
            return copies_text(left_copies(workspace), "/copies")
        case ["show", name]:
            return copy_text(named_copy(name, workspace))
        case ["apply", name, *keys]:
            with idle_copy(name, workspace) as copy:
                return applied_text(copy, apply_copy(copy, planned_copy(copy, keys, protected=False)))
        case ["discard", name]:
            with idle_copy(name, workspace) as copy:
                return discard_copy(copy)
        case _:
            raise SessionError("copy-use", "These words are not known here.", fix=_USAGE)
