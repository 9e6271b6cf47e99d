"""Whole tasks, run by the real program over real HTTP: the final tree, the requests, the log."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import log_of, model
from tests.e2e.samples import NAMES, Sample, sample, tree
from tests.pictures import png
from treadle.app.errors.exits import Exit
from treadle.engine.core.advance import fold
from treadle.engine.core.state import phase
from treadle.protocol.notifications import Phase
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

WIRES = ("anthropic", "chat")
PROTOCOLS = ("native", "xml")
CHANGING = ("execute_command", "replace_in_file", "write_to_file")


async def work(task: Sample, script: Script, folder: Path, *more: str, wire: str, protocol: str) -> Ended:
    """Work a task off in `folder`; every request must have been valid."""
    program = Program(folder / "home")
    project = task.lay_out(folder / "project")
    async with ScriptedServer(script) as server:
        choice = (*model(server, wire), "--tool-protocol", protocol, "--directory", str(project))
        ended = await program.run("-p", task.prompt, *choice, *more)
    assert server.violations == []
    assert len(server.requests) == len(script.turns)
    return ended


def check_own_tests(project: Path) -> None:
    subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=project, check=True, capture_output=True)


def calls(script: Script) -> list[MakeCall]:
    return [item for turn in script.turns for item in turn.items if isinstance(item, MakeCall)]


COMBINATIONS = list(
    zip(NAMES, ("anthropic", "chat", "anthropic", "chat"), ("native", "native", "xml", "xml"), strict=True)
)
ALL = [
    pytest.param(*combination, marks=() if combination in COMBINATIONS else pytest.mark.soak)
    for combination in product(NAMES, WIRES, PROTOCOLS)
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "wire", "protocol"), ALL)
async def test_a_task_is_done_with_exactly_these_changes(tmp_path: Path, name: str, wire: str, protocol: str) -> None:
    task = sample(name)
    ended = await work(task, task.script, tmp_path, "--mode", "full", wire=wire, protocol=protocol)
    assert (ended.code, "Traceback" in ended.err) == (Exit.DONE, False), ended.err
    assert tree(tmp_path / "project") == task.repaired
    check_own_tests(tmp_path / "project")
    events = log_of(tmp_path / "home")
    state = fold(events)
    assert (phase(state), state.turn, state.questions, state.queue) == (Phase.WAITING_FOR_EVENT, None, (), ())
    shown = await Program(tmp_path / "home").run("show", state.session_id)
    assert (shown.code, shown.err) == (Exit.DONE, "")
    done = sum(one.name == "attempt_completion" for one in calls(task.script))
    assert shown.out.count("\n### ") == len(calls(task.script)) - done  # what it says is shown as the answer
    assert f"**Done: {len(task.script.turns)} steps in " in shown.out


@pytest.mark.parametrize(("name", "wire", "protocol"), COMBINATIONS[1::2])
async def test_edits_mode_keeps_the_edits_and_nothing_of_what_commands_changed(
    tmp_path: Path, name: str, wire: str, protocol: str
) -> None:
    task = sample(name)
    ended = await work(task, task.blind, tmp_path, "--mode", "edits", wire=wire, protocol=protocol)
    assert tree(tmp_path / "project") == task.edited
    assert ended.code in (Exit.DONE, Exit.PERMISSION), ended.err
    assert (ended.code == Exit.PERMISSION) == ("denied because nobody was there to approve" in ended.err)


@pytest.mark.parametrize(("name", "wire", "protocol"), COMBINATIONS[::2])
async def test_plan_mode_leaves_the_tree_as_it_was(tmp_path: Path, name: str, wire: str, protocol: str) -> None:
    task = sample(name)
    ended = await work(task, task.blind, tmp_path, "--mode", "plan", wire=wire, protocol=protocol)
    assert (ended.code, "Traceback" in ended.err) == (Exit.DONE, False), ended.err
    assert tree(tmp_path / "project") == task.project
    edits = sum(call.name in CHANGING and call.name != "execute_command" for call in calls(task.script))
    assert edits > 0
    assert sum(line.startswith("! ") for line in ended.err.splitlines()) >= edits


async def test_files_and_images_go_along_with_the_task(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("remember the milk\n")
    (tmp_path / "dot.png").write_bytes(png())
    script = Script(turns=(Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Seen."}),)),))
    async with ScriptedServer(script) as server:
        model = ("--model", "anthropic-compatible/scripted", "--base-url", server.base_url)
        files = ("--file", str(tmp_path / "note.txt"), "-f", str(tmp_path / "dot.png"))
        ended = await Program(tmp_path / "home").run("-p", "Look.", *files, *model, "-C", str(tmp_path))
        first = server.requests[0].body["messages"][0]["content"]
    assert ended.code == 0, ended.err
    assert [block["type"] for block in first if block["type"] != "text"] == ["image"]
    assert any("remember the milk" in block.get("text", "") for block in first)


async def test_a_file_that_cannot_go_along_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    ended = await Program(tmp_path / "home").run("-p", "Look.", "--file", "missing.txt", "-C", str(tmp_path))
    assert ended.code == 78
    assert "missing.txt cannot be attached." in ended.err


async def test_a_secret_of_the_environment_reaches_neither_the_model_nor_the_log_nor_the_screen(tmp_path: Path) -> None:
    secret = "s3cr3t-Value-123456789"
    command = f"printf 'part one {secret[:9]}'; printf '{secret[9:]} done\\n'"
    script = Script(
        turns=(
            Turn(items=(MakeCall(name="execute_command", arguments={"command": command}),)),
            Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Seen."}),)),
        )
    )
    async with ScriptedServer(script) as server:
        flags = ("--model", "anthropic-compatible/scripted", "--base-url", server.base_url, "--mode", "full")
        (tmp_path / "ws").mkdir()
        program = Program(tmp_path / "home", {"MY_SERVICE_TOKEN": secret})
        ended = await program.run("-p", "Run.", *flags, "--output-format", "stream-json", "-C", str(tmp_path / "ws"))
        sent = str(server.requests[1].body["messages"][-1])
    assert ended.code == 0, ended.err
    assert "[hidden: MY_SERVICE_TOKEN] done" in sent
    assert secret not in sent + ended.out + ended.err
    assert all(secret.encode() not in file.read_bytes() for file in (tmp_path / "home").rglob("*") if file.is_file())
