"""Databases of older versions: converted once, by one process, all at once or not at all."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.store.sessions import change, event, make_old
from treadle.protocol.errors import StoreError
from treadle.protocol.events import Event
from treadle.protocol.models import Spent
from treadle.store.appending import tag_of
from treadle.store.damage import SCHEMA
from treadle.store.leases import new_owner
from treadle.store.schema import STEPS
from treadle.store.spent import Purpose
from treadle.store.sqlite import Store

POSITIONS = 14

OPEN = """
import sys
from pathlib import Path
from treadle.store.sqlite import Store

store = Store(Path(sys.argv[1]))
print(sum(len(list(store.read(row.id))) for row in store.sessions()), store.repaired is None)
store.close()
"""

KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path

last, calls = int(sys.argv[2]), 0

def tick() -> int:
    global calls
    calls += 1
    if calls == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

def watched(*arguments: object, **named: object) -> sqlite3.Connection:
    connection = connect(*arguments, **named)
    connection.set_progress_handler(tick, 100)
    connection.set_trace_callback(lambda _: tick())
    return connection

connect, sqlite3.connect = sqlite3.connect, watched
from treadle.store.sqlite import Store

Store(Path(sys.argv[1])).close()
print(calls)
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=False, capture_output=True, text=True, timeout=120
    )


def check_whole(path: Path, written: dict[str, list[Event]]) -> None:
    """Every session reads as it was written, has its chain and its types, and the file is sound."""
    store = Store(path)
    assert store.repaired is None
    for name, log in written.items():
        assert list(store.read(name)) == log
        assert store.verify(name) is None
    rows = store.query("SELECT session_id, seq, type FROM events ORDER BY id")
    assert rows == [(name, one.seq, tag_of(one.data)) for name, log in written.items() for one in log]
    assert store.query("PRAGMA integrity_check") == [("ok",)]
    assert store.query("PRAGMA foreign_key_check") == []
    store.close()


def test_the_number_of_the_schema_is_that_of_its_steps() -> None:
    assert len(STEPS) == SCHEMA


@pytest.mark.parametrize("steps", range(1, len(STEPS)))
async def test_a_database_of_every_older_version_is_read_and_goes_on(tmp_path: Path, steps: int) -> None:
    written = make_old(tmp_path / "db", steps, sessions=3, events=5)
    check_whole(tmp_path / "db", written)
    store = Store(tmp_path / "db")
    await store.append("s1", [event("s1", 6)], durable=True)
    assert (len(list(store.read("s1"))), store.verify("s1")) == (6, None)
    store.close()


async def test_what_a_killed_process_had_reserved_is_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make_old(path, 8)
    change(path, "INSERT INTO leases VALUES ('s0', 'elsewhere:1:1', 0)")
    for session in ("s0", "s1"):
        change(path, f"INSERT INTO reservations VALUES ('{session}', '1970-01-01', 0.5, 900)")
    change(path, "INSERT INTO spending VALUES ('s0', '1970-01-01', 0.25, 100)")
    store = Store(path)
    told = await store.reserve("s1", Purpose.STEP, 0, Spent())
    assert told.day == Spent(cost=0.75, tokens=1000, estimated=True)
    store.close()


def test_a_converted_file_does_not_keep_the_room_of_the_old_tables(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make_old(path, 6, sessions=5, events=300)
    before = path.stat().st_size
    Store(path).close()
    assert path.stat().st_size < before * 1.2


def test_a_kill_at_any_moment_of_the_conversion_loses_nothing(tmp_path: Path) -> None:
    written = make_old(tmp_path / "db", 6, sessions=3, events=120)
    shutil.copy(tmp_path / "db", tmp_path / "whole")
    calls = int(run(KILLED, str(tmp_path / "whole"), "-1").stdout)
    assert calls > 10 * POSITIONS
    versions = set()
    for step in range(POSITIONS):
        path = tmp_path / str(step) / "db"
        path.parent.mkdir()
        shutil.copy(tmp_path / "db", path)
        died = run(KILLED, str(path), str(1 + calls * step // POSITIONS))
        assert died.returncode == -signal.SIGKILL, died.stderr
        with sqlite3.connect(shutil.copytree(path.parent, path.parent / "look") / "db") as look:
            versions.add(look.execute("PRAGMA user_version").fetchone()[0])
        look.close()
        check_whole(path, written)
    assert versions == {6, len(STEPS)}


def test_many_that_open_an_old_database_at_once_convert_it_once(tmp_path: Path) -> None:
    written = make_old(tmp_path / "db", 3, sessions=3, events=400)
    found: list[subprocess.CompletedProcess[str]] = []
    threads = [threading.Thread(target=lambda: found.append(run(OPEN, str(tmp_path / "db")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(one.returncode, one.stdout, one.stderr) for one in found] == [(0, "1200 True\n", "")] * 4
    check_whole(tmp_path / "db", written)


def test_an_older_program_at_work_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6)
    sleeper = subprocess.Popen(["sleep", "600"])
    host = new_owner().split(":", maxsplit=1)[0]
    try:
        change(path, f"INSERT INTO leases VALUES ('s0', '{host}:{sleeper.pid}:1', unixepoch())")
        with pytest.raises(StoreError) as caught:
            Store(path)
        assert caught.value.code == "store-in-use"
        assert f"session s0 ({host}:{sleeper.pid})" in caught.value.why
        with sqlite3.connect(path) as old:
            assert old.execute("PRAGMA user_version").fetchone() == (6,)
        old.close()
    finally:
        sleeper.kill()
        sleeper.wait()
    check_whole(path, written)


@pytest.mark.parametrize("beat", ["unixepoch() - 3600", "unixepoch() + 86400"])
def test_a_lease_that_was_left_behind_stops_nobody_even_when_its_number_is_taken_again(
    tmp_path: Path, beat: str
) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6)
    host = new_owner().split(":", maxsplit=1)[0]
    change(path, f"INSERT INTO leases VALUES ('s0', '{host}:{os.getppid()}:1', {beat})")
    check_whole(path, written)


def test_an_older_program_that_opened_the_file_before_can_overwrite_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6)
    old = sqlite3.connect(path, isolation_level=None)
    assert old.execute("SELECT count(*) FROM events").fetchone() == (6,)
    Store(path).close()
    with pytest.raises(sqlite3.IntegrityError):
        old.execute(
            "INSERT INTO events (session_id, seq, at, source, version, data, chain) "
            "VALUES ('s0', 4, 1, x'', 1, x'', x'')"
        )
    old.close()
    check_whole(path, written)


async def test_a_program_that_a_newer_one_overtook_refuses_to_begin_a_session(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    change(tmp_path / "db", "INSERT INTO sessions VALUES ('s', '/w', 'p/m', 't', 0, 0, 0, '', '', '', '')")
    change(tmp_path / "db", f"PRAGMA user_version={len(STEPS) + 1}")
    for refused in (store.acquire("s"), store.append("s", [event("s", 1)], durable=False)):
        with pytest.raises(StoreError, match="newer Treadle"):
            await refused
    store.close()
    with pytest.raises(StoreError, match="newer Treadle"):
        Store(tmp_path / "db")


def test_a_full_disk_in_the_middle_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6, sessions=2, events=300)
    size = path.stat().st_size

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    failed = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
    )
    assert failed.returncode == 1
    assert "StoreError" in failed.stderr.splitlines()[-1]
    assert "cannot be opened" in failed.stderr.splitlines()[-1]
    check_whole(path, written)


def test_rows_without_a_session_are_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "db"
    make_old(path, 6)
    change(path, "UPDATE events SET session_id = 's9' WHERE session_id = 's1' AND seq = 3")
    store = Store(path)
    assert store.query("SELECT session_id, seq FROM events WHERE session_id IN ('s1', 's9')") == [
        ("s1", 1),
        ("s1", 2),
        ("s9", 3),
    ]
    assert store.verify("s1") == 3
    store.close()


def test_a_damaged_row_is_carried_over_without_a_type(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6)
    change(path, "UPDATE events SET data = x'7b' WHERE session_id = 's1' AND seq = 2")
    store = Store(path)
    log = store.read("s1")
    assert (list(log), log.damage is not None, list(store.read("s0"))) == (written["s1"][:1], True, written["s0"])
    assert store.query("SELECT type FROM events WHERE session_id = 's1'")[1] == ("",)
    store.close()


@pytest.mark.parametrize("name", ["a?mode=ro", "a#b", "100%41", "file:a", "ä b'c\"d"])
async def test_any_name_of_the_file_is_a_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    written = make_old(folder / name, 6)
    check_whole(folder / name, written)
    assert {entry.name.removesuffix("-mending") for entry in folder.iterdir()} == {name}


def test_a_conversion_that_takes_long_is_announced_once(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = make_old(path, 6)
    said: list[str] = []
    Store(path, said.append).close()
    assert said == []
    make_old(tmp_path / "large", 6)
    change(tmp_path / "large", "INSERT INTO summaries VALUES ('s0', 1, zeroblob(40 * 1024 * 1024))")
    for _ in range(2):
        Store(tmp_path / "large", said.append).close()
    assert said == ["The session log (40 MB) is converted for this version. This happens once."]
    check_whole(tmp_path / "large", written)
