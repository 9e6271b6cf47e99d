"""The hash chain over a session's log: every row's hash covers the row before it, so that a change shows."""

from collections.abc import Iterable
from hashlib import sha256
from struct import pack

from msgspec import Struct


class LogRow(Struct, frozen=True):
    """A row of the log as it is stored; `chain` is empty for a row that has none yet."""

    seq: int
    at: int
    source: bytes
    data: bytes
    chain: bytes = b""

    @property
    def well_formed(self) -> bool:
        """Whether every column holds what it should; a damaged file may give anything."""
        kinds = type(self.seq), type(self.at), type(self.source), type(self.data), type(self.chain)
        return kinds == (int, int, bytes, bytes, bytes)


def beginning(session_id: str) -> bytes:
    """Give what stands in the place of the hash before a session's first row."""
    return sha256(session_id.encode()).digest()


def link(previous: bytes, row: LogRow) -> bytes:
    """Hash a row together with the hash before it; lengths keep source and data apart."""
    return sha256(previous + pack(">qqI", row.seq, row.at, len(row.source)) + row.source + row.data).digest()


def first_break(session_id: str, rows: Iterable[LogRow], last: int) -> int | None:
    """Give the number of the first row that was changed, added, or is missing; None when all `last` rows are right."""
    previous, expected = beginning(session_id), 1
    for row in rows:
        if not row.well_formed or row.seq != expected or row.chain != link(previous, row):
            return expected
        previous, expected = row.chain, expected + 1
    return None if expected == last + 1 else min(expected, last + 1)
