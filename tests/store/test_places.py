"""Places where a database is hard to keep: no room, no write-ahead log, several processes, clocks that jump."""

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.sessions import add, change, event, fill
from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import Event
from treadle.store.sqlite import Store

WITHOUT_WAL = """
import asyncio, sqlite3, sys
from pathlib import Path

def over_dotfiles(path, **named):
    return connect(f"file:{path}?vfs=unix-dotfile", uri=True, **named)

connect, sqlite3.connect = sqlite3.connect, over_dotfiles
from tests.store.sessions import add, event, make_old
from treadle.store.log_search import search
from treadle.store.sqlite import Store

async def main(path: Path) -> None:
    written = make_old(path, 6)
    store = Store(path)
    assert store.query("PRAGMA journal_mode") == [("delete",)]
    reading = iter(store.read("s0"))
    assert next(reading) == written["s0"][0]
    await add(store, "new", 3)
    await store.append("new", [event("new", 4)], durable=True)
    assert list(reading) == written["s0"][1:]
    assert [store.verify(name) for name in ("s0", "s1", "new")] == [None] * 3
    assert len(search(store, "new")) == 3
    store.close()

asyncio.run(main(Path(sys.argv[1])))
print("done")
"""

WRITER = """
import asyncio, sys
from pathlib import Path
from tests.store.sessions import add
from treadle.store.sqlite import Store

store = Store(Path(sys.argv[1]))
asyncio.run(add(store, sys.argv[2], 60))
store.close()
"""


def count_events() -> int:
    return sum(isinstance(one, Event) for one in gc.get_objects())


def run(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *arguments]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)


def test_a_file_system_without_a_write_ahead_log_serves(tmp_path: Path) -> None:
    out, error = run(WITHOUT_WAL, str(tmp_path / "db")).communicate(timeout=120)
    assert (out, error) == ("done\n", "")


def test_processes_that_write_sessions_at_once_lose_nothing(tmp_path: Path) -> None:
    running = [run(WRITER, str(tmp_path / "db"), f"s{number}") for number in range(3)]
    assert [one.communicate(timeout=120) for one in running] == [("", "")] * 3
    store = Store(tmp_path / "db")
    for number in range(3):
        name = f"s{number}"
        assert list(store.read(name)) == [event(name, seq) for seq in range(1, 61)]
        assert (store.verify(name), store.missing(name)) == (None, (None, True))
    store.close()


async def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    written = await add(store, "s", 2)
    pages = store.query("PRAGMA page_count")[0][0]
    await store.write(
        lambda connection: connection.execute(
            "CREATE TABLE checked (id REFERENCES sessions DEFERRABLE INITIALLY DEFERRED)"
        )
    )
    with pytest.raises(StoreError, match="does not take"):
        await store.write(lambda connection: connection.execute("INSERT INTO checked VALUES ('nobody')"))
    await store.append("s", [event("s", 3)], durable=False)
    assert list(store.read("s")) == [*written, event("s", 3)]
    assert pages > 1
    store.close()


async def test_a_clock_that_was_set_back_holds_no_session_for_long(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=1)
    store = Store(path)
    tomorrow, now = time.time() + 86_400, time.time()
    change(path, f"INSERT INTO leases VALUES ('s0', 'elsewhere:1:1', {tomorrow})")
    await store.acquire("s0")
    change(path, f"UPDATE leases SET owner = 'elsewhere:1:1', beat = {now}")
    with pytest.raises(SessionError):
        await store.acquire("s0")
    early = Event(seq=13, at=1, source=event("s0", 2).source, data=event("s0", 13).data)
    await store.append("s0", [early], durable=True)
    assert (store.verify("s0"), list(store.read("s0", after=12))) == (None, [early])
    store.close()


async def test_a_log_is_read_without_holding_its_events(tmp_path: Path) -> None:
    await fill(tmp_path / "db", sessions=1, events=400)
    store = Store(tmp_path / "db")
    gc.collect()
    before = count_events()
    held = [count_events() - before for number, _ in enumerate(store.read("s0")) if number % 100 == 0]
    assert max(held) <= 2
    store.close()


async def test_an_event_that_another_wrote_first_is_refused_with_a_reason(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "db"), Store(tmp_path / "db")
    await add(first, "s", 2)
    await second.append("s", [event("s", 3)], durable=False)
    with pytest.raises(StoreError) as caught:
        await first.append("s", [event("s", 3)], durable=False)
    assert (caught.value.code, "Another Treadle" in caught.value.why) == ("log-conflict", True)
    assert (first.verify("s"), len(list(first.read("s")))) == (None, 3)
    await first.append("s", [event("s", 4)], durable=False)
    first.close()
    second.close()


def test_a_data_directory_that_takes_no_files_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "file" / "db")
