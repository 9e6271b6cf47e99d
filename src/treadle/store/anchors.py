"""Anchors: the newest hash of each session's log, kept outside of the database, so that a log that was cut shows."""

import os
import string
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from treadle.protocol.patterns import regex

_LONGEST_NAME = 100
_IN_NAME = frozenset(f"{string.ascii_letters}{string.digits}._-")
_LINE = regex(rb"(\d{12}) ([0-9a-f]{64}) ([0-9a-f]{8})\n")


class Anchor(Struct, frozen=True):
    """The number and the hash of an event that was in a session's log."""

    seq: int
    chain: bytes


class Anchors:
    """The folder of anchors beside a database, a file for each session. The newest anchor comes first in it.

    Those after it are older ones that the log did not have any more when a newer one was written.
    """

    def __init__(self, database: Path) -> None:
        self._folder = database.with_name(f"{database.name}-anchors")
        self._open: dict[str, int] = {}

    def read(self, session_id: str) -> tuple[Anchor, ...] | None:
        """Give what is kept of a session: None without a file, nothing where it cannot be read."""
        try:
            raw = self._file(session_id).read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return ()
        return tuple(_anchors(raw))

    def write(self, session_id: str, anchors: Iterable[Anchor]) -> None:
        """Keep the anchors of a session; raises `OSError`, `ValueError` for a name that is no session's."""
        raw = b"".join(map(_line, anchors))
        descriptor = self._open.get(session_id)
        if descriptor is None:
            descriptor = self._open[session_id] = self._opened(self._file(session_id))
            os.ftruncate(descriptor, len(raw))
        # One write over the old lines, which are as long: after a kill the old ones are there, or the new ones, and a
        # line that a power cut tore has a wrong sum. To replace the file takes 35 times as long.
        os.pwrite(descriptor, raw, 0)

    def _opened(self, file: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with suppress(FileNotFoundError):
            return os.open(file, flags, 0o600)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(file, flags, 0o600)

    def discard(self, session_id: str) -> None:
        """Forget a session."""
        with suppress(OSError, ValueError):
            self._file(session_id).unlink()

    def close(self) -> None:
        """Close the files; the next writing opens them again, or makes those that were deleted."""
        while self._open:
            os.close(self._open.popitem()[1])

    def names(self) -> list[str]:
        """List the sessions that have an anchor."""
        try:
            return sorted(entry.name for entry in os.scandir(self._folder) if _is_name(entry.name))
        except OSError:
            return []

    def _file(self, session_id: str) -> Path:
        if not _is_name(session_id):
            raise ValueError(session_id)
        return self._folder / session_id


def _is_name(text: str) -> bool:
    """Whether a text is what sessions are named like: it is no path."""
    return 0 < len(text) <= _LONGEST_NAME and text[0] not in "._-" and _IN_NAME.issuperset(text)


def _line(anchor: Anchor) -> bytes:
    line = f"{anchor.seq:012d} {anchor.chain.hex()}".encode()
    return line + b" %08x\n" % crc32(line)


def _anchors(raw: bytes) -> Iterator[Anchor]:
    for found in _LINE.finditer(raw):
        anchor = Anchor(int(found[1]), bytes.fromhex(found[2].decode()))
        if _line(anchor) == found[0]:
            yield anchor
