"""kill -9 at every boundary of the run, then resume: the same tree, nothing twice unsaid, valid requests only."""

import itertools
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Program
from treadle.app import demo
from treadle.protocol.events import Event
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

DRIVER = (sys.executable, str(Path(__file__).with_name("kill_driver.py")))
SHARDS = 12
"""Each takes every twelfth commit, so that none takes long; every third of them is the sample of `make test`."""

RUN = "echo run >> runs.log && python3 -m unittest 2>&1 | tail -n 1"
DIFF = """------- SEARCH
        result[booking.category] = booking.amount
=======
        result[booking.category] = result.get(booking.category, Decimal(0)) + booking.amount
+++++++ REPLACE
"""


def result(*texts: str, without: tuple[str, ...] = ()) -> Expectation:
    return Expectation(last_result=Texts(contains=texts, not_contains=without))


SCRIPT = Script(
    turns=(
        Turn(when=result("Outcome unknown"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(SayText(text="Let me look."), MakeCall(name="read_file", arguments={"path": "ledger.py"})),
        ),
        Turn(
            when=result("def totals", without=("Saved",)),
            items=(MakeCall(name="replace_in_file", arguments={"path": "ledger.py", "diff": DIFF}),),
        ),
        Turn(when=result("Saved ledger.py"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
        Turn(when=result("took effect"), items=(MakeCall(name="execute_command", arguments={"command": RUN}),)),
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
        return list(store.read(row.id))
    finally:
        store.close()


def check_tree(workspace: Path) -> None:
    assert "result.get(booking.category, Decimal(0)) + booking.amount" in (workspace / "ledger.py").read_text()
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=workspace, check=True, capture_output=True)


async def kill_and_resume(folder: Path, when: str, number: int) -> bool:
    """Run, kill and resume; False when the run ended before it came to this commit."""
    async with ScriptedServer(SCRIPT) as server:
        program, workspace = Program(folder / "home"), prepare(folder / "ledger")
        command = (*DRIVER, when, str(number))
        killed = await program.run("-p", "Mend it.", *flags(server, workspace), command=command)
        if killed.code == 0:
            assert not server.violations
            check_tree(workspace)
            return False
        assert killed.code == -signal.SIGKILL, killed.err
        events = events_of(folder / "home")
        started = any(event.data.__class__.__name__ == "Prompt" for event in events)
        again = ("-p", "", "--continue") if started else ("-p", "Mend it.")  # one without a prompt is not continued
        ended = await program.run(*again, *flags(server, workspace))
    assert ended.code == 0, (when, number, ended.err)
    assert not server.violations, (when, number, server.violations)
    check_tree(workspace)
    runs = (workspace / "runs.log").read_text().count("run")
    said = any("Outcome unknown" in str(received.body) for received in server.requests)
    assert runs == 1 or (runs == 2 and said), (when, number, runs, ended.err)
    shutil.rmtree(folder)
    return True


@pytest.mark.parametrize(
    "first",
    [pytest.param(shard, marks=() if shard == 7 else pytest.mark.soak) for shard in range(1, SHARDS + 1)],
)
async def test_a_kill_at_any_boundary_loses_nothing_and_repeats_nothing_unsaid(tmp_path: Path, first: int) -> None:
    for number in itertools.count(first, SHARDS):
        for when in ("before", "after"):
            if not await kill_and_resume(tmp_path / f"{when}-{number}", when, number):
                assert number > SHARDS, "the run had fewer commits than it needs"
                return
