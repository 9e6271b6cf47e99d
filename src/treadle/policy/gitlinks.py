"""Where other repositories may stand in a repository, by its index: found by searching, never by trusting its form."""

import os
from collections.abc import Iterator

_MODE = (0o160000).to_bytes(4, "big")
"""What the index calls a commit of another repository; it always stands there in plain."""

_NAMES_AFTER = (38, 50)
"""Bytes from the mode to the name with SHA-1 and with SHA-256; two more where an entry has more flags."""

_LONGEST_NAME = 4096
_VERSION = slice(4, 8)
_PACKED_NAMES = 4
_LEFT_OUT = b"sdir\0\0\0\0"
"""The mark of an index that holds folders instead of what is in them."""

SHARED = b"link"
"""The mark of an index that goes on in another file; a name may hold it too."""


def gitlinks(index: bytes) -> Iterator[str] | None:
    """Give every path below which the index may expect a repository, and more; None where it cannot be told."""
    if _LEFT_OUT in index:
        return None
    places = list(_places(index))
    if places and int.from_bytes(index[_VERSION], "big") >= _PACKED_NAMES:
        return None
    return (name for at in places for name in _names(index, at))


def _places(index: bytes) -> Iterator[int]:
    at = index.find(_MODE)
    while at >= 0:
        yield at
        at = index.find(_MODE, at + 1)


def _names(index: bytes, mode_at: int) -> Iterator[str]:
    for after in _NAMES_AFTER:
        for more in (0, 2):
            start = mode_at + after + more
            end = index.find(b"\0", start, start + _LONGEST_NAME + 1)
            if end > start:
                yield os.fsdecode(index[start:end])
