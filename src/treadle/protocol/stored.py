"""A log as it is stored, row by row, and the events that it tells of, whatever version wrote them."""

from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec import Struct

from treadle.protocol.codec import decode_data, decode_source
from treadle.protocol.events import SCHEMA_VERSION, Event


class StoredEvent(Struct, frozen=True, kw_only=True):
    """A row: `source` and `data` are JSON, `version` is the schema of the data."""

    seq: int
    at: int
    source: bytes
    version: int
    data: bytes


def stored(rows: Iterable[tuple[int, int, bytes, int, bytes]]) -> Iterator[StoredEvent]:
    """Name the columns of rows."""
    return (StoredEvent(seq=row[0], at=row[1], source=row[2], version=row[3], data=row[4]) for row in rows)


def read_events(rows: Iterable[StoredEvent]) -> Iterator[Event]:
    """Read the events of one whole log, in their order and one at a time.

    In a log of an older schema, what the machine said follows on its cause under the same number. Raises `StoreError`
    at the first row that cannot be read; what came before it was given.
    """
    rest = iter(rows)
    first = next(rest, None)
    if first is None:
        return
    rows = chain((first,), rest)
    if first.version < SCHEMA_VERSION:
        rows = _upgraded(rows, first.version)
    for row in rows:
        yield Event(seq=row.seq, at=row.at, source=decode_source(row.source), data=decode_data(row.data, row.version))


def _upgraded(rows: Iterable[StoredEvent], version: int) -> Iterable[StoredEvent]:
    from treadle.protocol.upgrades import UPGRADES

    for step in range(version, SCHEMA_VERSION):
        if step in UPGRADES:
            rows = UPGRADES[step](rows)
    return rows
