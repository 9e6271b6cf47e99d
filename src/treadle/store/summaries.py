"""What logs say in short, kept so that a list of sessions reads no log twice."""

import sqlite3
from collections.abc import Mapping

from treadle.store.sqlite import Store

Summary = tuple[int, bytes]
"""The number of the last event that a summary covers, and the summary."""


def kept_summaries(store: Store) -> dict[str, Summary]:
    """Read what was kept of sessions by `keep_summaries`, by their ids."""
    rows = store.query("SELECT session_id, seq, data FROM summaries")
    return {session_id: (seq, data) for session_id, seq, data in rows}


def keep_summaries(store: Store, summaries: Mapping[str, Summary]) -> None:
    """Keep what the logs of sessions say in short, up to an event: reading a log anew takes longer."""
    rows = [(session_id, seq, data) for session_id, (seq, data) in summaries.items()]

    def keep(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO summaries (session_id, seq, data) SELECT ?1, ?2, ?3 WHERE EXISTS "
            "(SELECT 1 FROM sessions WHERE id = ?1) ON CONFLICT DO UPDATE SET seq = excluded.seq, "
            "data = excluded.data",
            rows,
        )

    store.write_now(keep)
