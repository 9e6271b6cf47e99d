"""What git has of the files in a workspace, read from its index without git; of the usual forms of an index."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from treadle.workspace.files.paths import may_be_there

_SIGNATURE = b"DIRC"
_HEADER, _FIXED, _CHECKSUM = 12, 62, 20
_MODE_AT, _HASH_AT, _FLAGS_AT = 24, 40, 60
_EXTENDED = 0x4000
_VERSIONS = (2, 3)
_ELSEWHERE = (b"link", b"sdir")
_LARGEST = 64 * 1024 * 1024
_GIT_FOLDER = b"gitdir: "

Entries = Mapping[tuple[bytes, int], tuple[bytes, bytes]]
"""By name and flags (stage, assume-unchanged and the like): mode and hash."""


def read_index(index: bytes) -> Entries | None:
    """Read the entries of an index, without what git remembers of the disk; None where it has another form."""
    if len(index) < _HEADER or index[:4] != _SIGNATURE or int.from_bytes(index[4:8], "big") not in _VERSIONS:
        return None
    entries: dict[tuple[bytes, int], tuple[bytes, bytes]] = {}
    at = _HEADER
    for _ in range(int.from_bytes(index[8:12], "big")):
        flags = int.from_bytes(index[at + _FLAGS_AT : at + _FIXED], "big")
        start = at + _FIXED
        if flags & _EXTENDED:
            flags |= int.from_bytes(index[start : start + 2], "big") << 16
            start += 2
        end = index.find(b"\0", start)
        if end <= start:
            return None
        entries[index[start:end], flags] = (
            index[at + _MODE_AT : at + _MODE_AT + 4],
            index[at + _HASH_AT : at + _FLAGS_AT],
        )
        at += (end - at + 8) // 8 * 8
    return entries if _is_whole(index, at) else None


def _is_whole(index: bytes, at: int) -> bool:
    """Whether what follows the entries tells of no further ones: in another file, or for a folder as a whole."""
    while at + 8 <= len(index) - _CHECKSUM:
        if index[at : at + 4] in _ELSEWHERE:
            return False
        at += 8 + int.from_bytes(index[at + 4 : at + 8], "big")
    return True


def read_plain(path: Path) -> bytes:
    """Read a regular file of bearable size; empty where there is none."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return b""
        return path.read_bytes()
    except OSError:
        return b""


def checkout_of(root: str) -> Path | None:
    """Find the checkout that a folder is in."""
    return next((above for above in (Path(root), *Path(root).parents) if os.path.lexists(above / ".git")), None)


class Tracked:
    """What git has of the files in some folders; looks at the disk once for each checkout."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._tops = [checkout_of(root) for root in roots]
        self._roots = roots
        self._names = cache(tracked_names)

    def has(self, root: int, path: bytes) -> bool:
        """Whether git has a file, or cannot be asked; outside of a checkout it has none."""
        top = self._tops[root]
        if top is None:
            return False
        names = self._names(top)
        full = os.path.relpath(os.fsencode(self._roots[root]) + b"/" + path, os.fsencode(top))
        return names is None or full in names


def tracked_names(top: Path) -> frozenset[bytes] | None:
    """Name all files that git has in a checkout; None where that cannot be read."""
    folder = top / ".git"
    if (named := read_plain(folder)).startswith(_GIT_FOLDER):
        folder = top / os.fsdecode(named.removeprefix(_GIT_FOLDER).strip())
    if not may_be_there(folder / "index"):
        return frozenset()
    entries = read_index(read_plain(folder / "index"))
    return None if entries is None else frozenset(name for name, _ in entries)
