"""What a person reads when something is wrong: what, why, what to do, where the log is; never a trace."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import log_of, model, running
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, Pace, Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

NOWHERE = ("--model", "openai-compatible/x", "--base-url", "http://127.0.0.1:9")
HTML = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>"


def four_lines(ended: Ended) -> dict[str, str]:
    """The four lines at the end of what went to standard error, by their names."""
    assert "Traceback" not in ended.err + ended.out
    found = re.search(
        r"(?:^|\n)treadle: (.+?)(?: \[[a-z-]+\])?\n  why: (.+)\n  fix: (.+)(?:\n  log: (.+))?\n\Z", ended.err
    )
    assert found is not None, ended.err
    assert found[4] is None or Path(found[4]).is_file()
    return dict(zip(("what", "why", "fix", "log"), found.groups(default=""), strict=True))


@dataclass(frozen=True)
class Case:
    """One mistake: the flags and the settings file, and what has to be said about it. `{}` is the test's folder."""

    flags: tuple[str, ...]
    what: str
    why: str
    config: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    code: Exit = Exit.CONFIG


CASES = {
    "no model": Case(("-p", "Hi."), "No model is configured", "no key variable is set"),
    "no key": Case(
        ("-p", "Hi.", "--model", "anthropic/claude-sonnet-5-5"), "No key for Anthropic was found", "ANTHROPIC_API_KEY"
    ),
    "unknown model": Case(
        ("-p", "Hi.", "--model", "anthropic/claude-sonet-5-5"),
        "The model anthropic/claude-sonet-5-5 is not known",
        "anthropic/claude-sonnet-5-5",
    ),
    "no model's name": Case(("-p", "Hi.", "--model", "claude"), "'claude' is not a model name", "a slash"),
    "no base URL": Case(("-p", "Hi.", "--model", "openai-compatible/x"), "needs a base URL", "no address of its own"),
    "no URL": Case(
        ("-p", "Hi.", "--model", "openai-compatible/x", "--base-url", "localhost:9"),
        "'localhost:9' is not a base URL",
        "http://",
    ),
    "no folder": Case(
        ("-p", "Hi.", *NOWHERE, "-C", "{}/nowhere"), "There is no folder {}/nowhere to work in", "does not exist"
    ),
    "no task": Case(("-p", " \n", *NOWHERE), "The task is empty", "-p got no text"),
    "no task on standard input": Case(("-p", "-", *NOWHERE), "The task is empty", "Standard input was empty"),
    "two tasks": Case(("-p", "Hi.", "Ho.", *NOWHERE), "There are two tasks", "'Ho.' follows it"),
    "no terminal at the start": Case(
        ("start", "--model", "openai/nothing"), "needs a terminal", "Standard input or output is not one"
    ),
    "no terminal": Case(("Hi.", *NOWHERE), "needs a terminal", "Standard input or output is not one"),
    "settings that are no TOML": Case(
        ("-p", "Hi."),
        "The settings file {}/home/config.toml is not valid TOML",
        "line 2",
        config='model = "a/b"\nmode =\n',
    ),
    "a wrong setting": Case(
        ("-p", "Hi."),
        "A setting from {}/home/config.toml, line 3, is wrong",
        "mode cannot be 'wild'. It must be one of: plan, ask, edits, auto, full.",
        config='model = "a/b"\n\nmode = "wild"\n',
    ),
    "an unknown setting": Case(
        ("-p", "Hi."), "{}/home/config.toml, line 1, is wrong", "There is no setting modle.", config='modle = "a/b"\n'
    ),
    "a wrong variable": Case(
        ("-p", "Hi."),
        "A setting from the environment variable TREADLE_MODE is wrong",
        "wild",
        extra={"TREADLE_MODE": "wild"},
    ),
    "an unknown session": Case(
        ("-p", "Hi.", "--resume", "2099"),
        "There is no session '2099'",
        "No session has an id or a title",
        code=Exit.FAILED,
    ),
    "nothing to continue": Case(
        ("-p", "Hi.", "--continue"), "There is no session to continue", "No session was started in", code=Exit.FAILED
    ),
    "an unknown session to show": Case(
        ("show", "2099"), "There is no session '2099'", "No session has an id or a title", code=Exit.FAILED
    ),
    "a home that cannot be": Case(
        ("-p", "Hi.", *NOWHERE),
        "The session log /dev/null/sessions.db cannot be opened",
        "File exists",
        extra={"TREADLE_HOME": "/dev/null"},
        code=Exit.FAILED,
    ),
    "a script that is not there": Case(
        ("scripted", "{}/no.toml"), "The script {}/no.toml cannot be read", "No such file"
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_mistake_is_explained_in_four_lines(tmp_path: Path, name: str) -> None:
    case, home = CASES[name], tmp_path / "home"
    if case.config:
        home.mkdir()
        (home / "config.toml").write_text(case.config)
    ended = await Program(home, case.extra).run(
        *(flag.replace("{}", str(tmp_path)) for flag in case.flags), cwd=tmp_path
    )
    said = four_lines(ended)
    assert (ended.code, ended.out) == (case.code, "")
    assert case.what.replace("{}", str(tmp_path)) in said["what"]
    assert case.why in said["why"]


async def test_a_provider_that_is_not_known_is_answered_with_the_nearest(tmp_path: Path) -> None:
    ended = await Program(tmp_path / "home").run("-p", "Hi.", "--model", "antropic/claude", cwd=tmp_path)
    assert ended.code == Exit.CONFIG
    assert "treadle: There is no provider 'antropic'." in ended.err
    assert "'anthropic'" in ended.err


async def test_a_server_that_does_not_answer_is_tried_again_and_ends_with_a_transient_code(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("max_retries = 1\n")
    ended = await Program(home).run("-p", "Hi.", *NOWHERE, cwd=tmp_path)
    said = four_lines(ended)
    assert ended.code == Exit.TRANSIENT
    assert "could not be reached" in said["why"]
    assert "--base-url" in said["fix"]
    assert ended.err.count("Retry 1 of 1 in ") == 1
    assert "\nGo on with: treadle --resume 20" in ended.err


@pytest.mark.parametrize("status", [200, 404])
async def test_a_server_that_answers_with_a_page_is_told_from_the_api(tmp_path: Path, status: int) -> None:
    page = Refuse(status=status, headers={"Content-Type": "text/html"}, body=HTML)
    async with ScriptedServer(Script(turns=(Turn(items=(page,)),))) as server:
        ended = await Program(tmp_path / "home").run("-p", "Hi.", *model(server), cwd=tmp_path)
        said = four_lines(ended)
        assert ended.code == Exit.FAILED
        assert f"the server answered HTML, not the API; check the base URL ({server.base_url})" in said["why"]
        assert len(server.requests) == 1


async def test_a_session_that_is_open_elsewhere_is_busy(tmp_path: Path) -> None:
    slow = Turn(items=(SayText(text="word " * 500),), pace=Pace(chunk=5, delay=0.05))
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(slow,))) as server:
        flags = (*model(server), "--directory", str(tmp_path))
        async with running(program, "-p", "Hi.", *flags) as session:
            await session.until("text_delta")
            ended = await program.run("-p", "Ho.", "--continue", *flags)
            session.send(signal.SIGTERM)
            await session.end()
    said = four_lines(ended)
    assert ended.code == Exit.TRANSIENT
    assert said["what"].endswith("is busy.")
    assert f":{session.process.pid})" in said["why"]


async def test_a_damaged_log_is_set_aside_and_the_next_session_has_a_new_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "sessions.db").write_bytes(b"This was a database once. " * 100)
    ended = await Program(home).run("sessions", cwd=tmp_path)
    (kept,) = home.glob("sessions.db.broken-*")
    assert (ended.code, ended.out) == (Exit.DONE, "")
    assert f"The session log was damaged. The damaged file is kept as {kept}" in ended.err
    again = await Program(home).run("sessions", cwd=tmp_path)
    assert (again.code, again.err) == (Exit.DONE, "No sessions here yet.\n")


