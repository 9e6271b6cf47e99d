"""Schedules that run: once, by whichever server is there, each as a session; what was missed is told."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.sessions import event
from treadle.app.compose import open_store
from treadle.app.processes.session_parts import this_process
from treadle.app.schedules import schedule_book
from treadle.app.schedules.schedule_book import (
    LATE,
    Schedule,
    ScheduledRun,
    add_schedule,
    own_zone,
    pause_schedule,
    read_schedules,
    remove_schedule,
    take_due,
)
from treadle.app.schedules.schedule_list import past_words, schedule_rows, schedules_text, stopped_runs
from treadle.app.schedules.schedule_runs import run_schedules
from treadle.engine.core.advance import fold
from treadle.engine.core.past_history import take_whole
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.events import ENGINE, Event, Prompt, SessionStarted, SetPresence
from treadle.protocol.messages import Text
from treadle.store.sqlite import SessionRow

NOW = 1_800_000_000.0
MINUTE = 60.0
SCRIPT = '[[turns]]\nitems = [{type = "text", text = "Seen."}]\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


def wanted(
    folder: Path, when: str = "every 30 minutes", created: float = NOW, *, mode: str = "", model: str = ""
) -> Schedule:
    return Schedule(
        id="",
        when=when,
        zone="Europe/Berlin",
        task="Look.",
        folder=str(folder),
        max_cost=0.5,
        created=created,
        handled=created,
        mode=mode,
        model=model,
    )


def test_what_is_due_is_taken_once_and_the_next_is_half_an_hour_later(folder: Path) -> None:
    added = add_schedule(wanted(folder))
    assert take_due(NOW + 29 * MINUTE) == []
    ((schedule, run),) = take_due(NOW + 31 * MINUTE)
    assert (schedule.id, run) == (added.id, ScheduledRun(due=NOW + 30 * MINUTE))
    assert take_due(NOW + 32 * MINUTE) == []
    (kept,) = read_schedules()
    assert (kept.next, kept.missed) == (NOW + 60 * MINUTE, 0)


def test_what_was_due_while_no_server_ran_is_missed_and_told(folder: Path) -> None:
    add_schedule(wanted(folder))
    assert take_due(NOW + 119 * MINUTE) == []  # the newest was due 29 minutes ago
    (kept,) = read_schedules()
    assert (kept.missed, kept.last_missed, kept.next) == (3, NOW + 90 * MINUTE, NOW + 120 * MINUTE)
    assert "3 runs missed, the last Fri 2027-01-15 10:30 CET" in schedules_text((kept,))
    ((_, run),) = take_due(NOW + 155 * MINUTE)
    assert run.due == NOW + 150 * MINUTE
    assert read_schedules()[0].missed == 4


def test_a_clock_that_was_ahead_for_a_while_keeps_no_run_from_its_time(folder: Path) -> None:
    add_schedule(wanted(folder))
    ((_, run),) = take_due(NOW + 31 * MINUTE)
    assert take_due(NOW + 3 * 24 * 60 * MINUTE + 29 * MINUTE) == []
    assert take_due(NOW + 32 * MINUTE) == []
    (kept,) = read_schedules()
    assert (kept.next, kept.missed, kept.last_missed, kept.runs) == (NOW + 60 * MINUTE, 0, 0.0, (run,))
    ((_, run),) = take_due(NOW + 60 * MINUTE)
    assert take_due(NOW + 60 * MINUTE - LATE) == [], "a clock that is set right begins nothing twice"
    assert read_schedules()[0].next == NOW + 90 * MINUTE


async def test_a_clock_that_is_set_back_is_noticed_while_a_server_runs(folder: Path) -> None:
    add_schedule(wanted(folder))
    days = 3 * 24 * 60 * MINUTE
    clock, told = [NOW], list[float | None]()
    running = asyncio.create_task(
        run_schedules(lambda _: None, looks=0.01, hears_next=told.append, clock=lambda: clock[0])
    )
    async with asyncio.timeout(90):
        for moment, due in ((NOW, 30), (NOW + days + 29 * MINUTE, 30 + days / MINUTE), (NOW + MINUTE, 30)):
            clock[0] = moment
            while not told or told[-1] != NOW + due * MINUTE:
                await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert read_schedules()[0].next == NOW + 30 * MINUTE


def test_years_without_a_server_are_counted_within_bounds(folder: Path) -> None:
    add_schedule(wanted(folder, "every 1 minute"))
    ((_, run),) = take_due(NOW + 3 * 365 * 24 * 3600 + 30)
    assert NOW + 3 * 365 * 24 * 3600 + 30 - run.due <= LATE
    assert read_schedules()[0].missed == schedule_book._MOST_COUNTED


def test_a_schedule_that_is_paused_misses_nothing(folder: Path) -> None:
    one = add_schedule(wanted(folder, created=time.time()))
    pause_schedule(one.id, paused=True)
    assert take_due(time.time() + 24 * 3600) == []
    again = pause_schedule(one.id, paused=False)
    assert again.next is not None
    assert again.next > time.time()
    assert remove_schedule(one.id).id == one.id
    assert read_schedules() == ()
    with pytest.raises(ConfigError):
        remove_schedule(one.id)


def test_what_is_over_or_in_no_zone_is_refused(folder: Path) -> None:
    for bad in (wanted(folder, "2020-01-01 9:00"), replace(wanted(folder), zone="Europe/Nowhere")):
        with pytest.raises(ConfigError):
            add_schedule(bad)
    assert read_schedules() == ()


def test_a_file_that_cannot_be_read_is_told_and_kept(folder: Path) -> None:
    add_schedule(wanted(folder))
    schedule_book.schedules_file().write_text("{")
    with pytest.raises(StoreError):
        take_due(NOW)
    assert schedule_book.schedules_file().read_text() == "{"


def test_the_zone_of_a_person_is_that_of_tz_or_of_the_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert own_zone() == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "Nowhere/City")
    assert schedule_book.is_zone(own_zone())


def test_what_a_script_reads_says_what_is_next_and_what_was_last(folder: Path) -> None:
    add_schedule(wanted(folder, mode="plan"))
    take_due(NOW + 31 * MINUTE)
    (row,) = schedule_rows()
    assert (row.when, row.mode, row.last_due, row.last_session) == ("every 30 minutes", "plan", NOW + 30 * MINUTE, "")
    assert (
        row.last_problem == ""
        if time.time() < NOW
        else "it is not known whether its session began, as the server was ended meanwhile"
    )


def _take(home: str, moments: Sequence[float]) -> list[float]:
    import os

    os.environ["TREADLE_HOME"] = home
    return [run.due for moment in moments for _, run in take_due(moment)]


def test_of_many_servers_on_one_folder_one_runs_each(folder: Path, tmp_path: Path) -> None:
    add_schedule(wanted(folder, "every 1 minute"))
    moments = [NOW + number * MINUTE + 5 for number in range(1, 41)]
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as servers:
        found = list(servers.map(_take, [str(tmp_path / "home")] * 4, [moments] * 4))
    due = [one for taken in found for one in taken]
    assert len(due) == len(set(due))
    assert read_schedules()[0].missed + len(due) == 40


async def _until_run(runs: int) -> Schedule:
    while True:
        (one,) = await asyncio.to_thread(read_schedules)
        if sum(bool(run.session or run.problem) for run in one.runs) >= runs:
            return one
        await asyncio.sleep(0.05)


async def test_two_servers_begin_one_session_with_its_limit(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    one = wanted(folder, created=time.time() - 1_800.0 + 0.3, model=f"scripted/{script}", mode="plan")
    add_schedule(one)
    said: list[str] = []
    servers = [asyncio.create_task(run_schedules(said.append)) for _ in range(2)]
    done = await _until_run(1)
    for server in servers:
        server.cancel()
    await asyncio.gather(*servers, return_exceptions=True)
    (run,) = done.runs
    assert (run.problem, said) == ("", [])
    assert f"session {run.session}" in past_words(done, stopped_runs((done,)))
    store = open_store()
    try:
        while run.session in store.leased():
            await asyncio.sleep(0.05)
        (row,) = store.sessions()
        started = next(iter(store.read(row.id))).data
        assert isinstance(started, SessionStarted)
    finally:
        store.close()
    assert (row.id, row.workspace) == (run.session, str(folder))
    assert (started.limits.session.cost, started.mode) == (0.5, "plan")


async def test_what_keeps_a_run_from_its_session_is_told(folder: Path) -> None:
    add_schedule(wanted(folder / "gone", created=time.time() - 1_799.9))
    said: list[str] = []
    server = asyncio.create_task(run_schedules(said.append))
    done = await _until_run(1)
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)
    assert done.runs[0].problem == f"there is no folder {folder / 'gone'} any more"
    assert said == [f"The schedule {done.id} (every 30 minutes) was due: {done.runs[0].problem}"]


async def test_a_run_is_left_out_while_the_session_before_works(folder: Path) -> None:
    add_schedule(wanted(folder, created=time.time() - 1_799.9))
    store = open_store()
    row = SessionRow(id="s-1", workspace=str(folder), model="a/b", title="", created_at=1, updated_at=1, events=0)
    await store.create(row)
    held = "INSERT INTO leases (session_id, owner, beat) VALUES (?, ?, ?)"
    await store.write(lambda connection: connection.execute(held, ("s-1", this_process(), time.time())))
    with schedule_book._changing() as all_of_them:
        all_of_them[0] = replace(all_of_them[0], runs=(ScheduledRun(due=1.0, session="s-1"),))
    server = asyncio.create_task(run_schedules(lambda _: None))
    done = await _until_run(2)
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)
    store.close()
    assert done.runs[1].problem == "left out: its session s-1 still works"


def test_a_schedule_that_cannot_be_read_here_is_named_and_keeps_no_other_one_from_running(folder: Path) -> None:
    good = add_schedule(wanted(folder))
    bad = (
        replace(good, id="b1", zone="Mars/Olympus", last_missed=NOW, missed=1),
        replace(good, id="b2", when="every blue 9:00"),
    )
    with schedule_book._changing() as all_of_them:
        all_of_them[:0] = bad
    ((schedule, _),) = take_due(NOW + 31 * MINUTE)
    assert schedule.id == good.id
    text = schedules_text(read_schedules())
    assert "never due: this computer knows no time zone 'Mars/Olympus'" in text
    assert "never due: 'every blue 9:00' is no time for a schedule" in text


async def test_a_run_that_begins_while_the_server_ends_is_noted(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    add_schedule(wanted(folder, created=time.time() - 1_799.9, model=f"scripted/{script}"))
    server = asyncio.create_task(run_schedules(lambda _: None))
    while not (await asyncio.to_thread(read_schedules))[0].runs:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    server.cancel()
    await asyncio.gather(server, return_exceptions=True)
    (run,) = read_schedules()[0].runs
    assert run.session
    store = open_store()
    try:
        while run.session in store.leased():
            await asyncio.sleep(0.05)
    finally:
        store.close()


@pytest.mark.parametrize("late", [0, 5, 9, 11, 29])
@pytest.mark.parametrize("runs", range(1, 5))
def test_the_last_run_that_was_missed_is_named_whether_the_newest_begins_or_not(
    folder: Path, runs: int, late: int
) -> None:
    add_schedule(wanted(folder))
    begun = take_due(NOW + (30 * runs + late) * MINUTE + 1)
    begins = late * MINUTE < LATE
    missed = runs - begins
    (kept,) = read_schedules()
    assert (len(begun), kept.missed) == (begins, missed)
    assert kept.last_missed == (NOW + 30 * missed * MINUTE if missed else 0.0)
    assert "1970" not in schedules_text((kept, replace(kept, id="old", missed=2, last_missed=0.0)))


@pytest.mark.parametrize("late", [5, 20])
def test_of_more_missed_runs_than_are_counted_none_is_named_as_the_last(folder: Path, late: int) -> None:
    add_schedule(wanted(folder))
    begun = take_due(NOW + (30 * 1_500 + late) * MINUTE)
    (kept,) = read_schedules()
    assert (len(begun), kept.missed >= 1_000, kept.last_missed) == (late * MINUTE < LATE, True, 0.0)
    assert "runs missed, " not in schedules_text((kept,))


@pytest.mark.parametrize(("there", "said"), [(True, "session s0 stopped: unfinished"), (False, "session s0")])
async def test_the_list_says_whether_the_session_of_the_last_run_came_to_its_end(
    folder: Path, there: bool, said: str
) -> None:
    add_schedule(wanted(folder))
    ((schedule, run),) = take_due(NOW + 31 * MINUTE)
    schedule_book.note_run(schedule.id, replace(run, session="s0"))
    store = open_store()
    if there:  # else it was deleted
        await store.create(
            SessionRow(id="s0", workspace="/w", model="p/m", title="t", created_at=1, updated_at=1, events=0)
        )
        before = [event("s0", 1)]
        state = fold(before)
        for data in (SetPresence(user_present=True), Prompt(id="p", content=(Text(text="Go."),))):
            state, more, _ = take_whole(state, Event(seq=state.seq + 1, at=2, source=ENGINE, data=data))
            before += more
        await store.append("s0", before, durable=False)
    store.close()
    (kept,) = read_schedules()
    assert past_words(kept, stopped_runs((kept,))).endswith(f": {said}")
    (row,) = schedule_rows()
    assert (row.last_session, row.last_problem) == ("s0", said if there else "")
