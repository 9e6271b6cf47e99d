"""What of the files is the session's own work: what taking it back would change, file by file, and in lines."""

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from treadle.workspace.checkpoints.comparing import lines_between
from treadle.workspace.checkpoints.merging import is_binary, line_edits, split_lines
from treadle.workspace.checkpoints.planning import ClashError, Interval, WantedFile, without_change
from treadle.workspace.checkpoints.trees import BlobReader, TreeEntry, TreeKind, TreeReader, tree_differences

_KEPT_COUNTS = 4_000


class OwnChange(Struct, frozen=True, kw_only=True):
    """A path of which something is the session's: what it would be without that, what it is, and the lines between.

    `before` is the hash of what it would be, empty for nothing; lines are None for what is no text.
    """

    path: bytes
    before: str
    after: TreeEntry | None
    added: int | None
    removed: int | None


class _Touch(Struct, frozen=True):
    interval: int
    by_session: bool
    before: TreeEntry | None
    after: TreeEntry | None


class _Way(Struct, frozen=True, eq=False):
    """How a path came to be as it is: by a touch of what it was before, and whether any was the session's `own`."""

    before: "_Way | None" = None
    touch: _Touch | None = None
    own: bool = False

    def leads_to(self, known: "_Way", one: _Touch) -> bool:
        """Whether a touch brings an earlier version back with its owners, and is no change of its own.

        The session that makes again what others alone had made changes the file itself. Versions without the file are
        all alike: only one on the same way is brought back.
        """
        if known in self.passed():
            return True
        return (known.own or not one.by_session) and (one.after is not None or self in known.passed())

    def passed(self) -> "Iterator[_Way]":
        """Give this way and those before, back to where it begins."""
        at: _Way | None = self
        while at is not None:
            yield at
            at = at.before


class _Owner(Enum):
    BEFORE = "before"
    SESSION = "session"
    OTHERS = "others"


class OwnWork:
    """Takes intervals of one root as they come, and says what of the session's changes is left in the files."""

    def __init__(self, read: TreeReader, blob: BlobReader) -> None:
        self._read, self._blob = read, blob
        self._touched: dict[bytes, list[_Touch]] = {}
        self._intervals = 0
        self._lines = lru_cache(_KEPT_COUNTS)(self._count)
        self._attributed = lru_cache(_KEPT_COUNTS)(self._count_attributed)

    def add(self, interval: Interval) -> frozenset[bytes]:
        """Take what happened next; gives the paths of it. Where it is unclear who it was, it may be the session's."""
        self._intervals += 1
        found: set[bytes] = set()
        for path, before, after in tree_differences(interval.before, interval.after, self._read):
            found.add(path)
            touch = _Touch(self._intervals, interval.by_session, before, after)
            self._touched.setdefault(path, []).append(touch)
        return frozenset(found)

    def knows(self, path: bytes) -> bool:
        """Whether anybody changed a path."""
        return path in self._touched

    def change(self, path: bytes, since: int = 0) -> OwnChange | None:
        """Give what is left of the session's changes of a path; None for nothing."""
        touched = self._since(path, since)
        if not any(one.by_session for one in touched):
            return None
        now, clashes = touched[-1].after, False
        try:
            wanted = self._without_own(touched)
        except ClashError:
            wanted, clashes = WantedFile(touched[0].before), True
        kinds = {entry.kind for entry in (now, wanted.entry) if entry is not None}
        if wanted.entry == now or TreeKind.NOT_COVERED in kinds:
            return None
        before = "" if wanted.entry is None else wanted.entry.what
        added, removed = self._attributed(tuple(touched)) if clashes else self._lines(wanted, now)
        return OwnChange(path=path, before=before, after=now, added=added, removed=removed)

    def without(self, path: bytes) -> WantedFile:
        """Give what a path would be without the session's changes. Raises `ClashError` where nobody can tell."""
        return self._without_own(self._since(path, 0))

    def _since(self, path: bytes, since: int) -> list[_Touch]:
        """Give the changes behind an interval that made of a path what it is now.

        Whoever brings back what it was before, as `git stash` and `git stash pop` do, brings back whose it was.
        """
        at = _Way()
        ways: dict[TreeEntry | None, _Way] = {}
        for one in self._touched.get(path, ()):
            if one.interval <= since:
                continue
            ways.setdefault(one.before, at)
            known = ways.get(one.after)
            if known is None or not at.leads_to(known, one):
                known = _Way(at, one, own=at.own or one.by_session)
            at = ways[one.after] = known
        return [way.touch for way in reversed([*at.passed()]) if way.touch is not None]

    def _without_own(self, touched: list[_Touch]) -> WantedFile:
        if all(one.by_session for one in touched):
            return WantedFile(touched[0].before)
        wanted = WantedFile(touched[-1].after)
        for one in reversed(touched):
            if one.by_session:
                wanted = without_change(one.after, wanted, one.before, self._blob)
        return wanted

    def _count_attributed(self, touched: tuple[_Touch, ...]) -> tuple[int | None, int | None]:
        """Count lines one change after the other, where others changed the same ones: those that the session added and
        that are left, and those that were there before and that it removed.
        """
        entries = [touched[0].before, *(one.after for one in touched)]
        if any(entry is not None and entry.kind is TreeKind.NOT_COVERED for entry in entries):
            return None, None
        versions = list(map(self._bytes, entries))
        if any(map(is_binary, versions)):
            return None, None
        texts = [split_lines(version) for version in versions]
        owners: list[_Owner] = [_Owner.BEFORE] * len(texts[0])
        removed = 0
        for one, (old, new) in zip(touched, pairwise(texts), strict=True):
            made: list[_Owner] = []
            at = 0
            for edit in line_edits(old, new):
                made += owners[at : edit.start]
                made += [_Owner.SESSION if one.by_session else _Owner.OTHERS] * (edit.new_end - edit.new_start)
                removed += one.by_session * owners[edit.start : edit.end].count(_Owner.BEFORE)
                at = edit.end
            owners = made + owners[at:]
        return owners.count(_Owner.SESSION), removed

    def _count(self, wanted: WantedFile, now: TreeEntry | None) -> tuple[int | None, int | None]:
        old = self._bytes(wanted.entry) if wanted.content is None else wanted.content
        return lines_between(old, self._bytes(now))

    def _bytes(self, entry: TreeEntry | None) -> bytes:
        return b"" if entry is None else self._blob(entry.what)
