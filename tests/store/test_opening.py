"""Databases that were cut or scribbled on: opened all the same, with what is whole, and no foreign error."""

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import pytest

from tests.store.sessions import add, event, fill
from treadle.protocol.errors import StoreError, TreadleError
from treadle.protocol.events import Event
from treadle.store.damage import is_current
from treadle.store.opening_store import connected_database, find_trouble, keep_journal
from treadle.store.schema import migrate
from treadle.store.sqlite import Store


def contents(path: Path) -> tuple[dict[str, list[Event]], Store]:
    """Open a database and read everything."""
    store = Store(path)
    try:
        return {row.id: list(store.read(row.id)) for row in store.sessions()}, store
    finally:
        store.close()


def asides(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".broken-" in path.name and not path.name.endswith(("-wal", "-shm"))]


async def usable(path: Path, name: str = "new") -> None:
    """A session can be written and read."""
    store = Store(path)
    written = await add(store, name, 2)
    assert (list(store.read(name)), store.verify(name)) == (written, None)
    store.close()


async def test_a_file_that_is_no_database_is_set_aside_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"this is a letter, not a database" * 10)
    found, store = contents(path)
    assert found == {}
    assert store.repaired is not None
    assert store.repaired.why == "it is not a database"
    assert store.repaired.aside.read_bytes().startswith(b"this is a letter")
    await usable(path)
    assert len(asides(tmp_path)) == 1


async def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "db").touch()
    assert contents(tmp_path / "db")[0] == {}
    assert asides(tmp_path) == []
    await usable(tmp_path / "db")


