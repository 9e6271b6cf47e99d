"""Whoever reads along may leave: the program ends quietly, with a code that says so, and the session is kept."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import LINE, PATIENCE, log_of, model
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ANSWER = Script(turns=(Turn(items=(SayText(text="It is 42."),)),))
SLOW = Script(turns=(Turn(items=(SayText(text="word " * 200),), pace=Pace(chunk=5, delay=0.02)),))


def shell(redirections: str) -> tuple[str, ...]:
    """The program with its streams as a shell sets them."""
    return ("sh", "-c", f'exec "$0" -m treadle "$@" {redirections}', sys.executable)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "argv",
    [
        ("--version",),
        ("sesions",),
        ("doctor", "--offline"),
        pytest.param(("sessions",), marks=pytest.mark.soak),
        pytest.param(("--help",), marks=pytest.mark.soak),
    ],
)
async def test_closed_streams_change_neither_the_code_nor_the_other_stream(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    program = Program(tmp_path / "home")
    usual = await program.run(*argv, cwd=tmp_path)
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        ended = await program.run(*argv, command=shell(closed), cwd=tmp_path)
        out, err = "" if ">&-" in closed.split() else usual.out, "" if "2>&-" in closed else usual.err
        assert ended == Ended(usual.code, out, err), closed


async def test_nothing_is_written_into_a_file_that_took_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(ANSWER) as server:
        task = ("-p", "What is it?", *model(server), "--directory", str(tmp_path))
        ended = await program.run(*task, command=shell("<&- >&- 2>&-"))
    assert ended == Ended(Exit.DONE, "", "")
    audit = await program.run("audit", "verify")
    assert (audit.code, len(log_of(tmp_path / "home")) > 3) == (Exit.DONE, True), audit.err


@pytest.mark.parametrize(
    "argv",
    [
        ("--help",),
        ("sesions",),
        ("docs", "errors"),
        pytest.param(("sessions",), marks=pytest.mark.soak),
        pytest.param(("help", "policy"), marks=pytest.mark.soak),
    ],
)
async def test_a_reader_that_has_left_ends_no_command_with_a_trace(tmp_path: Path, argv: tuple[str, ...]) -> None:
    program = Program(tmp_path / "home")
    usual = await program.run(*argv, cwd=tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = await asyncio.create_subprocess_exec(
            *TREADLE, *argv, env=program.environment, stdout=write_end, stderr=write_end, cwd=tmp_path
        )
        assert await process.wait() == (usual.code or Exit.FAILED)
    finally:
        os.close(write_end)


async def test_a_full_disk_behind_the_output_is_named(tmp_path: Path) -> None:
    ended = await Program(tmp_path / "home").run("--help", command=shell(">/dev/full"))
    assert ended.code == Exit.FAILED
    assert ended.err.startswith("treadle: The output cannot be written.\n  why: [Errno 28]")


@pytest.mark.parametrize("output", ["text", pytest.param("json", marks=pytest.mark.soak), "stream-json"])
async def test_an_answer_that_cannot_be_written_is_named_and_a_reader_that_left_is_not(
    tmp_path: Path, output: str
) -> None:
    program = Program(tmp_path / "home", {"PYTHONUNBUFFERED": ""})  # what is held back fails once more
    async with ScriptedServer(ANSWER) as server:
        task = ("-p", "What?", *model(server), "--directory", str(tmp_path), "--output-format", output)
        full = await program.run(*task, command=shell(">/dev/full"))
        left = await program.run(*task, command=("bash", "-c", 'exec "$0" -m treadle "$@" > >(:)', sys.executable))
    assert full.code == left.code == Exit.FAILED
    assert "treadle: The output cannot be written.\n  why: [Errno 28]" in full.err
    assert "treadle: " not in left.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_reader_that_leaves_in_the_middle_of_the_answer_is_a_failure(
    tmp_path: Path, output: str, unbuffered: str
) -> None:
    program = Program(tmp_path / "home", {"PYTHONUNBUFFERED": unbuffered})
    long = Script(turns=(Turn(items=(SayText(text="word " * 60_000),)),))
    async with ScriptedServer(long) as server:
        task = ("-p", "What?", *model(server), "--directory", str(tmp_path), "--output-format", output)
        process = await asyncio.create_subprocess_exec(
            *TREADLE, *task, env=program.environment, stdout=subprocess.PIPE, limit=1_000
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readexactly(100)
            process.stdout._transport.close()  # type: ignore[attr-defined]
            assert await process.wait() == Exit.FAILED


@pytest.mark.parametrize(
    ("shell_line", "state"),
    [
        ('exec "$0" -m treadle "$@"', "stopped"),
        ('trap \'\' HUP; exec "$0" -m treadle "$@"', "done"),  # only its streams say that the terminal is gone
    ],
)
async def test_a_closed_terminal_is_a_hangup_and_keeps_the_session(tmp_path: Path, shell_line: str, state: str) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(SLOW) as server:
        task = ("-p", "Go on.", *model(server), "--directory", str(tmp_path))
        async with on_terminal(program, *task, command=("sh", "-c", shell_line, sys.executable)) as terminal:
            await terminal.until_shown("# session")
            while server.requests == []:
                await asyncio.sleep(0.01)
            terminal.close()
            assert await terminal.ended() == Exit.HANGUP
        listed = await program.run("sessions", "--json", cwd=tmp_path)
        session = json.loads(listed.out)
        assert (session["title"], session["state"]) == ("Go on.", state)
        ended = await program.run("-p", "", "--resume", session["id"], *model(server))
    assert (ended.code, ended.out.count("word")) == (Exit.DONE, 200 if state == "stopped" else 0), ended.err


@pytest.mark.parametrize("shell_line", ['exec "$0" -m treadle "$@"', 'trap \'\' HUP; exec "$0" -m treadle "$@"'])
async def test_a_closed_terminal_ends_an_interactive_session_as_a_hangup(tmp_path: Path, shell_line: str) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(SLOW) as server:
        command = ("sh", "-c", shell_line, sys.executable)
        async with on_terminal(program, "go on and on", *model(server), command=command) as terminal:
            await terminal.until_shown("word word")
            terminal.close()
            assert await terminal.ended() == Exit.HANGUP
    (session,) = map(json.loads, (await program.run("sessions", "--json", cwd=tmp_path)).out.splitlines())
    assert (session["title"], session["state"], session["ended"]) == ("go on and on", "stopped", "unfinished")


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_every_signal_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(SLOW) as server:
        process = await program.start("-p", "Go on.", *model(server), "--directory", str(tmp_path), limit=LINE)
        while server.requests == []:
            await asyncio.sleep(0.01)
        process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            _, err = await process.communicate()
    assert process.returncode == 128 + number
    assert err.decode().count("\nGo on with: treadle --resume 20") == 1


async def test_a_task_under_nohup_is_worked_off_when_the_terminal_hangs_up(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    command = ("sh", "-c", 'trap "" HUP; exec "$0" -m treadle "$@"', sys.executable)
    quick = Script(turns=(Turn(items=(SayText(text="word " * 40),), pace=Pace(chunk=5, delay=0.02)),))
    async with ScriptedServer(quick) as server:
        process = await program.start("-p", "Go.", *model(server), "--directory", str(tmp_path), command=command)
        while server.requests == []:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        out, err = await process.communicate()
    assert (process.returncode, out.decode().count("word")) == (Exit.DONE, 40), err


def test_the_streams_take_every_character() -> None:
    code = "import treadle.cli.streams as s; s.open_streams(); print('caf\\udce9 \\u2026')"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"caf\\udce9 \\u2026\n")
