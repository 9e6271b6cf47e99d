"""A log whose files were cut at any byte: a beginning of the events, or a clear error, never something else."""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from tests.e2e.samples import sample
from treadle.engine.core.advance import fold
from treadle.protocol.errors import StoreError
from treadle.protocol.events import Event
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

DRIVER = (sys.executable, str(Path(__file__).parents[1] / "e2e" / "kill_driver.py"))
LAST_COMMIT = "12"
POSITIONS = 40
SOCKETS = shutil.ignore_patterns("live")
"""What a killed program leaves besides: sockets that nobody listens at."""

SOCKETS = shutil.ignore_patterns("live")
"""Where a killed process listened."""


async def killed_run(folder: Path) -> None:
    task = sample("demo")
    project = task.lay_out(folder / "project")
    async with ScriptedServer(task.script) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(project))
        await Program(folder / "home").run("-p", task.prompt, *flags, command=(*DRIVER, "after", LAST_COMMIT))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home as a killed program leaves it: the database with its write-ahead log."""
    folder = tmp_path_factory.mktemp("killed")
    asyncio.run(killed_run(folder))
    assert (folder / "home" / "sessions.db-wal").stat().st_size > 0
    return folder / "home"


@pytest.fixture(scope="module")
def closed(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same home after somebody has opened and closed it: everything is in the database."""
    home = tmp_path_factory.mktemp("closed") / "home"
    shutil.copytree(killed, home, ignore=SOCKETS)
    Store(home / "sessions.db").close()
    assert not (home / "sessions.db-wal").exists()
    return home


def read(home: Path) -> list[Event] | StoreError:
    """The events of the only session, as far as there are any, or why not."""
    try:
        store = Store(home / "sessions.db")
    except StoreError as error:
        return error
    try:
        return [event for row in store.sessions() for event in store.read(row.id)]
    except StoreError as error:
        return error
    finally:
        store.close()


def cuts(home: Path, name: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """Copies of a home in which one file ends early, at many positions; pages and frames end at none of them only."""
    size = (home / name).stat().st_size
    positions = {size * step // POSITIONS for step in range(POSITIONS)} | {4096, 4097, size - 4096, size - 1}
    for position in sorted(position for position in positions if 0 <= position < size):
        copy = folder / f"{name}-{position}"
        shutil.copytree(home, copy, ignore=SOCKETS)
        with (copy / name).open("r+b") as file:
            file.truncate(position)
        (copy / "sessions.db-shm").unlink(missing_ok=True)
        yield position, copy


def test_a_cut_write_ahead_log_gives_a_beginning_of_the_events(killed: Path, tmp_path: Path) -> None:
    whole = read(shutil.copytree(killed, tmp_path / "whole", ignore=SOCKETS))
    assert isinstance(whole, list)
    lengths = []
    for position, home in cuts(killed, "sessions.db-wal", tmp_path):
        found = read(home)
        assert isinstance(found, list), (position, found.why)
        assert found == whole[: len(found)], position
        fold(found)
        lengths.append(len(found))
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 4


def test_a_cut_database_gives_a_beginning_of_the_events(closed: Path, tmp_path: Path) -> None:
    whole = read(shutil.copytree(closed, tmp_path / "whole", ignore=SOCKETS))
    assert isinstance(whole, list)
    for position, home in cuts(closed, "sessions.db", tmp_path):
        found = read(home)
        assert isinstance(found, list), (position, found.why)
        assert found == whole[: len(found)], position
