"""What the model knows of the files: the bytes it last read or wrote, by their hash."""

import os
from pathlib import Path

from msgspec import Struct

_AT_ONCE = 100
_AT_A_GLANCE = 20
"""Files whose times are looked at in less than it takes to have a thread look."""

_Stamp = tuple[int, int, int, int]
_NOT_LOOKED_AT: _Stamp = (-1, -1, -1, -1)
_AS_READ = "as it was read"
_OTHER = "other"
"""In place of a hash: of bytes whose hash nobody kept, and of bytes that are not those of the file."""


class _Known(Struct):
    digest: str
    stamp: _Stamp | None
    announced: str


class FileNews(Struct, frozen=True):
    """A file that is not any more what the model saw: since when, in seconds since 1970, or None: it is gone."""

    path: str
    at: float | None


class SeenFiles:
    """A record per file, by resolved path. A change by others is told once, and makes edits stale until a read.

    `endings` are those of the names of all files that were seen so far, such as `.py`.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._pages: dict[str, set[int]] = {}
        self._next = 0
        self.endings: set[str] = set()

    def knows(self, path: str) -> bool:
        """Whether the model has seen the file, or wrote it."""
        return path in self._known

    def note(self, path: str, digest: str) -> None:
        """Remember that the model has seen or written these bytes."""
        if path not in self._known or self._known[path].digest != digest:
            self._pages.pop(path, None)
        self._known.pop(path, None)
        self._keep(path, _Known(digest, _stamp(path), digest))

    def recall(self, path: str, digest: str | None) -> None:
        """Remember bytes that were seen before this process began; None for others than the file has now."""
        last = _OTHER if digest is None else digest
        self._keep(path, _Known(last, _NOT_LOOKED_AT, last))

    def recall_read(self, path: str) -> None:
        """Remember that a file was read before this process began, and not changed since then."""
        self._keep(path, _Known(_AS_READ, _stamp(path), _AS_READ))

    def _keep(self, path: str, known: _Known) -> None:
        self._known[path] = known
        self.endings.add(os.path.splitext(path)[1])  # noqa: PTH122 - far quicker than a Path

    def forget(self, path: str) -> None:
        """Forget a file: the model was told that it is gone, and may make it anew."""
        self._known.pop(path, None)
        self._pages.pop(path, None)

    def stale(self, path: str, digest: str) -> bool:
        """Whether the model has seen the file, but not with these bytes; no digest means no file.

        A file that the model knows to be gone may be made again.
        """
        known = self._known.get(path)
        if known is None or (known.digest == _AS_READ and known.stamp == _stamp(path)):
            return False
        return known.digest != digest and (known.announced, digest) != ("", "")

    def had_page(self, path: str, text: str) -> bool:
        """Whether this page of the file was shown already, and the model knows of no change since.

        Call it before `note`: what changed elsewhere in the file does not matter to this page.
        """
        return hash(text) in self._pages.get(path, ())

    def note_page(self, path: str, text: str) -> None:
        """Remember that this page of the file is shown."""
        self._pages.setdefault(path, set()).add(hash(text))

    def watch(self, path: str, digest: str) -> None:
        """Remember a file of which a part was shown: what was seen of it before becomes no fresher by that."""
        if path not in self._known:
            self.note(path, digest)

    def tell(self, path: str, digest: str) -> None:
        """Remember that the model was told of these bytes without seeing them: what it saw before stays stale."""
        if path in self._known:
            self._known[path].announced = digest

    def latest(self, count: int) -> tuple[str, ...]:
        """Give the files that were noted last, at most so many."""
        return tuple(self._known)[-count:]

    def unchanged(self) -> bool:
        """Whether all files are as they were seen, if there are but a few; reads none."""
        few = len(self._known) <= _AT_A_GLANCE
        return few and all(known.stamp == _stamp(path) for path, known in self._known.items())

    def news(self) -> tuple[FileNews, ...]:
        """Find seen files that someone else changed or deleted since the last call. Reads files; call in a thread.

        Looks at the files that were noted last, and at the others in turn, so that it takes the same time always.
        """
        found = ((path, self._known.get(path)) for path in self._looked_at())
        changed = {path: known for path, known in found if known is not None and _news(path, known)}
        for path in changed:
            self._pages.pop(path, None)
        return tuple(FileNews(path, _changed_at(changed[path].stamp)) for path in sorted(changed))

    def _looked_at(self) -> list[str]:
        paths = list(self._known)
        others, latest = paths[:-_AT_ONCE], paths[-_AT_ONCE:]
        if self._next >= len(others):
            self._next = 0
        turn = others[self._next : self._next + _AT_ONCE]
        self._next += _AT_ONCE
        return [*latest, *turn]


def _changed_at(stamp: _Stamp | None) -> float | None:
    return None if stamp is None else max(stamp[:2]) / 1e9


def _news(path: str, known: _Known) -> bool:
    stamp = _stamp(path)
    if stamp == known.stamp:
        return False
    known.stamp = stamp
    if known.digest == _AS_READ:
        known.digest = _OTHER
    digest = _digest(path) if stamp is not None else ""
    news = digest not in (known.announced, known.digest)
    known.announced = digest
    return news


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path per file and step costs more than the look
    except OSError:
        return None
    # A file that is put back brings its old mtime along, but not its ctime.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _digest(path: str) -> str:
    try:
        file = Path(path)
        from treadle.workspace.files.text_files import MAX_WHOLE, sha256

        return sha256(file.read_bytes()) if file.stat().st_size <= MAX_WHOLE else "too large"
    except OSError:
        return ""
