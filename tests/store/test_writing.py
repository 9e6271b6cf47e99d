"""Who commits, and when: at once what nothing holds up, otherwise a thread that waits."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.sessions import add, event
from treadle.protocol.errors import StoreError
from treadle.store.appending import Writer
from treadle.store.opening_store import connected_database
from treadle.store.sqlite import Store


def synchronous(connection: sqlite3.Connection) -> int:
    """Tell how a connection commits: 1 without waiting for the disk, 2 when it has arrived there."""
    return int(connection.execute("PRAGMA synchronous").fetchone()[0])


def waits(connection: sqlite3.Connection) -> tuple[int, int]:
    """Tell how long a connection waits for others (ms), and from how many pages on it empties the journal."""
    timeout, pages = (connection.execute(f"PRAGMA {name}") for name in ("busy_timeout", "wal_autocheckpoint"))
    return timeout.fetchone()[0], pages.fetchone()[0]


async def test_an_append_waits_for_another_writer_without_holding_up_the_rest(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    await add(store, "one", 2)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        appending = asyncio.create_task(store.append("one", [event("one", 3)], durable=False))
        for _ in range(20):
            await asyncio.sleep(0.01)  # the loop goes on
        assert not appending.done()
        other.execute("ROLLBACK")
    await appending
    await store.append("one", [event("one", 4)], durable=False)
    assert [one.seq for one in store.read("one")] == [1, 2, 3, 4]
    assert store.verify("one") is None
    store.close()


def test_only_the_thread_waits_for_others_and_moves_the_journal(tmp_path: Path) -> None:
    Store(tmp_path / "sessions.db").close()
    with closing(connected_database(tmp_path / "sessions.db")) as connection:
        writer = Writer(tmp_path / "sessions.db", connection)
        for _ in range(2):
            assert writer.transact_at_once(waits) == (0, 0)
            assert writer.submit(lambda: writer.transact(waits)).result() == (10_000, 1_000)
        writer.close()


async def test_what_must_last_reaches_the_disk_whatever_was_written_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    await add(store, "one", 1)
    for seq, durable in ((2, False), (3, True), (4, False), (5, True), (6, True)):
        await store.append("one", [event("one", seq)], durable=durable)
        assert await store.write(synchronous) == (2 if durable else 1)
    store.close()


async def test_the_journal_of_a_long_turn_does_not_grow(tmp_path: Path) -> None:
    store = Store(tmp_path / "sessions.db")
    await add(store, "one", 1)
    for seq in range(2, 2_002):
        await store.append("one", [event("one", seq)], durable=False)
    assert store.path.with_name("sessions.db-wal").stat().st_size < 8 * 1024 * 1024
    assert store.verify("one") is None
    store.close()


async def test_what_is_written_at_once_is_there_for_another_process_and_in_order(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "sessions.db"), Store(tmp_path / "sessions.db")
    await add(store, "one", 1)
    await add(other, "two", 1)
    for seq in range(2, 300):
        await asyncio.gather(
            store.append("one", [event("one", seq)], durable=seq % 7 == 0),
            store.append("three", [event("three", seq - 1)], durable=False) if seq > 2 else add(store, "three", 1),
            other.append("two", [event("two", seq)], durable=seq % 11 == 0),
        )
        assert len([*other.read("one")]) == len([*store.read("two")]) == seq
    assert [store.verify(name) for name in ("one", "two", "three")] == [None, None, None]
    store.close()
    other.close()


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("way", ["deleted", "moved", "replaced"])
async def test_nothing_is_written_to_a_file_that_nobody_can_find(tmp_path: Path, way: str, *, durable: bool) -> None:
    store = Store(tmp_path / "sessions.db")
    await add(store, "one", 2)
    match way:
        case "deleted":
            store.path.unlink()
        case "moved":
            store.path.rename(tmp_path / "elsewhere.db")
        case _:
            store.path.unlink()
            Store(store.path).close()
    with pytest.raises(StoreError) as raised:
        await store.append("one", [event("one", 3)], durable=durable)
    assert raised.value.code == "log-unwritable"
    assert "deleted, moved or replaced" in raised.value.why
    if way == "moved":
        (tmp_path / "elsewhere.db").rename(store.path)
        await store.append("one", [event("one", 3)], durable=durable)
        assert [one.seq for one in store.read("one")] == [1, 2, 3]
    store.close()
