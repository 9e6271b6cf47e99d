"""What the ignore files for agents keep from being read or changed without a yes, in every directory."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from treadle.workspace.ignore.ignore_patterns import Patterns
from treadle.workspace.ignore.ignoring import ACCESS_FILES

_LARGEST = 64 * 1024
_MOST_PATTERNS = 2_000
_REMEMBERED = 256
_UTF8_MARK = "\ufeff"


class _AccessFiles(Struct, frozen=True):
    """What the files of one directory say. `lines` gives file and number of each line; `broken` cannot be used."""

    patterns: Patterns
    lines: Sequence[tuple[str, int]]
    broken: str = ""


class _Around(Struct, frozen=True):
    """What counts in one folder: the files on the way to it, the innermost first, and why it is listed itself.

    Each of the files comes with the depth and the path of its folder below the root.
    """

    files: tuple[tuple[int, str, _AccessFiles], ...] = ()
    reason: str = ""


class AccessLists:
    """The ignore files for agents in some folders, as they are now.

    A file that cannot be read, or is too large, keeps everything below it: it can only add questions, never take one
    away. Looks at the disk; what was read is kept as long as this lives.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(root.rstrip("/") for root in roots)
        self._folders: dict[tuple[str, str], _Around] = {}

    def reason(self, path: str) -> str:
        """Say which file and line lists an absolute path, or a directory that it lies in; empty where none does."""
        return next(filter(None, (self._listed(root, path) for root in self._roots)), "")

    def silent_in(self, folder: str) -> bool:
        """Whether nothing is said of anything that lies directly in a folder, by its absolute path."""
        inside = [root for root in self._roots if f"{folder}/".startswith(f"{root}/")]
        return not any(around.files or around.reason for around in (self._around(root, folder) for root in inside))

    def _listed(self, root: str, path: str) -> str:
        if not path.startswith(f"{root}/"):
            return ""
        around = self._around(root, path.rpartition("/")[0])
        if around.reason or not around.files:
            return around.reason
        return _said(around.files, _parts(root, path), _kinds(path))

    def _around(self, root: str, folder: str) -> _Around:
        """Find what counts directly in a folder, from the root down: each folder is looked at once."""
        todo: list[str] = []
        while (root, folder) not in self._folders and len(folder) > len(root):
            todo.append(folder)
            folder = folder.rpartition("/")[0]
        known = self._folders.get((root, folder)) or self._with_files(root, folder, _Around())
        self._folders[root, folder] = known
        for inner in reversed(todo):
            reason = known.reason or _said(known.files, _parts(root, inner), (True,) if known.files else ())
            known = _Around(known.files, reason) if reason else self._with_files(root, inner, known)
            self._folders[root, inner] = known
        return known

    def _with_files(self, root: str, folder: str, around: _Around) -> _Around:
        files = _read(folder)
        if files is None:
            return around
        below = folder[len(root) + 1 :]
        depth = below.count("/") + 1 if below else 0
        return _Around(((depth, below, files), *around.files))


def _place(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _kinds(path: str) -> tuple[bool, ...]:
    """Say whether a path is a directory; what is not there yet may become either."""
    return (os.path.isdir(path),) if os.path.lexists(path) else (False, True)  # noqa: PTH112 - paths are texts here


def _parts(root: str, path: str) -> list[str]:
    return unicodedata.normalize("NFC", path[len(root) + 1 :]).split("/")


def _said(files: Sequence[tuple[int, str, _AccessFiles]], parts: Sequence[str], kinds: Iterable[bool]) -> str:
    """Say what lists one path; `kinds` are whether it is, or could be, a directory."""
    return next(filter(None, (_said_of(files, parts, is_directory=kind) for kind in kinds)), "")


def _said_of(files: Sequence[tuple[int, str, _AccessFiles]], parts: Sequence[str], *, is_directory: bool) -> str:
    """Say what lists one path; the innermost file that is about it has the last word."""
    shown = "/".join(parts)
    for depth, folder, found in files:
        if found.broken:
            return f"{shown} may be listed in {_place(folder, found.broken)}, which cannot be used"
        line = found.patterns.last_word(parts[depth:], is_directory=is_directory)
        if line is not None:
            name, number = found.lines[line[0]]
            return f"{shown} is listed in {_place(folder, name)}, line {number}" if line[1] else ""
    return ""


def _read(folder: str) -> _AccessFiles | None:
    """Read the files of a directory; None where they say nothing."""
    identities = tuple(_identities(folder))
    return _parsed(folder, identities) if identities else None


def _identities(folder: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name in ACCESS_FILES:
        try:
            found = os.stat(f"{folder}/{name}")  # noqa: PTH116 - nearly always there is none, and this is quick
        except OSError:
            continue
        yield name, (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache(_REMEMBERED)
def _parsed(folder: str, identities: tuple[tuple[str, tuple[int, ...]], ...]) -> _AccessFiles | None:
    """Read files that were found; as long as they are the same they say the same."""
    texts: list[str] = []
    lines: list[tuple[str, int]] = []
    for name, _ in identities:
        file = Path(folder, name)
        if not file.is_file():
            continue
        try:
            with file.open("rb") as opened:
                raw = opened.read(_LARGEST + 1)
        except OSError:
            return _AccessFiles(Patterns(()), (), broken=name)
        if len(raw) > _LARGEST:
            return _AccessFiles(Patterns(()), (), broken=name)
        text = unicodedata.normalize("NFC", raw.decode(errors="surrogateescape").removeprefix(_UTF8_MARK))
        found = text.split("\n")
        texts += found
        lines += [(name, number) for number in range(1, len(found) + 1)]
    patterns = Patterns(texts, any_case=True)
    if len(patterns) > _MOST_PATTERNS:
        return _AccessFiles(Patterns(()), (), broken=identities[0][0])
    return _AccessFiles(patterns, tuple(lines)) if patterns else None
