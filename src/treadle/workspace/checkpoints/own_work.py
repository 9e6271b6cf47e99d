"""What of the files is the session's own work: what taking it back would change, file by file, and in lines."""

from functools import lru_cache

from msgspec import Struct

from treadle.workspace.checkpoints.comparing import lines_between
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


class OwnWork:
    """Takes intervals of one root as they come, and says what of the session's changes is left in the files."""

    def __init__(self, read: TreeReader, blob: BlobReader) -> None:
        self._read, self._blob = read, blob
        self._touched: dict[bytes, list[_Touch]] = {}
        self._intervals = 0
        self._lines = lru_cache(_KEPT_COUNTS)(self._count)

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
        touched = [one for one in self._touched.get(path, ()) if one.interval > since]
        if not any(one.by_session for one in touched):
            return None
        now, wanted = touched[-1].after, self._without_own(touched)
        kinds = {entry.kind for entry in (now, wanted.entry) if entry is not None}
        if wanted.entry == now or TreeKind.NOT_COVERED in kinds:
            return None
        added, removed = self._lines(wanted, now)
        before = "" if wanted.entry is None else wanted.entry.what
        return OwnChange(path=path, before=before, after=now, added=added, removed=removed)

    def _without_own(self, touched: list[_Touch]) -> WantedFile:
        """Say what the path would be; where others changed the same lines since, as it was before all of that."""
        if all(one.by_session for one in touched):
            return WantedFile(touched[0].before)
        wanted = WantedFile(touched[-1].after)
        try:
            for one in reversed(touched):
                if one.by_session:
                    wanted = without_change(one.after, wanted, one.before, self._blob)
        except ClashError:
            return WantedFile(touched[0].before)
        return wanted

    def _count(self, wanted: WantedFile, now: TreeEntry | None) -> tuple[int | None, int | None]:
        old = self._bytes(wanted.entry) if wanted.content is None else wanted.content
        return lines_between(old, self._bytes(now))

    def _bytes(self, entry: TreeEntry | None) -> bytes:
        return b"" if entry is None else self._blob(entry.what)
