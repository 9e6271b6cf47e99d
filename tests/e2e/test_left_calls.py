"""What a killed process had reserved: everybody who looks at the day finds the same estimate, also when it goes on."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.e2e.batches import SETTINGS, Place, Solver, children, tasks
from tests.e2e.process import Program
from tests.rehearsal.fleets import until
from treadle.app.reports.budget_report import budget_report
from treadle.app.session.parts import clock
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.spent import spent_in_run
from treadle.store.sqlite import Store

WORST = 0.04
"""US dollars; what a call can cost at most is more, what this one has cost is less than half."""
DAY = "[budget]\nday_cost = 1.0\n"
T = TypeVar("T")
Kill = Callable[[Place, ScriptedServer], Coroutine[Any, Any, None]]


def single(place: Place, address: str, *more: str) -> tuple[str, ...]:
    model = ("--model", "anthropic-compatible/scripted", "--base-url", address, "--mode", "full")
    return ("-p", "Fix calc.py.", "-C", str(place.folder / "project"), *model, *more)


async def killed_alone(place: Place, server: ScriptedServer) -> None:
    process = await place.program.start(*single(place, server.base_url))
    await _in_call(server)
    process.kill()
    await process.communicate()


async def killed_in_batch(place: Place, server: ScriptedServer) -> None:
    process = await place.program.start(*place.words(server.base_url, "--max-cost", "5", workers=1))
    await _in_call(server)
    os.kill(process.pid, signal.SIGSTOP)  # neither sees the other end, which it would write down
    for pid in children(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    await process.communicate()
    await until(lambda: not looked_up(place, Store.leased))


async def _in_call(server: ScriptedServer) -> None:
    while not server.requests:
        await asyncio.sleep(0.02)


def looked_up(place: Place, look: Callable[[Store], T]) -> T:
    store = Store(place.program.home / "sessions.db")
    try:
        return look(store)
    finally:
        store.close()


def in_run(place: Place, session: str) -> float:
    return looked_up(place, lambda store: spent_in_run(store, session.partition(".")[0]).cost)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    place.prepare(tasks(1))
    (place.program.home / "config.toml").write_text(f"{DAY}{SETTINGS}")
    monkeypatch.setenv("TREADLE_HOME", str(place.program.home))
    return place


def today() -> float:
    """What the page says of the day."""
    report = budget_report(clock())
    (line,) = [one for one in report.lines if one.key == "budget.day_cost"]
    assert line.used == report.cost
    return report.cost


@pytest.mark.parametrize("kill", [killed_alone, killed_in_batch])
@pytest.mark.parametrize("then", ["read", "taken up", "archived", "deleted", "gone back in", "another"])
async def test_what_a_killed_process_reserved_is_the_same_estimate_whoever_looks(
    place: Place, kill: Kill, then: str
) -> None:
    async with ScriptedServer(Solver(seconds=30)) as server:
        await kill(place, server)
    ((row, worst),) = looked_up(place, lambda store: store.query("SELECT session_id, cost FROM reservations"))
    assert worst > WORST
    about = 0.0 if then == "another" else today()  # who reserves is the first one who looks then
    assert about < WORST / 2
    assert about > 0 or then == "another"
    charged = in_run(place, row)
    program = place.program
    match then:
        case "taken up":
            async with ScriptedServer(Solver()) as server:
                again = place.words(server.base_url, "--max-cost", "5") if kill is killed_in_batch else ()
                ended = await program.run(*(again or single(place, server.base_url, "--continue")))
                assert ended.code == 0, ended.err
                about += 0.01 * len(server.requests)
                charged += 0.01 * len(server.requests)
        case "another":
            (program.home / "config.toml").write_text(f"{DAY.replace('1.0', str(worst + 0.03))}{SETTINGS}")
            async with ScriptedServer(Solver()) as server:
                ended = await program.run(*single(place, server.base_url))
                assert ended.code == 0, ended.err
                about = today()
                assert 0 < about - 0.01 * len(server.requests) < WORST / 2
        case "archived" | "deleted":
            await run(program, *(("archive",) if then == "archived" else ("delete", "--yes")), row)
        case "gone back in":
            ended = await program.run("checkpoint", "restore", "1", row, "--yes")
            assert "There is no checkpoint 1." in ended.err, "its turn is ended first, at a price that nobody knows"
        case _:
            pass
    assert today() == pytest.approx(about)
    if kill is killed_in_batch:
        assert in_run(place, row) == pytest.approx(charged), "the limit of a run holds whatever is killed"
        assert charged > worst - 1e-9


async def run(program: Program, *words: str) -> None:
    ended = await program.run(*words)
    assert ended.code == 0, ended.err