LIMITED = (
    "import os, resource, sys;"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2);"
    "os.execv(sys.executable, [sys.executable, '-m', 'treadle', *sys.argv[2:]])"
)


async def test_a_full_disk_ends_the_session_with_all_that_was_logged(tmp_path: Path) -> None:
    home, program = tmp_path / "home", Program(tmp_path / "home")
    project = tmp_path / "project"
    project.mkdir()
    look = MakeCall(name="list_files", arguments={"path": "."})
    turns = tuple(Turn(items=(SayText(text=f"{number} " * 20_000), look)) for number in range(4))
    async with ScriptedServer(Script(turns=(*turns, Turn(items=(SayText(text="Done."),))))) as server:
        flags = (*model(server), "--directory", str(project))
        command = (sys.executable, "-c", LIMITED, str(200_000))
        full = await program.run("-p", "Hi.", *flags, command=command)
        said = four_lines(full)
        assert full.code == Exit.FAILED
        assert said["what"] == f"The session log {home}/sessions.db cannot be written."
        assert "Nothing that was logged is lost" in said["fix"]
        kept = log_of(home)
        assert len(kept) > 4
        ended = await program.run("-p", "", "--continue", *flags)
        assert (ended.code, ended.out) == (Exit.DONE, "Done.\n"), ended.err
        assert log_of(home)[: len(kept)] == kept
    assert server.violations == []


@pytest.mark.parametrize("command", [("show", "2"), ("show", "2", "--events")])
async def test_a_reader_that_leaves_early_ends_the_program_quietly(tmp_path: Path, command: tuple[str, ...]) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="word\n\n" * 20_000),)),))) as server:
        await program.run("-p", "Hi.", *model(server), cwd=tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ended = subprocess.run(
            [*TREADLE, *command], env=program.environment, stdout=write_end, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write_end)
    assert (ended.returncode, ended.stderr) == (Exit.FAILED, b"")


async def test_a_reader_of_the_stream_that_leaves_ends_the_turn_resumably(tmp_path: Path) -> None:
    slow = Turn(items=(SayText(text="word " * 100),), pace=Pace(chunk=5, delay=0.01))
    program = Program(tmp_path / "home")
    async with ScriptedServer(Script(turns=(slow,))) as server:
        flags = (*model(server), "--directory", str(tmp_path))
        async with running(program, "-p", "Hi.", *flags) as session:
            await session.until("text_delta")
            transport = session.process._transport  # type: ignore[attr-defined]
            transport.get_pipe_transport(1).close()
            assert session.process.stderr is not None
            err = (await session.process.stderr.read()).decode()
            assert await session.process.wait() == Exit.FAILED
        assert [line for line in err.splitlines() if not line.startswith("# The context window of")] == []
        ended = await program.run("-p", "", "--continue", *flags)
        assert ended.code == Exit.DONE, ended.err
    assert server.violations == []
