"""Naming, archiving and deleting sessions: what stays, what goes, and what happens while one is open elsewhere."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.store.sessions import event, fill
from treadle.protocol.errors import SessionError, StoreError
from treadle.protocol.events import ENGINE, Event
from treadle.store import keeping
from treadle.store.log_search import search
from treadle.store.sqlite import Store

HOLD = """
import asyncio, sys
from pathlib import Path
from treadle.store.sqlite import Store

store = Store(Path(sys.argv[1]))
asyncio.run(store.acquire("s1"))
print("held", flush=True)
sys.stdin.read()
"""


def ids(store: Store, *, archived: bool) -> list[str]:
    return sorted(row.id for row in store.sessions() if row.archived is archived)


async def test_a_name_stays_whatever_is_logged_and_an_empty_one_gives_the_title_back(tmp_path: Path) -> None:
    await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    keeping.rename(store, "s1", "  my\n work\udcff " + "x" * 300)
    await store.append("s1", [event("s1", 13)], durable=False)
    name = store.title("s1")
    assert name == ("my work\\xff " + "x" * 300)[: len(name)]
    assert keeping.LONGEST_NAME <= len(name) < keeping.LONGEST_NAME + 9
    assert store.find("s1").title == name
    assert store.verify("s1") is None
    keeping.rename(store, "s1", "")
    assert store.title("s1") == "t"
    store.close()


async def test_an_archived_session_reads_as_before_and_goes_on_where_it_was(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db", events=300)
    store = Store(tmp_path / "db")
    chains = store.chains("s1")
    keeping.archive(store, ["s1"], 9)
    keeping.archive(store, ["s1"], 10)
    assert (ids(store, archived=True), ids(store, archived=False)) == (["s1"], ["s0", "s2"])
    assert store.query("SELECT count(*) FROM events WHERE session_id = 's1'") == [(0,)]
    log = store.read("s1")
    assert list(log) == written["s1"]
    assert (log.damage, store.chains("s1"), store.verify("s1"), store.missing("s1")[0]) == (None, chains, None, None)
    assert list(store.read("s1", after=100, before=103)) == written["s1"][100:102]
    await store.acquire("s1")
    await store.append("s1", [event("s1", 301)], durable=True)
    assert (len(list(store.read("s1"))), store.verify("s1"), ids(store, archived=True)) == (301, None, [])
    store.close()


async def test_a_clock_that_was_set_back_and_forth_makes_no_archive_unreadable(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    for at in (0, 2**42):
        keeping.archive(store, ["s1"], at)
        assert (list(store.read("s1")), store.verify("s1"), store.missing("s1")[0]) == (written["s1"], None, None)
        await store.acquire("s1")
        last = written["s1"][-1].seq
        early = Event(seq=last + 1, at=at, source=ENGINE, data=event("s1", last + 1).data)
        await store.append("s1", [early], durable=True)
        await store.release("s1")
        written["s1"].append(early)
    keeping.archive(store, ["s1"], 1)
    assert (list(store.read("s1")), store.verify("s1"), ids(store, archived=True)) == (written["s1"], None, ["s1"])
    store.close()


async def test_two_that_archive_and_take_up_one_session_at_once_lose_nothing(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db", sessions=1, events=50)
    one, other = Store(tmp_path / "db"), Store(tmp_path / "db")

    def pack() -> None:
        for _ in range(30):
            with suppress(SessionError):
                keeping.archive(one, ["s0"], 9)

    async def take_up() -> None:
        for _ in range(30):
            await other.acquire("s0")
            assert list(other.read("s0")) == written["s0"]
            await other.release("s0")

    await asyncio.gather(asyncio.to_thread(pack), take_up())
    assert (list(one.read("s0")), one.verify("s0")) == (written["s0"], None)
    one.close()
    other.close()


async def test_an_archive_that_is_damaged_is_said(tmp_path: Path) -> None:
    await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    keeping.archive(store, ["s1"], 9)
    store.write_now(lambda connection: connection.execute("UPDATE archived SET data = substr(data, 1, 50)"))
    with pytest.raises(StoreError, match="cannot be unpacked"):
        list(store.read("s1"))
    with pytest.raises(StoreError, match="cannot be unpacked"):
        await store.acquire("s1")
    assert len(list(store.read("s0"))) == 12
    store.close()


async def test_nothing_of_a_deleted_session_is_left_in_any_file(tmp_path: Path) -> None:
    await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    await store.append("s1", [event("zebra-s1", 13)], durable=True)
    store.close()
    store = Store(tmp_path / "db")
    assert search(store, "zebra") != []
    keeping.archive(store, ["s0"], 9)
    for name in ("s1", "s0"):
        keeping.delete(store, name)
    assert (ids(store, archived=True), ids(store, archived=False)) == ([], ["s2"])
    assert search(store, "zebra") == []
    assert store.query("PRAGMA foreign_key_check") == []
    store.close()
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"zebra" in file.read_bytes()]
    assert not (tmp_path / "db-anchors" / "s1").exists()


async def test_what_a_deleted_session_cost_stays_in_its_day(tmp_path: Path) -> None:
    await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    rows = [("s0", "2026-01-01", 1.0, 5), ("s1", "2026-01-01", 2.0, 5)]
    store.write_now(
        lambda connection: connection.executemany(
            "INSERT INTO spending (session_id, day, cost, tokens) VALUES (?, ?, ?, ?)", rows
        )
    )
    for name in ("s0", "s1"):
        keeping.delete(store, name)
    assert store.query("SELECT session_id, day, cost, tokens FROM spending") == [("", "2026-01-01", 3.0, 10)]
    store.close()


async def test_a_session_that_is_open_is_neither_archived_nor_deleted(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        store = Store(tmp_path / "db")
        with pytest.raises(SessionError, match="is busy"):
            keeping.delete(store, "s1")
        with pytest.raises(SessionError, match="is busy"):
            keeping.archive(store, ["s0", "s1"], 9)
        keeping.rename(store, "s1", "renamed while open")
        assert ids(store, archived=True) == []
        assert list(store.read("s1")) == written["s1"]
        holder.communicate("")
    keeping.delete(store, "s1")
    assert ids(store, archived=False) == ["s0", "s2"]
    store.close()


async def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db", events=200)
    store = Store(tmp_path / "db")
    (pages,) = store.query("PRAGMA page_count")[0]
    store.write_now(lambda connection: connection.execute(f"PRAGMA max_page_count={pages}").fetchone())
    with pytest.raises(StoreError) as raised:
        keeping.archive(store, ["s0", "s1", "s2"], 9)
    assert raised.value.code == "log-unwritable"
    assert ids(store, archived=True) == []
    assert {name: list(store.read(name)) for name in written} == written
    store.close()


async def test_a_recovered_database_keeps_names_and_archived_sessions(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db", sessions=40, events=30)
    store = Store(tmp_path / "db")
    keeping.rename(store, "s1", "my work")
    keeping.archive(store, ["s2"], 9)
    store.close()
    (tmp_path / "db").write_bytes((tmp_path / "db").read_bytes()[:-4096])
    store = Store(tmp_path / "db")
    assert store.repaired is not None
    assert store.title("s1") == "my work"
    assert list(store.read("s2")) == written["s2"]
    assert ids(store, archived=True) == ["s2"]
    store.close()
    with sqlite3.connect(tmp_path / "db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
