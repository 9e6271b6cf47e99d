"""What git ignores comes back with `/undo`, whoever changed it: an edit, a real run, or a trial that was applied."""

import asyncio
import signal
import subprocess
from pathlib import Path

import pytest

from tests.app.rehearsal import rehearse, run
from tests.e2e.process import Program
from tests.e2e.test_checkpoints import MODEL, headless, script
from tests.e2e.test_context import call
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.errors.exits import Exit
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.scripted_server import ScriptedServer

GONE = "python3 -c \"import os; os.unlink('data/db')\""
LINE = f"printf 'after\\n' > app.log; {GONE}; mkdir -p data/new build; echo x > data/new/y; echo x > build/out"
PLAIN = LINE.replace(GONE, "rm data/db")
BEFORE = {".gitignore": "*.log\ndata/\nbuild/\n", "app.log": "before\n", "data/db": "rows\n", "data/keep": "kept\n"}


def lay_out(folder: Path) -> tuple[Program, Path]:
    work = folder / "work"
    (work / "data").mkdir(parents=True)
    (folder / "home").mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    for name, text in BEFORE.items():
        (work / name).write_text(text)
    (work / "data" / "db").chmod(0o600)
    return Program(folder / "home"), work


def tree(work: Path) -> dict[str, str]:
    files = (one for one in work.rglob("*") if one.is_file() and ".git" not in one.parts and "build" not in one.parts)
    return {str(one.relative_to(work)): one.read_text() for one in files}


CHANGED = [
    (Mode.ASK, OptionKind.ALLOW_ONCE),
    (Mode.ASK, OptionKind.RUN_FOR_REAL),
    (Mode.EDITS, OptionKind.ALLOW_ONCE),
    (Mode.EDITS, OptionKind.RUN_FOR_REAL),
    (Mode.AUTO, OptionKind.ALLOW_ONCE),
    (Mode.FULL, OptionKind.ALLOW_ONCE),
]
WAYS = ("/undo", "restore")


@pytest.mark.parametrize(
    ("mode", "option", "way"),
    [  # each mode and answer with one of the ways, both ways in turns; all pairs in the soak
        pytest.param(*changed, way, marks=pytest.mark.soak if (at + at // 2 + number) % 2 else ())
        for at, changed in enumerate(CHANGED)
        for number, way in enumerate(WAYS)
    ],
)
async def test_undo_restores_what_git_ignores_and_says_what_it_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, option: OptionKind, way: str
) -> None:
    bubblewrap()
    program, work = lay_out(tmp_path)
    monkeypatch.setenv("TREADLE_HOME", str(program.home))
    found = await rehearse(work, [run(LINE)], mode=mode, present=True, option=option)
    assert found.results[0].outcome is Outcome.OK, found.texts[0]
    assert tree(work) == {
        ".gitignore": BEFORE[".gitignore"],
        "app.log": "after\n",
        "data/keep": "kept\n",
        "data/new/y": "x\n",
    }
    async with ScriptedServer(script()) as server:
        if way == "/undo":
            done = await headless(program, work, server, "/undo", "--continue")
            assert "2 files restored, 1 file deleted." in done.err, done.err
        else:
            done = await program.run("checkpoint", "restore", "1", "--yes", cwd=work)
            assert "2 files restored, 1 file deleted." in done.out + done.err, done
    assert (done.code, tree(work)) == (Exit.DONE, BEFORE)
    assert (work / "data" / "db").stat().st_mode & 0o777 == 0o600
    assert (work / "build" / "out").exists() or option is OptionKind.ALLOW_ONCE, "what builds make stays"


async def test_what_is_too_much_is_told_when_it_is_met(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    for number in range(5_001):
        (work / "data" / str(number)).touch()
    async with ScriptedServer(script((call("execute_command", command=PLAIN),))) as server:
        done = await headless(program, work, server, "Go.")
        assert "data is in no checkpoint, and /undo does not restore it." in done.err, done.err
        undone = await headless(program, work, server, "/undo", "--continue")
    assert (undone.code, (work / "app.log").read_text()) == (Exit.DONE, "before\n")
    assert not (work / "data" / "db").exists()


async def test_a_kill_in_the_middle_of_the_command_loses_no_bytes(tmp_path: Path) -> None:
    # The server of the model runs in this process, so that nothing here may block.
    program, work = lay_out(tmp_path)
    line = f"{PLAIN}; echo there > there; sleep 60"
    async with ScriptedServer(script((call("execute_command", command=line),))) as server:
        arguments = ("--model", MODEL, "--base-url", server.base_url, "--mode", "full", "--trust")
        running = await program.start("-p", "Go.", *arguments, cwd=work)
        while not (work / "there").exists() and running.returncode is None:
            await asyncio.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        await running.wait()
    back = await program.run("checkpoint", "restore", "1", "--yes", cwd=work)
    # Nobody knows who changed what when the program was killed: it is named, and its bytes are in the checkpoint.
    assert "data/db" in back.out + back.err
    shown = await program.run("checkpoint", "diff", "1", cwd=work)
    assert all(text in shown.out for text in ("-before", "-rows")), shown.out
