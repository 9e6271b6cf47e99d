"""What the doctor says of the database: only what SQLite finds broken is damaged."""

import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.small_disk import fill as fill_disk
from tests.small_disk import small_disk
from treadle.store.sqlite import Store


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder with a database, on a small disk of its own."""
    with small_disk(tmp_path / "disk", 2) as disk:
        folder = disk / "data"
        Store(folder / "sessions.db").close()
        monkeypatch.setenv("TREADLE_HOME", str(folder))
        yield folder


def well(data: Path) -> None:
    assert data.exists()


def not_a_database(data: Path) -> None:
    (data / "sessions.db").write_bytes(b"not a database at all" * 100)


def broken_inside(data: Path) -> None:
    found = bytearray((data / "sessions.db").read_bytes())
    for at in range(4096, len(found), 4096):
        found[at : at + 2048] = b"\xff" * 2048
    (data / "sessions.db").write_bytes(found)


def of_a_newer_treadle(data: Path) -> None:
    with closing(sqlite3.connect(data / "sessions.db")) as connection:
        connection.execute("PRAGMA user_version=999")


def read_only(data: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(data.parent)], check=True)


def with_an_open_journal(data: Path) -> None:
    connection = sqlite3.connect(data / "sessions.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE more (x)")
    assert (data / "sessions.db-wal").stat().st_size
    files = {one.name: one.read_bytes() for one in data.iterdir() if one.name.startswith("sessions.db")}
    connection.close()
    for name in ("sessions.db", "sessions.db-wal"):  # as after a kill
        (data / name).write_bytes(files[name])


def full(data: Path) -> None:
    with_an_open_journal(data)
    fill_disk(data)


def read_only_after_a_kill(data: Path) -> None:
    with_an_open_journal(data)
    read_only(data)


def a_folder(data: Path) -> None:
    (data / "sessions.db").unlink()
    (data / "sessions.db").mkdir()


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (well, "ok", ""),
        (not_a_database, "fail", "is damaged: file is not a database"),
        (broken_inside, "fail", "is damaged: "),
        (of_a_newer_treadle, "fail", "was written by a newer Treadle (schema 999"),
        (read_only, "warn", "can be read, but not written"),
        (with_an_open_journal, "ok", ""),
        (full, "fail", "cannot be opened. "),
        (read_only_after_a_kill, "fail", "cannot be opened. "),
        (a_folder, "fail", "cannot be opened. "),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_the_doctor_calls_only_what_is_broken_damaged(
    treadle: Command, data: Path, make: Callable[[Path], None], status: str, words: str
) -> None:
    make(data)
    said = treadle("doctor", "--offline", "--json")
    (row,) = [row for row in map(json.loads, said.out.splitlines()) if row["name"] == "database"]
    assert row["status"] == status, row
    assert words in row["found"], row
    assert ("is damaged" in row["found"]) == words.startswith("is damaged")
    assert ("mv " in row.get("fix", "")) == words.startswith("is damaged")