async def test_a_sound_database_is_left_alone_also_after_a_crash(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db")
    store = Store(tmp_path / "db")
    await store.append("s0", [event("s0", 13)], durable=True)
    for name in ("db", "db-wal"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("db", "copy"))
    store.close()
    found, reopened = contents(tmp_path / "copy")
    assert (found["s0"], found["s1"], reopened.repaired) == ([*written["s0"], event("s0", 13)], written["s1"], None)


async def test_sessions_before_the_cut_come_over_whole(tmp_path: Path) -> None:
    path = tmp_path / "db"
    written = await fill(path, sessions=6, events=30)
    pristine = path.read_bytes()
    kept = set()
    for size in range(100, len(pristine), 4096 * 3 - 700):
        path.write_bytes(pristine[:size])
        found, store = contents(path)
        assert store.repaired is not None
        for name, events in found.items():
            assert events == written[name][: len(events)]
            assert (name in store.repaired.whole) == (events == written[name])
            assert (name in store.repaired.shortened) == (events != written[name])
        kept.add(len(store.repaired.whole))
        await usable(path)
        for leftover in tmp_path.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    assert max(kept) >= 2


async def test_a_cut_journal_loses_only_the_last_commits(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    store = Store(source / "db")
    written = await add(store, "s", 40)
    wal, main = (source / "db-wal").read_bytes(), (source / "db").read_bytes()
    store.close()
    lengths = []
    for size in range(0, len(wal) + 1, len(wal) // 25):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "db").write_bytes(main)
        (folder / "db-wal").write_bytes(wal[:size])
        events = contents(folder / "db")[0].get("s", [])
        assert events == written[: len(events)]
        lengths.append(len(events))
    assert lengths == sorted(lengths)
    assert lengths[-1] > 30


async def test_scribbles_never_raise_anything_foreign(tmp_path: Path) -> None:
    written = await fill(tmp_path / "db", sessions=5, events=20)
    pristine = (tmp_path / "db").read_bytes()
    jitter = random.Random(5)
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        damaged = bytearray(pristine)
        for _ in range(3):
            at = jitter.randrange(len(damaged))
            damaged[at : at + 64] = jitter.randbytes(64)
        (folder / "db").write_bytes(damaged[: len(pristine)])
        for _ in range(3):
            try:
                found, store = contents(folder / "db")
            except TreadleError:
                continue
            whole = store.repaired.whole if store.repaired else ()
            assert all(found[name] == written[name] for name in whole)
            break
        with suppress(StoreError):  # writing may be the first to touch what is broken
            await usable(folder / "db")
            continue
        await usable(folder / "db", "newer")


async def test_a_file_whose_reading_failed_is_looked_through_at_the_next_opening(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path, sessions=6, events=40)
    data = bytearray(path.read_bytes())
    for page in range(5, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 2048] = b"\xff" * 2048
    path.write_bytes(data)
    assert find_trouble(path) == ""
    with pytest.raises(StoreError, match="is damaged"):
        contents(path)
    assert find_trouble(path) != ""
    assert contents(path)[1].repaired is not None
    assert find_trouble(path) == ""


async def test_a_busy_file_is_not_broken(tmp_path: Path) -> None:
    path = tmp_path / "db"
    await fill(path)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    assert contents(path)[1].repaired is None
    holder.close()


def test_a_folder_in_its_place_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "db")


def test_a_journal_that_goes_while_a_file_is_opened_is_none(tmp_path: Path) -> None:
    path, done = tmp_path / "db", threading.Event()
    Store(path).close()

    def come_and_go() -> None:
        journal = tmp_path / "db-wal"
        while not done.is_set():
            journal.touch()
            journal.unlink()

    going = threading.Thread(target=come_and_go)
    going.start()
    try:
        found = {find_trouble(path) for _ in range(2_000)}
    finally:
        done.set()
        going.join()
    assert found == {""}


def test_several_that_open_a_new_file_at_once_all_get_it(tmp_path: Path) -> None:
    def open_it(path: Path, begin: threading.Barrier) -> None:
        begin.wait()
        Store(path).close()

    with ThreadPoolExecutor(4) as pool:
        for number in range(60):
            begin = threading.Barrier(4)
            for opened in [pool.submit(open_it, tmp_path / str(number) / "db", begin) for _ in range(4)]:
                opened.result()


async def test_a_second_opening_leaves_the_first_one_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "db"
    first = Store(path)
    before = await add(first, "a", 2)
    Store(path).close()
    other = "import sys; from treadle.store.sqlite import Store; s = Store(__import__('pathlib').Path(sys.argv[1]))"
    # Another process that leaves takes the journal with it, unless it sees that this one is still there.
    subprocess.run([sys.executable, "-c", f"{other}; s.query('SELECT 1'); s.close()", str(path)], check=True)
    after = await add(first, "b", 2)
    shown = f"{other}; print(len(list(s.read('a'))), len(list(s.read('b'))))"
    ended = subprocess.run([sys.executable, "-c", shown, str(path)], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == [str(len(before)), str(len(after))]
    first.close()


def test_a_new_file_in_which_another_works_already_is_opened(tmp_path: Path) -> None:
    path, others = tmp_path / "db", list[Store]()
    connection = connected_database(path)

    async def work() -> None:
        others.append(Store(path))
        await fill(path, sessions=1)
        await others[0].acquire("s0")

    def be_faster(statement: str) -> None:
        if not others:
            asyncio.run(work())

    assert not is_current(connection, path)
    # Its first statement comes after it looked what the file is.
    connection.set_trace_callback(lambda said: be_faster(said) if "foreign_keys" in said else None)
    migrate(connection, path)
    assert is_current(connection, path)
    connection.close()
    others[0].close()


class Refusing(sqlite3.Connection):
    """Refuses once with an error of this code."""

    code = 0

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        """Raise once, then do it."""
        if self.code:
            error = sqlite3.OperationalError("refused")
            error.sqlite_errorcode, self.code = self.code, 0
            raise error
        return super().execute(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "waits", "raised"),
    [
        (sqlite3.SQLITE_BUSY, 1000.0, False),
        (sqlite3.SQLITE_BUSY, -1.0, True),
        (sqlite3.SQLITE_READONLY, 1000.0, True),
        (sqlite3.SQLITE_READONLY, -1.0, True),
    ],
)
def test_only_a_database_that_others_hold_is_waited_for_and_not_for_ever(
    tmp_path: Path, code: int, waits: float, raised: bool
) -> None:
    with closing(sqlite3.connect(tmp_path / "db", factory=Refusing)) as connection:
        connection.code = code
        with pytest.raises(sqlite3.OperationalError, match="refused") if raised else nullcontext():
            keep_journal(connection, waits)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete" if raised else "wal",)
