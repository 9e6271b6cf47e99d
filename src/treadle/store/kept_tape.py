"""The rows of a log as they are stored, for who plays them again."""

from collections.abc import Iterator

from treadle.protocol.base import StoredEvent
from treadle.store.chain import LogRow, beginning, link
from treadle.store.sqlite import Store


def tape_of(store: Store, session_id: str) -> Iterator[tuple[StoredEvent, bytes]]:
    """Read the rows of a session's log, each with its hash. Raises `StoreError` at the first that is damaged."""
    log = store.read(session_id)
    for _ in log:
        pass
    if log.damage is not None:
        raise log.damage.error()

    for seq, at, source, data, version, chain in store.rows(session_id, "seq, at, source, data, version, chain"):
        yield StoredEvent(seq=seq, at=at, source=source, version=version, data=data), chain


def chained(session_id: str, rows: Iterator[StoredEvent]) -> Iterator[bytes]:
    """Give the hash of each row, made anew from the first on."""
    chain = beginning(session_id)
    for row in rows:
        chain = link(chain, LogRow(row.seq, row.at, row.source, row.data))
        yield chain
