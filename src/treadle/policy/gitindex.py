"""Names of the files that a repository tracks, read from its index; of plain forms only."""

import os

_SIGNATURE = b"DIRC"
_HEADER = 12
_FIXED = 62
"""Bytes before the name of an entry, with SHA-1."""
_EXTENDED = 0x4000
_READABLE = (2, 3)
_CHECKSUM = 20
_ELSEWHERE = (b"link", b"sdir")


def tracked_names(index: bytes, most: int) -> list[str] | None:
    """List the paths of an index; None where it is of another form, cut short, or holds more than `most`."""
    if not index:
        return []
    version, count = int.from_bytes(index[4:8], "big"), int.from_bytes(index[8:12], "big")
    if index[:4] != _SIGNATURE or version not in _READABLE or count > most:
        return None
    names: list[str] = []
    at = _HEADER
    for _ in range(count):
        flags = int.from_bytes(index[at + _FIXED - 2 : at + _FIXED], "big")
        start = at + _FIXED + (2 if flags & _EXTENDED else 0)
        end = index.find(b"\0", start)
        length = flags & 0xFFF
        if end <= start or (length != 0xFFF and end - start != length):
            return None
        names.append(os.fsdecode(index[start:end]))
        at += (end - at + 8) // 8 * 8
    return names if _says_all(index, at) else None


def _says_all(index: bytes, at: int) -> bool:
    """Whether what follows the entries tells of no further ones: in another file, or for a folder as a whole."""
    while at + 8 <= len(index) - _CHECKSUM:
        if index[at : at + 4] in _ELSEWHERE:
            return False
        at += 8 + int.from_bytes(index[at + 4 : at + 8], "big")
    return True
