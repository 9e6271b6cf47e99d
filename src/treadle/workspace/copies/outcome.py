"""What becomes of a copy: reading its changes, applying all of them, and throwing it away."""

import contextlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Confinement, CopyChanges, FileChange, OutputFolder, Right, Rights, SandboxDenial
from treadle.workspace.checkpoints.trees import folders_above
from treadle.workspace.copies.applying import carry_out, take_back
from treadle.workspace.copies.caches import in_output
from treadle.workspace.copies.choosing_changes import (
    ChangeSelection,
    Hold,
    Shown,
    new_ignore_files,
    select_changes,
)
from treadle.workspace.copies.making import Copy
from treadle.workspace.copies.new_repositories import acting_changes
from treadle.workspace.copies.showing import LARGEST_TEXT, CopyTexts, is_about_text, show_changes
from treadle.workspace.copies.staging import (
    Contents,
    Difference,
    EntryState,
    Manifest,
    place_in,
    read_manifest,
    remove_folder,
    take_abandoned,
)
from treadle.workspace.copies.upper import MASKED, REPOSITORY
from treadle.workspace.sandbox.profile import is_within

_MOST_NAMED = 10

_NEEDS_WORK = "It needs `work`, where commands run in the workspace itself."
_LOST = f"What it changed in its copy is lost: it was stopped before that was read. {_NEEDS_WORK}"
_FULL = f"The copy is full: it is kept in memory and bounded. {_NEEDS_WORK}"
_LIMITS = (
    (re.compile(r"no space left on device|\bENOSPC\b|os error 28\b|\[Errno 28\]", re.IGNORECASE), _FULL),
    (
        re.compile(r"invalid cross-device link|\bEXDEV\b|os error 18\b|\[Errno 18\]", re.IGNORECASE),
        f"A folder that was there before cannot be renamed in the copy. {_NEEDS_WORK}",
    ),
    (
        re.compile(r"value too large for defined data type|\bEOVERFLOW\b|os error 75\b|\[Errno 75\]", re.IGNORECASE),
        f"A file or folder of another user or group cannot be changed in the copy. {_NEEDS_WORK}",
    ),
)


class TakenBack(Struct, frozen=True):
    """An application of changes that a kill had cut short; `left` are paths that somebody changed since."""

    left: tuple[str, ...]

    @property
    def text(self) -> str:
        """Say for a person what was done."""
        said = "Treadle was killed while it applied the changes of a command. What it had applied was undone."
        names = ", ".join(map(repr, self.left[:_MOST_NAMED]))
        more = f" and {len(self.left) - _MOST_NAMED:,} more" if len(self.left) > _MOST_NAMED else ""
        return f"{said} Changed since by somebody, so left as it is: {names}{more}." if self.left else said


def read_changes(copy: Copy, hold: Hold, *, output: str = "", failed: bool = False) -> CopyChanges:
    """Say what a command changed in its copy, once it has ended. `output` is searched for the copy's own limits.

    `hold` says of an absolute path why it must not be changed; empty for what may be. Looks at the disk.
    """
    manifest = read_manifest(copy.folder)
    trouble = _trouble(manifest, output, failed=failed)
    if manifest is None or manifest.trouble:
        return CopyChanges(trouble=trouble)
    choice = _choice(copy, manifest, hold)
    rows, diff = show_changes(copy, choice.shown)
    return CopyChanges(
        digest=choice.digest,
        changes=rows,
        ignored=choice.thrown_away,
        trouble=trouble,
        diff=diff,
        outputs=tuple(_output_folders(copy, choice.outputs)),
        rights=_rights_for_real(copy, choice.shown, hold) if trouble or choice.is_held else None,
    )


def _output_folders(copy: Copy, outputs: Sequence[Difference]) -> Iterator[OutputFolder]:
    """Count the files that git ignores by the outermost changed folder that they are in, or by their own path."""
    changed = {(change.root, change.path) for change in outputs}
    counts: dict[str, int] = {}
    for change in outputs:
        if set(change.kinds) <= {"", "d"}:
            continue
        outermost = next(
            (
                above
                for above in reversed([*folders_above(change.path)])
                if (change.root, above) in changed or in_output(above + b"/")
            ),
            change.path,
        )
        place = place_in(copy.roots[change.root], outermost)
        counts[place] = counts.get(place, 0) + 1
    return (OutputFolder(path=path, files=files) for path, files in sorted(counts.items()))


