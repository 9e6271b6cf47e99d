"""Commands in the background are listed, read and ended from another process, also after their session is gone."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.e2e.running import Running, model, running
from tests.orphans import command_line, no_orphans
from treadle.providers.scripted.script import MakeCall, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.commands.background_jobs import Job, end_job
from treadle.workspace.commands.meter import descendants
from treadle.workspace.commands.watch_records import WATCHERS_FILE, Armed, write_armed
from treadle.workspace.files.owners import Owner, owner_of

__all__ = ["no_orphans"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")

SECRET = "s3cr3t-Value-123456789"
LINE = "trap '' TERM; cat said.txt; setsid sleep 1000 & sleep 1000; sleep 1000"


@asynccontextmanager
async def session(tmp_path: Path) -> AsyncIterator[tuple[Program, Running]]:
    """A session that has put a command into the background and waits for its model."""
    run = MakeCall(name="execute_command", arguments={"command": LINE, "background": True})
    program = Program(tmp_path / "home", {"MY_TOKEN": SECRET})
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "said.txt").write_text(f"on\033[31m MY_KEY={SECRET}\n")
    async with ScriptedServer(Script(turns=(Turn(items=(run,)), Turn(items=(Wait(seconds=1000),))))) as server:
        flags = (*model(server), "--mode", "full", "-C", str(tmp_path / "ws"))
        async with running(program, "-p", "Work.", *flags) as live:
            await live.until("call_changed", status="finished")
            yield program, live


async def jobs(program: Program, *arguments: str) -> list[dict[str, Any]]:
    """What `treadle jobs --json` says."""
    ended = await program.run("jobs", "--json", *arguments)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


async def test_a_running_command_is_listed_and_read_and_ended_with_everything_it_started(tmp_path: Path) -> None:
    async with session(tmp_path) as (program, live):
        (job,) = await jobs(program)
        assert (job["number"], job["running"], job["state"]) == (1, True, "Running.")
        assert job["command"] == LINE
        assert job["bytes"] == len("on MY_KEY=[hidden: MY_TOKEN]\n")
        shown = await program.run("jobs", "output", job["id"])
        assert (shown.code, shown.out) == (0, "on MY_KEY=[hidden: MY_TOKEN]\n")
        below = [pid for pid in descendants(live.process.pid) if command_line(pid).startswith("sleep")]
        assert len(below) == 2
        killed = await program.run("jobs", "kill", job["id"])
        assert (killed.code, killed.out) == (0, f"Stopped {job['id']} and everything it started.\n")
        assert [pid for pid in below if command_line(pid)] == []
        (job,) = await jobs(program)
        assert (job["running"], job["state"]) == (
            False,
            "Killed by SIGKILL, by a program: the kernel ended none for want of memory.",
        )
        again = await program.run("jobs", "kill", job["id"])
        assert (again.code, "It is not running." in again.err) == (0, True)
        live.send(signal.SIGTERM)
        await live.end()


@pytest.mark.parametrize(
    ("number", "state"),
    [
        (signal.SIGTERM, "Stopped: Treadle stopped it."),
        (signal.SIGKILL, "Stopped when its session was killed."),
    ],
)
async def test_of_a_session_that_is_gone_it_says_what_became_of_the_command(
    tmp_path: Path, number: signal.Signals, state: str
) -> None:
    async with session(tmp_path) as (program, live):
        below = descendants(live.process.pid)
        live.send(number)
        await live.end()
        while any(map(command_line, below)):
            await asyncio.sleep(0.02)
        (job,) = await jobs(program)
    assert (job["running"], job["state"]) == (False, state)
    ended = await program.run("jobs")
    assert state in ended.out
    assert "\x1b" not in ended.out


async def test_an_id_that_nothing_has_is_explained(tmp_path: Path) -> None:
    ended = await Program(tmp_path).run("jobs", "kill", "abcdef-1")
    assert (ended.code, "[job-unknown]" in ended.err) == (1, True)
    assert (await Program(tmp_path).run("jobs")).err == "No command runs in the background.\n"


def test_a_process_that_only_has_the_number_of_a_guard_is_left_alone() -> None:
    me = owner_of(os.getpid())
    other = Owner(me.pid, me.started - 1)
    job = Job(number=1, command=sys.executable, started_at=0, guard=other, owner=me, output="")
    assert (job.runs, end_job(job)) == (False, True)


async def test_a_timer_of_a_running_session_is_listed_and_ended_and_one_of_a_killed_session_is_not(
    tmp_path: Path,
) -> None:
    me, gone = owner_of(os.getpid()), Owner(owner_of(os.getpid()).pid, 1)
    for name, owner in (("20260101-000000-aaaaaa", me), ("20260101-000000-bbbbbb", gone)):
        armed = Armed(id="t1", text=f"Look\033[31m at {name}.", owner=owner, set_at=1, at=2)
        write_armed(tmp_path / "output" / name / WATCHERS_FILE, (armed,))
    program = Program(tmp_path)
    (timer,) = await jobs(program)
    assert (timer["id"], timer["state"], timer["running"]) == ("aaaaaa-t1", "Waiting.", True)
    assert "\033" not in (await program.run("jobs")).out
    ended = await program.run("jobs", "kill", "aaaaaa-t1")
    assert (ended.code, ended.out) == (0, "Ended the timer aaaaaa-t1.\n")
    assert await jobs(program) == []
    assert (await program.run("jobs", "kill", "bbbbbb-t1")).code != 0
