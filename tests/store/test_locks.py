"""The locks on an open log: what this process does beside it does not give them away."""

import subprocess
import sys
from pathlib import Path

from tests.store.sessions import add
from treadle.store.sqlite import Store

_OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM sessions").fetchone()
connection.close()
"""


async def test_an_open_log_stays_whole_when_it_is_opened_again_here_and_closed_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = Store(path)
    await add(store, "one", 2)
    Store(path).close()
    # The last one that closes a log takes its journal away: whoever does not see the lock thinks that it is the last.
    subprocess.run([sys.executable, "-c", _OTHER, str(path)], check=True)
    assert path.with_name("sessions.db-wal").exists()
    await add(store, "two", 2)
    other = Store(path)
    assert {one.id for one in other.sessions()} == {"one", "two"}
    other.close()
    store.close()
