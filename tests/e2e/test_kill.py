"""kill -9 at every boundary of the run, then resume: the same tree, nothing twice unsaid, valid requests only."""

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Program
from treadle.app import demo
from treadle.protocol.events import Event
from treadle.providers.scripted.script import MakeCall, Match, SayText, Script, Texts, Turn
from treadle.providers.scripted.server import ScriptedServer
from treadle.store.sqlite import Store

DRIVER = (sys.executable, str(Path(__file__).with_name("kill_driver.py")))
SHARDS = 4

RUN = "echo run >> runs.log && python3 -m unittest 2>&1 | tail -n 1"
DIFF = """------- SEARCH
        result[booking.category] = booking.amount
=======
        result[booking.category] = result.get(booking.category, Decimal(0)) + booking.amount
+++++++ REPLACE
"""


def result(*texts: str, without: tuple[str, ...] = ()) -> Match:
    return Match(last_result=Texts(contains=texts, not_contains=without))


SCRIPT = Script(
    turns=(
        Turn(when=result("Outcome unknown"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
        Turn(
            when=Match(assistant_messages=0),
            items=(SayText(text="Let me look."), MakeCall(name="read_file", arguments={"path": "ledger.py"})),
        ),
        Turn(
            when=result("def totals", without=("Saved",)),
            items=(MakeCall(name="replace_in_file", arguments={"path": "ledger.py", "diff": DIFF}),),
        ),
        Turn(when=result("Saved ledger.py"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
        Turn(when=result("had taken effect"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
        Turn(when=result("OK"), items=(MakeCall(name="attempt_completion", arguments={"result": "Mended."}),)),
    )
)


def prepare(folder: Path) -> Path:
    shutil.copytree(Path(demo.__file__).parent / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def flags(server: ScriptedServer, workspace: Path) -> tuple[str, ...]:
    model = ("--model", "anthropic-compatible/scripted", "--base-url", server.base_url)
    return (*model, "--mode", "full", "--directory", str(workspace))


def events_of(home: Path) -> list[Event]:
    store = Store(home / "sessions.db")
    try:
        (row,) = store.sessions()
        return store.read(row.id)
    finally:
        store.close()


async def boundaries(tmp_path: Path) -> int:
    """Run once without a kill and count the commits."""
    async with ScriptedServer(SCRIPT) as server:
        program, workspace = Program(tmp_path / "home"), prepare(tmp_path / "ledger")
        count = tmp_path / "count"
        command = (*DRIVER, "count", str(count))
        ended = await program.run("-p", "Mend it.", *flags(server, workspace), command=command)
    assert ended.code == 0, ended.err
    assert not server.violations
    check_tree(workspace)
    return int(count.read_text())


def check_tree(workspace: Path) -> None:
    assert "result.get(booking.category, Decimal(0)) + booking.amount" in (workspace / "ledger.py").read_text()
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=workspace, check=True, capture_output=True)


async def kill_and_resume(folder: Path, when: str, number: int) -> None:
    async with ScriptedServer(SCRIPT) as server:
        program, workspace = Program(folder / "home"), prepare(folder / "ledger")
        command = (*DRIVER, when, str(number))
        killed = await program.run("-p", "Mend it.", *flags(server, workspace), command=command)
        if killed.code == 0:  # events that come together are committed together: this run had fewer commits
            check_tree(workspace)
            return
        assert killed.code == -signal.SIGKILL, killed.err
        events = events_of(folder / "home")
        started = any(event.data.__class__.__name__ == "Prompt" for event in events)
        session = ("--continue",) if events else ()
        ended = await program.run("-p", "" if started else "Mend it.", *session, *flags(server, workspace))
    assert ended.code == 0, (when, number, ended.err)
    assert not server.violations, (when, number, server.violations)
    check_tree(workspace)
    runs = (workspace / "runs.log").read_text().count("run")
    said = any("Outcome unknown" in str(received.body) for received in server.requests)
    assert runs == 1 or (runs == 2 and said), (when, number, runs, ended.err)
    shutil.rmtree(folder)


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_kill_at_any_boundary_loses_nothing_and_repeats_nothing_unsaid(tmp_path: Path, shard: int) -> None:
    total = await boundaries(tmp_path / "first")
    assert total > 12
    points = [(when, number) for number in range(1, total + 1) for when in ("before", "after")]
    for index, (when, number) in enumerate(points):
        if index % SHARDS == shard:
            await kill_and_resume(tmp_path / f"{when}-{number}", when, number)
            await asyncio.sleep(0)
