"""Diagnostics, from the settings to what the model reads: real ruff as linter and as server, and servers that fail."""

import sys
from pathlib import Path

import msgspec

from tests.e2e.process import Ended, Program
from tests.e2e.running import left_of, model, processes, running
from tests.needed import needs, ruff
from tests.workspace.diagnostics import servers
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.trusted_folders import TrustStore

RUFF = ruff()
LINTER = f'command = "{RUFF} check --isolated --no-cache --select F --output-format concise {{files}}"'
PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
"""One that a sandbox shows, wherever the tests' own lies."""


def write(path: str, content: str) -> Turn:
    return Turn(items=(MakeCall(name="write_to_file", arguments={"path": path, "content": content}),))


DONE = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),))


def trust(folder: Path) -> None:
    """Say yes to the workspace of `folder`, for good."""
    store = TrustStore(folder / "home" / "trust")
    store.grant(store.read(folder / "ws"))


async def work(
    folder: Path, settings: str, *turns: Turn, mode: str = "edits", trusted: bool = True
) -> tuple[Ended, list[str]]:
    """Run a task with these settings; gives the results that the model read, one for each turn but the last."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "config.toml").write_text(settings)
    (folder / "ws").mkdir(exist_ok=True)
    if trusted:
        trust(folder)
    async with ScriptedServer(Script(turns=(*turns, DONE))) as server:
        ended = await Program(folder / "home").run(
            "-p", "Go.", *model(server), "--mode", mode, "-C", str(folder / "ws"), "--output-format", "stream-json"
        )
    records = [msgspec.json.decode(line) for line in ended.out.splitlines()]
    results = [record["result"]["content"] for record in records if record.get("status") == "finished"]
    return ended, ["".join(block["text"] for block in content) for content in results][:-1]


@needs("ruff")
async def test_a_linter_and_a_server_tell_the_model_what_its_edit_brought(tmp_path: Path) -> None:
    settings = (
        f'[diagnostics.lint]\n{LINTER}\nfiles = ["*.py"]\nseconds = 60\n'
        f'[diagnostics.server]\nserver = ["{RUFF}", "server"]\nfiles = ["*.py"]\nseconds = 60\n'
        "options = { settings = { lint = { select = ['F'] } } }\n"
    )
    edit = {"path": "a.py", "diff": "------- SEARCH\nprint(x)\n=======\nprint(x)\nprint(y)\n+++++++ REPLACE"}
    ended, (first, second, third) = await work(
        tmp_path,
        settings,
        write("a.py", "import os\nprint(x)\n"),
        Turn(items=(MakeCall(name="replace_in_file", arguments=edit),)),
        write("notes.txt", "import os\n"),
    )
    assert ended.code == Exit.DONE, ended.err
    head = "\n\nThis edit brought new problems. Fix them now, unless a later step will:\n"
    assert first.partition(head)[2].splitlines() == [
        "a.py:1:8: error: F401 [*] `os` imported but unused (lint)",
        "a.py:2:7: error: F821 Undefined name `x` (lint)",
        "a.py:2:7: error: Undefined name `x` (Ruff F821)",
        "a.py:1:8: warning: `os` imported but unused help: Remove unused import: `os` (Ruff F401)",
    ]
    assert second.partition(head)[2].splitlines() == [
        "a.py:3:7: error: F821 Undefined name `y` (lint)",
        "a.py:3:7: error: Undefined name `y` (Ruff F821)",
    ]
    assert third == "Created notes.txt (+1 -0 lines)."
    assert left_of(f"{RUFF} server") == []


async def test_a_source_that_does_not_work_is_told_once_and_costs_no_edit(tmp_path: Path) -> None:
    settings = (
        f'[diagnostics.dies]\nserver = ["{sys.executable}", "{servers.__file__}", "die"]\nfiles = ["*.py"]\n'
        '[diagnostics.missing]\ncommand = "no-such-linter {files}"\nfiles = ["*.py"]\n'
    )
    (tmp_path / "ws").mkdir()
    read = Turn(items=(MakeCall(name="read_file", arguments={"path": "a.py"}),))
    (tmp_path / "ws" / "a.py").write_text("1\n")
    ended, results = await work(tmp_path, settings, read, *(write("a.py", f"{number}\n") for number in range(2, 7)))
    results = results[1:]
    assert ended.code == Exit.DONE, ended.err
    assert results[0].startswith("Replaced a.py")
    assert "[Diagnostics could not run: dies has ended; missing did not work: Exit status 127." in results[0]
    assert results[1:] == ["Replaced a.py (+1 -1 lines)."] * 4


@needs("sandbox")
async def test_in_auto_mode_they_run_in_the_sandbox(tmp_path: Path) -> None:
    script = tmp_path / "ws" / "lint.py"
    script.parent.mkdir()
    script.write_text(
        "import pathlib, sys\n"
        "def written(path):\n"
        "    try: pathlib.Path(path).write_text('x')\n"
        "    except OSError: return 'no'\n"
        "    return 'yes'\n"
        "written('../mark.txt')\n"
        "print('a.py:1: inside', written('mark.txt'))\n"
    )
    (tmp_path / "ws" / "servers.py").write_text(Path(servers.__file__).read_text())
    settings = (
        f'[diagnostics.lint]\ncommand = "{PYTHON} lint.py {{files}}"\nfiles = ["*.py"]\nseconds = 60\n'
        f'[diagnostics.server]\nserver = ["{PYTHON}", "servers.py", "write"]\nfiles = ["*.py"]\nseconds = 60\n'
    )
    ended, (result,) = await work(tmp_path, settings, write("a.py", "bad\n"), mode="auto")
    assert ended.code == Exit.DONE, ended.err
    assert "a.py:1: error: inside no (lint)" in result
    assert "a.py:1:1: error: inside no (server 7)" in result
    assert not (tmp_path / "mark.txt").exists()
    assert left_of("servers.py write") == []


async def test_nothing_runs_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    settings = '[diagnostics.lint]\ncommand = "touch ran; echo a.py:1: odd"\nfiles = ["*.py"]\n'
    ended, (result,) = await work(tmp_path, settings, write("a.py", "1\n"), trusted=False)
    assert (ended.code, result) == (Exit.DONE, "Created a.py (+1 -0 lines).")
    assert not (tmp_path / "ws" / "ran").exists()


async def test_a_server_ends_when_treadle_is_killed(tmp_path: Path) -> None:
    marker = f"gate={tmp_path}"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        f'[diagnostics.s]\nserver = ["{PYTHON}", "servers.py", "{marker}"]\nfiles = ["*.py"]\nseconds = 60\n'
    )
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "servers.py").write_text(Path(servers.__file__).read_text())
    trust(tmp_path)
    script = Script(turns=(write("a.py", "bad\n"), Turn(items=(Wait(seconds=60),))))
    async with ScriptedServer(script) as server:
        flags = (*model(server), "--mode", "edits", "-C", str(tmp_path / "ws"))
        async with running(Program(tmp_path / "home"), "-p", "Go.", *flags) as treadle:
            await treadle.until("call_changed", status="finished")
            assert processes(marker)
            treadle.process.kill()
            await treadle.process.wait()
            while processes(marker):
                pass


async def test_a_setting_that_cannot_be_used_is_told_before_anything_starts(tmp_path: Path) -> None:
    ended, _ = await work(tmp_path, '[diagnostics.x]\ncommand = "lint"\n')
    assert ended.code == Exit.CONFIG
    assert "The setting diagnostics.x cannot be used." in ended.err
