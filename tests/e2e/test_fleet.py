"""Fleets as users run them: workers that are killed, a worker on another computer, money of all, PostgreSQL."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.e2e.batches import CALL_COST, CHECK, SETTINGS, Place, Solver, tasks
from tests.e2e.process import Program
from tests.needed import needs, require
from tests.rehearsal.fleets import counted, database, descendants, postgres, run_fleet, send, until
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.scripted_server import ScriptedServer

PATIENT = ("--adopt-after", "2")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def address(place: Place) -> str:
    return f"sqlite:///{place.folder}/fleet.db"


async def another_goes_on(place: Place, *, stored: bool) -> str:
    """Kill a worker, with all it has, in the middle of a task; gives what the batch says once another has done it."""
    place.prepare(tasks(1, check=CHECK))
    url, store = address(place), ("--store", str(place.folder / "store")) if stored else ()
    other = Program(place.folder / "other")
    other.home.mkdir()
    (other.home / "config.toml").write_text(SETTINGS)
    solver = Solver(seconds=0.3)
    async with ScriptedServer(solver) as server:
        words = place.words(server.base_url, "--database", url, *PATIENT, workers=0)
        batch = asyncio.create_task(place.program.run(*words))
        first = await place.program.start("worker", "--trust", "--database", url, *PATIENT, *store)
        await until(lambda: len(server.requests) == 3)
        send(signal.SIGKILL, [*descendants(first.pid), first.pid])
        await first.communicate()
        second = await other.start("worker", "--trust", "--database", url, *PATIENT, *store)
        ended = await batch
        second.send_signal(signal.SIGTERM)
        await second.communicate()
    assert (ended.code, second.returncode) == (0, 0), ended.err
    (row,) = place.rows()
    assert (row["state"], row["steps"]) == ("done", 4)
    assert len(server.requests) == (5 if stored else 7)
    log = (place.out / "sessions" / "t00.json").read_text()
    assert log.count('"name":"replace_in_file"') + log.count('"name": "replace_in_file"') >= 1
    assert not (place.folder / "store" / row["session"].partition(".")[0] / "t00").exists()
    assert "+    return a + b" in (place.out / "patches" / "t00.diff").read_text()
    return ended.err


async def test_another_computer_goes_on_from_the_last_step_that_a_store_has(place: Place) -> None:
    said = await another_goes_on(place, stored=True)
    assert "# t00 continues where another computer was" in said
    assert place.rows()[0]["session"].endswith(".t00")


@pytest.mark.soak
async def test_without_a_store_another_computer_begins_again_and_says_so(place: Place) -> None:
    said = await another_goes_on(place, stored=False)
    assert "# t00 begins again: its log is on another computer, and no store has it." in said
    assert place.rows()[0]["session"].endswith(".t00-2")


async def test_a_limit_in_money_holds_for_all_workers_and_more_money_continues(place: Place) -> None:
    place.prepare(tasks(5))
    url, cap, solver = address(place), 0.14, Solver(seconds=0.05)
    async with ScriptedServer(solver) as server:
        words = place.words(server.base_url, "--database", url, *PATIENT, "--max-cost", str(cap), workers=2)
        worker = await place.program.start("worker", "--trust", "--database", url, *PATIENT, "--workers", "2")
        ended = await place.program.run(*words)
        assert ended.code == Exit.BUDGET, ended.err
        assert cap / 3 < counted(url) <= cap
        assert solver.answered * CALL_COST <= cap
        assert len(place.rows()) < 5
        more = await place.program.run(*words, "--max-cost", "10")
        worker.send_signal(signal.SIGTERM)
        await worker.communicate()
    assert (more.code, worker.returncode) == (0, 0), more.err
    assert {row["state"] for row in place.rows()} == {"done"}
    assert (len(place.rows()), solver.answered) == (5, 20)


@pytest.mark.soak
async def test_a_batch_that_is_stopped_leaves_its_tasks_to_workers_and_collects_what_they_did(place: Place) -> None:
    place.prepare(tasks(2))
    url = address(place)
    async with ScriptedServer(Solver(seconds=0.2)) as server:
        words = place.words(server.base_url, "--database", url, *PATIENT, workers=1)
        first = await place.program.start(*words)
        await until(lambda: len(server.requests) == 2)
        first.send_signal(signal.SIGTERM)
        out, err = await first.communicate()
        assert first.returncode == Exit.TRANSIENT, (out, err)
        worker = await place.program.run("worker", "--trust", "--database", url, *PATIENT, "--once")
        assert worker.code == 0, worker.err
        asked = len(server.requests)
        again = await place.program.run(*words, "--json")
    assert again.code == 0, again.err
    assert len(server.requests) == asked
    assert sorted((row["id"], row["state"]) for row in place.rows()) == [("t00", "done"), ("t01", "done")]
    ends = [json.loads(line) for line in again.out.splitlines()][-1]
    assert (ends["left"], ends["states"]) == (0, {"done": 2})


async def test_a_worker_whose_disk_is_full_leaves_all_tasks_to_others(place: Place) -> None:
    came = await run_fleet(place, address(place), PATIENT, number=6, cap=2.0, hard=True)
    assert came.faults(6, 2.0) == []
    assert came.states == {"done": 6}


@needs("postgres", "dbos", "psycopg")
async def test_workers_on_postgresql_that_are_killed_lose_and_repeat_nothing(place: Place) -> None:
    with postgres() as url:
        flags = ("--engine", "dbos", *PATIENT)
        came = await run_fleet(place, url, flags, number=3, cap=1.0, seed=5, every=1.5, kinds=("kill all",), most=1)
    assert came.faults(3, 1.0) == []
    assert came.states == {"done": 3}


@needs("dbos")
async def test_a_worker_whose_engine_is_killed_begins_again_and_nothing_is_lost(place: Place) -> None:
    with database("sqlite", place.folder) as url:
        flags, kinds = ("--engine", "dbos", *PATIENT), ("kill engine",)
        came = await run_fleet(place, url, flags, number=4, cap=1.0, seed=5, every=1.5, kinds=kinds, most=2)
    assert came.faults(4, 1.0) == []
    assert came.states == {"done": 4}
    assert came.disturbed == {"kill engine": 2}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_two_hundred_tasks_whose_workers_are_killed_and_stopped(place: Place, kind: str) -> None:
    if kind == "postgresql":
        require("postgres", "psycopg")
    with database(kind, place.folder) as url:
        came = await run_fleet(place, url, ("--adopt-after", "3"), number=200, cap=24.0, seed=7, every=10.0)
    assert came.faults(200, 24.0) == []


@pytest.mark.soak
@needs("postgres", "dbos", "psycopg")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_the_same_with_dbos_in_small(place: Place, kind: str) -> None:
    with database(kind, place.folder) as url:
        came = await run_fleet(
            place, url, ("--engine", "dbos", "--adopt-after", "3"), number=20, cap=2.4, seed=7, every=10.0
        )
    assert came.faults(20, 2.4) == []
