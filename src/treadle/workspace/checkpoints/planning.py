"""What a restore will do: the session's changes since a tree are taken back, and everybody else's stay."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct, structs

from treadle.workspace.checkpoints.merging import merge_lines
from treadle.workspace.checkpoints.trees import (
    BlobReader,
    TreeEntry,
    TreeKind,
    TreeReader,
    flat_tree,
    folder_rights,
    folders_above,
    tree_differences,
)
from treadle.workspace.copies.caches import can_be_made_again
from treadle.workspace.ignore.ignore_patterns import Patterns


class Interval(Struct, frozen=True, kw_only=True):
    """What happened between two trees, and whether it was the session that changed the files.

    Where it is `unclear` who it was, the session's are the files with these hashes (SHA-256), which it wrote.
    """

    before: str
    after: str
    by_session: bool
    unclear: frozenset[str] | None = None


class PlannedWrite(Struct, frozen=True, kw_only=True):
    """A path, what it becomes and what it is now; `content` is given where it was merged and is in no tree."""

    path: bytes
    entry: TreeEntry
    now: TreeEntry | None
    content: bytes | None = None


class PlannedRemoval(Struct, frozen=True, kw_only=True):
    """A path that is to go, and what it is now."""

    path: bytes
    now: TreeEntry


class RestoreConflict(Struct, frozen=True, kw_only=True):
    """A path that stays as it is now, why, and the versions: the one to restore and the present one."""

    path: bytes
    why: str
    target: TreeEntry | None = None
    now: TreeEntry | None = None


class KeptPath(Struct, frozen=True, kw_only=True):
    """A path that is not as in the target and stays so, and why."""

    path: bytes
    why: str


class RestorePlan(Struct, frozen=True, kw_only=True):
    """What a restore will do, each by path; a path is in one of these at most.

    `rights` are those of the folders above what is written, as far as they are not the usual ones.
    """

    writes: tuple[PlannedWrite, ...] = ()
    rights: Mapping[bytes, int] = {}
    removals: tuple[PlannedRemoval, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    conflicts: tuple[RestoreConflict, ...] = ()


class WantedFile(Struct, frozen=True):
    """What a path is to be; `content` is given where it was merged and is in no tree."""

    entry: TreeEntry | None
    content: bytes | None = None


class ClashError(Exception):
    """The same was changed again, by whomever, or it is not known who changed it: why the path stays as it is."""

    def __init__(self, why: str = "The same lines were changed again later.") -> None:
        super().__init__(why)


_UNCLEAR = "It was changed when the program ended or while a command or a hook ran beside you, by it or by you."
_IN_THE_WAY = "Something that stays is in its place, or on the way to it."
_OTHERS = "You or others changed it since then."
_UNCOVERED = "Checkpoints do not cover it."
_UNCOVERED_NOW = "Checkpoints do not cover it as it is now."
_WAS_IGNORED = "It was ignored then, and may have been there."


def plan_the_restore(
    target: str,
    now: str,
    history: Sequence[Interval],
    readers: tuple[TreeReader, BlobReader],
    *,
    covers_ignored: bool = False,
    held_ignored: bool = True,
) -> RestorePlan:
    """Plan how to get from `now` to `target` when only what the session did in `history` is to be taken back.

    `history` leads from the target to now; what lies between its intervals was somebody else. What is not in the target
    and was ignored then is not removed, unless trees hold all of that (`covers_ignored`), or the target holds what is
    not made again (`held_ignored`) and it is not of that kind.
    """
    return _Planner(target, now, history, readers, covers_ignored=covers_ignored, held_ignored=held_ignored).plan()


def without_change(base: TreeEntry | None, ours: WantedFile, theirs: TreeEntry | None, read: BlobReader) -> WantedFile:
    """Take one change (from `theirs` to `base`) out of what there is. Raises `ClashError`."""
    if theirs is not None and theirs.kind is TreeKind.NOT_COVERED:
        raise ClashError
    if ours.entry == base:
        return WantedFile(theirs)
    if ours.entry == theirs:
        return ours
    sides = (base, ours.entry, theirs)
    files = [side for side in sides if side is not None and side.kind is TreeKind.FILE]
    if len(files) < len(sides):
        raise ClashError
    was, mine, other = files
    modes = {other.mode} if mine.mode == was.mode else {mine.mode} if other.mode in (was.mode, mine.mode) else set()
    if not modes:
        raise ClashError
    mode = modes.pop()
    if mine.what == was.what:
        return WantedFile(structs.replace(other, mode=mode))
    if other.what in (was.what, mine.what):
        return WantedFile(structs.replace(mine, mode=mode), ours.content)
    present = read(mine.what) if ours.content is None else ours.content
    merged = merge_lines(read(was.what), present, read(other.what))
    if merged is None:
        raise ClashError
    return WantedFile(TreeEntry(TreeKind.FILE, mode, len(merged), _digest(merged)), merged)


class _Planner:
    def __init__(
        self,
        target: str,
        now: str,
        history: Sequence[Interval],
        readers: tuple[TreeReader, BlobReader],
        *,
        covers_ignored: bool,
        held_ignored: bool,
    ) -> None:
        self._covers_ignored = covers_ignored
        self._held_ignored = held_ignored
        self._target = target
        self._read, self._blob = readers
        self._then = flat_tree(target, self._read)
        self._now = flat_tree(now, self._read)
        self._changes: list[tuple[bool, dict[bytes, tuple[TreeEntry | None, TreeEntry | None]]]] = []
        self._unclear: set[bytes] = set()
        for each in _without_gaps(target, now, history):
            changed = {path: (old, new) for path, old, new in self._differences(each)}
            if each.unclear is not None:
                own = {path for path, (_, new) in changed.items() if new is not None and new.what in each.unclear}
                self._unclear |= changed.keys() - own
            self._changes.append((each.by_session, changed))
        self._uncovered = {
            path
            for files in (self._then, self._now)
            for path, entry in files.items()
            if entry.kind is TreeKind.NOT_COVERED
        }
        self._ignoring: dict[bytes, Patterns] = {}

    def _differences(self, interval: Interval) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
        return tree_differences(interval.before, interval.after, self._read)

    def plan(self) -> RestorePlan:
        """Decide for each path, and then between them."""
        desired: dict[bytes, WantedFile] = {}
        kept: list[KeptPath] = []
        conflicts: list[RestoreConflict] = []
        for path in sorted({path for _, changes in self._changes for path in changes}):
            try:
                wanted = self._decide(path)
            except ClashError as clash:
                conflicts.append(self._conflict(path, str(clash)))
                continue
            if isinstance(wanted, str):
                kept += [KeptPath(path=path, why=wanted)] if self._then.get(path) != self._now.get(path) else []
            elif wanted.entry != self._now.get(path):
                desired[path] = wanted
        conflicts += [self._conflict(path, _IN_THE_WAY) for path in self._blocked(desired)]
        writes = [
            PlannedWrite(path=path, entry=wanted.entry, now=self._now.get(path), content=wanted.content)
            for path, wanted in desired.items()
            if wanted.entry is not None
        ]
        removals = [
            PlannedRemoval(path=path, now=self._now[path]) for path, wanted in desired.items() if wanted.entry is None
        ]
        return RestorePlan(
            writes=tuple(writes),
            rights=rights_above(writes, self._target, self._read),
            removals=tuple(removals),
            kept=tuple(kept),
            conflicts=tuple(conflicts),
        )

    def _conflict(self, path: bytes, why: str) -> RestoreConflict:
        return RestoreConflict(path=path, why=why, target=self._then.get(path), now=self._now.get(path))

    def _decide(self, path: bytes) -> WantedFile | str:
        """Say what becomes of a path, or why it stays."""
        touched = {by_session for by_session, changes in self._changes if path in changes}
        if path in self._uncovered or not self._uncovered.isdisjoint(folders_above(path)):
            held = self._then.get(path)
            if True in touched and held is not None and held.kind is not TreeKind.NOT_COVERED:
                raise ClashError(_UNCOVERED_NOW)
            return _UNCOVERED
        if path in self._unclear and self._then.get(path) != self._now.get(path):
            raise ClashError(_UNCLEAR)
        if True not in touched:
            return _OTHERS
        if False not in touched:
            entry = self._then.get(path)
            return _WAS_IGNORED if entry is None and self._may_have_been_there(path) else WantedFile(entry)
        wanted = WantedFile(self._now.get(path))
        for by_session, changes in reversed(self._changes):
            if by_session and path in changes:
                before, after = changes[path]
                wanted = without_change(after, wanted, before, self._blob)
        return wanted

    def _blocked(self, desired: dict[bytes, WantedFile]) -> list[bytes]:
        """Take out what cannot be written for what stays; that stays too then, and may be in the way of more."""
        blocked: list[bytes] = []
        while True:
            result = {path for path in self._now if path not in desired or desired[path].entry is not None}
            result |= {path for path, wanted in desired.items() if wanted.entry is not None}
            folders = {folder for path in result for folder in folders_above(path)}
            found = [
                path
                for path, wanted in desired.items()
                if wanted.entry is not None and (path in folders or not result.isdisjoint(folders_above(path)))
            ]
            # Of two that are both to be written none is in the way of the other: they are of one tree, or merged
            # files, which keep their place. What stays is therefore the cause, and taking all of these out is right.
            if not found:
                return blocked
            for path in found:
                del desired[path]
            blocked += found

    def _may_have_been_there(self, path: bytes) -> bool:
        """Whether something that the target does not hold may have been there, since git ignored it then."""
        if self._covers_ignored or (self._held_ignored and not can_be_made_again(path, is_folder=False)):
            return False
        return self._was_ignored(path)

    def _was_ignored(self, path: bytes) -> bool:
        """Whether the `.gitignore` files of the target hid a path that is not in it."""
        parts = path.decode(errors="surrogateescape").split("/")
        for depth in range(1, len(parts) + 1):
            for place in range(depth - 1, -1, -1):
                folder = "/".join(parts[:place]).encode(errors="surrogateescape")
                said = self._patterns(folder).hides(parts[place:depth], is_directory=depth < len(parts))
                if said is not None:
                    if said:
                        return True
                    break
        return False

    def _patterns(self, folder: bytes) -> Patterns:
        if folder not in self._ignoring:
            entry = self._then.get(folder + b"/.gitignore" if folder else b".gitignore")
            data = self._blob(entry.what) if entry is not None and entry.kind is TreeKind.FILE else b""
            self._ignoring[folder] = Patterns(data.decode(errors="surrogateescape").split("\n"))
        return self._ignoring[folder]


def rights_above(writes: Iterable[PlannedWrite], tree: str, read: TreeReader) -> dict[bytes, int]:
    """Give the rights that a tree has of the folders above what is written."""
    return dict(folder_rights(tree, {folder for each in writes for folder in folders_above(each.path)}, read))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _without_gaps(target: str, now: str, history: Iterable[Interval]) -> Iterator[Interval]:
    """Give the intervals with what lies between them, which was somebody else."""
    at = target
    for each in history:
        if each.before != at:
            yield Interval(before=at, after=each.before, by_session=False)
        yield each
        at = each.after
    if at != now:
        yield Interval(before=at, after=now, by_session=False)
