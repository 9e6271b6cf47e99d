"""Golden logs: rows as they were written, and what is expected of them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from treadle.protocol.events import Event
from treadle.protocol.stored import read_events, stored


class Row(NamedTuple):
    """A row of a log; source and data are JSON."""

    seq: int
    at: int
    source: str
    version: int
    data: str


def read_rows(rows: Iterable[Row]) -> Iterator[Event]:
    """Read the events of a log."""
    return read_events(stored((row.seq, row.at, row.source.encode(), row.version, row.data.encode()) for row in rows))