def _rights_for_real(copy: Copy, shown: Sequence[Shown], hold: Hold) -> Rights:
    """Say what a command needs to do in the workspace itself what it did in its copy.

    What is new in a folder that is held as a whole needs the folder.
    """
    granted: list[SandboxDenial] = []
    git = False
    for one in sorted(shown, key=lambda one: one.change.path):
        path = one.change.place(copy.roots)
        if one.change.before is None and hold(folder := posixpath.dirname(path)) and Path(folder).exists():
            path = folder
        git = git or one.change.note == REPOSITORY
        rights = (Right.READ, Right.WRITE) if one.change.note == MASKED else (Right.WRITE,) if one.by_rule else ()
        for right in rights:
            if not any(known.right is right and is_within(path, known.target) for known in granted):
                granted.append(SandboxDenial(right=right, target=path))
    return Rights(confinement=Confinement.GIT if git else Confinement.WORK, granted=tuple(granted))


def _trouble(manifest: Manifest | None, output: str, *, failed: bool) -> str:
    if manifest is None:
        return _LOST
    if manifest.trouble:
        return f"{manifest.trouble} {_NEEDS_WORK}"
    if manifest.full:
        return _FULL
    return next((text for found, text in _LIMITS if found.search(output)), "") if failed else ""


def _choice(copy: Copy, manifest: Manifest, hold: Hold) -> ChangeSelection:
    with contextlib.closing(Contents(copy.folder)) as contents:
        ignore_files = {
            (change.root, change.path.rpartition(b"/")[0]): contents.whole(change)
            for change in new_ignore_files(manifest.changes)
            if change.kinds[1] == "f" and change.size < LARGEST_TEXT
        }
        acting = acting_changes(copy.roots, manifest.changes, contents.whole)
    return select_changes(copy.roots, manifest, hold, ignore_files, acting=acting)


def apply_changes(copy: Copy, digest: str, hold: Hold) -> tuple[FileChange, ...]:
    """Apply all that `digest` names, or nothing. Gives the files that changed, but for what git ignores.

    Raises `ToolError` when the list is another one than was shown, when something of it cannot be applied, or when a
    path was changed in the meantime.
    """
    manifest = read_manifest(copy.folder)
    if manifest is None or manifest.trouble:
        raise ToolError("Nothing was applied: the changes are not there any more. Try the command again.")
    choice = _choice(copy, manifest, hold)
    if choice.digest != digest:
        raise ToolError("Nothing was applied: the changes are not those that were shown. Try the command again.")
    if choice.is_held:
        raise ToolError("Nothing was applied: a part of the changes cannot be. Try the command for real.")
    with CopyTexts(copy) as texts:
        shown = (one.change for one in choice.shown if not one.ignored and is_about_text(one.change))
        done = tuple(_file_change(copy, change, texts) for change in shown)
    carry_out(copy.folder, copy.roots, manifest.start, choice.all)
    return done


def _file_change(copy: Copy, change: Difference, texts: CopyTexts) -> FileChange:
    diff = texts.diff(change)
    return FileChange(
        path=change.place(copy.roots),
        before=_hash(change.before),
        after=_hash(change.after),
        added=0 if diff is None else diff.added,
        removed=0 if diff is None else diff.removed,
    )


def _hash(state: EntryState | None) -> str:
    return state.what if state is not None and state.kind == "f" else ""


def throw_away(copy: Copy) -> None:
    """Forget a copy and all that was changed in it."""
    remove_folder(copy.folder)


def recover_copies(data: Path) -> tuple[TakenBack, ...]:
    """Take back what killed processes were applying, and throw away the copies that they left."""
    found: list[TakenBack] = []
    for folder in take_abandoned(data):
        with contextlib.suppress(OSError):
            if (folder / "journal").exists():
                found.append(TakenBack(take_back(folder)))
        if not (folder / "journal").exists():
            remove_folder(folder)
    return tuple(found)
