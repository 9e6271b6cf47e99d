"""Schedules of users of a service: a run is a session of their page, once, whoever is there when it is due."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from tests.e2e.running import PATIENCE
from tests.web.service.serving import Service, service_here
from treadle.app.schedules.schedule_book import Schedule, add_schedule, read_schedules
from treadle.providers.scripted.script import SayText, Turn
from treadle.web.service.due_times import DueTimes

TALK = tuple(Turn(items=(SayText(text="Seen."),)) for _ in range(20))
HALF_AN_HOUR = 1_800.0


def schedule(service: Service, user: str, patch: pytest.MonkeyPatch, *, due: float) -> Schedule:
    """Add a schedule that is due so many seconds from now."""
    folder = service.data / "users" / user
    patch.setenv("TREADLE_HOME", str(folder / "treadle"))
    begun = time.time() + due - HALF_AN_HOUR
    wanted = Schedule(
        id="",
        when="every 30 minutes",
        zone="UTC",
        task="Look.",
        folder=str(folder / "projects"),
        max_cost=0.5,
        created=begun,
        handled=begun,
    )
    return add_schedule(wanted)


async def ran(service: Service, user: str, patch: pytest.MonkeyPatch) -> Schedule:
    """Wait until the run of the one schedule of a user has begun, or could not."""
    patch.setenv("TREADLE_HOME", str(service.data / "users" / user / "treadle"))
    async with asyncio.timeout(PATIENCE):
        while True:
            (one,) = read_schedules()
            if one.runs and (one.runs[0].session or one.runs[0].problem):
                return one
            await asyncio.sleep(0.05)


async def told(service: Service, **due: float | None) -> None:
    """Wait until the front knows when something is due."""
    async with asyncio.timeout(PATIENCE):
        while not (file := service.data / "due.json").exists() or msgspec.json.decode(file.read_bytes()) != due:
            await asyncio.sleep(0.05)


async def test_a_run_is_a_session_of_the_page_of_its_user_in_their_queue_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = {"alice": (), "bob": ("--disk-gb", "0.000001")}
    async with service_here(tmp_path, TALK, users=users, begins=False) as service:
        token = await service.secret("metrics")
        for user in users:
            schedule(service, user, monkeypatch, due=0.0)
        await service.begin()
        alice, _ = await asyncio.gather(service.sign_in("alice"), service.sign_in("bob"))
        (run,) = (await ran(service, "alice", monkeypatch)).runs
        assert run.problem == ""
        assert "Look." in await alice.shows(run.session, "Seen.")
        found = await service.metrics(token)
        assert found['treadle_turns_total{user="alice"}'] == 1
        assert run.session in (await alice.get("/sessions")).text
        (run,) = (await ran(service, "bob", monkeypatch)).runs
        assert run.session == ""
        assert "Your folder takes" in run.problem
        log = alice.folder / "treadle" / "treadle.log"
        assert not log.exists() or log.read_text() == ""


async def test_a_run_begins_once_after_a_kill_of_the_service_with_nobody_signed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service_here(tmp_path, TALK, users={"alice": ()}) as service:
        await service.sign_in("alice")
        added = schedule(service, "alice", monkeypatch, due=3.0)
        await told(service, alice=added.next)
        assert service.process is not None
        service.process.kill()
        await service.process.wait()
        others = Service(service.program, service.data, service.flags, tokens=service.tokens)
        try:
            await asyncio.gather(service.begin(), others.begin())
            one = await ran(service, "alice", monkeypatch)
            alice = await service.sign_in("alice")
            await alice.shows(one.runs[0].session, "Seen.")
            assert [run.problem for run in one.runs] == [""]
            assert (one.missed, len(read_schedules()[0].runs)) == (0, 1)
        finally:
            await others.close()


def test_a_process_is_started_at_most_once_a_minute_for_what_is_due(tmp_path: Path) -> None:
    times = DueTimes(tmp_path)
    times.note("alice", 100.0)
    times.note("bob", 300.0)
    times.note("carol", None)
    assert times.over(99.0) == []
    assert times.over(100.0) == ["alice"]
    assert times.over(159.0) == []
    assert times.over(160.0) == ["alice"]
    assert DueTimes(tmp_path).over(400.0) == ["alice", "bob"]
    times.note("alice", None)
    assert DueTimes(tmp_path).over(400.0) == ["bob"]
    (tmp_path / "due.json").write_text("[")
    assert DueTimes(tmp_path).over(400.0) == []
