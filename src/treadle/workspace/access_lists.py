"""What the ignore files for agents keep from being read or changed without a yes, in every directory."""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from treadle.workspace.ignore_patterns import Patterns
from treadle.workspace.ignoring import ACCESS_FILES

_LARGEST = 64 * 1024
_MOST_PATTERNS = 2_000
_REMEMBERED = 256
_UTF8_MARK = "\ufeff"


class _AccessFiles(Struct, frozen=True):
    """What the files of one directory say. `lines` gives file and number of each line; `broken` cannot be used."""

    patterns: Patterns
    lines: Sequence[tuple[str, int]]
    broken: str = ""


class AccessLists:
    """The ignore files for agents in some folders, as they are now.

    A file that cannot be read, or is too large, keeps everything below it: it can only add questions, never take one
    away. Looks at the disk; what was read is kept as long as this lives.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(root.rstrip("/") for root in roots)
        self._files: dict[str, _AccessFiles | None] = {}
        self._reasons: dict[str, str] = {}

    def reason(self, path: str) -> str:
        """Say which file and line lists an absolute path, or a directory that it lies in; empty where none does."""
        if path not in self._reasons:
            self._reasons[path] = next(filter(None, (self._listed(root, path) for root in self._roots)), "")
        return self._reasons[path]

    def _listed(self, root: str, path: str) -> str:
        if not path.startswith(f"{root}/"):
            return ""
        spelled = path[len(root) + 1 :].split("/")
        parts = unicodedata.normalize("NFC", path[len(root) + 1 :]).split("/")
        folder = root
        found: list[tuple[int, str, _AccessFiles]] = []
        for end in range(1, len(parts) + 1):
            files = self._in(folder)
            if files is not None:
                found.insert(0, (end - 1, folder[len(root) + 1 :], files))
            kinds = (True,) if end < len(parts) else _kinds(path)
            if found and (said := next(filter(None, (_said(found, parts[:end], kind) for kind in kinds)), "")):
                return said
            folder = f"{folder}/{spelled[end - 1]}"
        return ""

    def _in(self, folder: str) -> _AccessFiles | None:
        if folder not in self._files:
            self._files[folder] = _read(folder)
        return self._files[folder]


def access_files(root: str) -> list[str]:
    """Name the ignore files for agents that lie directly in a folder."""
    return [name for name in ACCESS_FILES if Path(root, name).is_file()]


def _place(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _kinds(path: str) -> tuple[bool, ...]:
    """Say whether a path is a directory; what is not there yet may become either."""
    return (os.path.isdir(path),) if os.path.lexists(path) else (False, True)  # noqa: PTH112 - paths are texts here


def _said(found: Iterable[tuple[int, str, _AccessFiles]], parts: Sequence[str], is_directory: bool) -> str:  # noqa: FBT001
    """Say what lists one path; the innermost file that is about it, which comes first, has the last word."""
    shown = "/".join(parts)
    for depth, folder, files in found:
        if files.broken:
            return f"{shown} may be listed in {_place(folder, files.broken)}, which cannot be used"
        line = files.patterns.last_word(parts[depth:], is_directory=is_directory)
        if line is not None:
            name, number = files.lines[line[0]]
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
