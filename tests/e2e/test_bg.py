"""`treadle --bg`: it says the id, returns, and leaves a process that holds nothing of the one that started it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.in_background import ASKS, SAYS, WORKS, in_background
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, left_of
from tests.person import CTRL_D
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.store.sqlite import Store


async def test_it_prints_the_id_alone_and_the_session_works_to_its_end(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        session = await place.start("What is it?")
        row = await place.until_closed(session)
        assert (row["state"], row["ended"], row["background"], row["title"]) == ("done", None, False, "What is it?")
        shown = await place.run("show", session)
        assert "It is 42." in shown.out
        assert list((place.home / "live").iterdir()) == []


async def test_it_leaves_nothing_open_while_the_session_waits_for_an_answer(tmp_path: Path) -> None:
    """Standard output and error are pipes whose end is awaited, and so is a third one that was handed down."""
    async with in_background(tmp_path, ASKS) as place:
        hears, says = os.pipe()
        process = await asyncio.create_subprocess_exec(
            *TREADLE,
            "--bg",
            "Write it.",
            *place.flags,
            env=place.program.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(says,),
        )
        os.close(says)
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            assert await asyncio.to_thread(os.read, hears, 1) == b""
        os.close(hears)
        session = out.decode().strip()
        row = await place.until_waiting(session)
        assert (row["open"], row["background"]) == (True, True)
        worker = place.worker(session)
        assert (os.getsid(worker), os.getpgid(worker)) == (worker, worker)
        streams = {str(Path(f"/proc/{worker}/fd/{number}").readlink()) for number in range(3)}
        assert streams == {"/dev/null", str(place.home / "treadle.log")}
        text = await place.run("sessions", "--directory", str(place.project))
        assert "waiting for you (background)" in text.out
        assert (await place.run("stop", session)).code == Exit.DONE


@pytest.mark.parametrize("way", ["terminal", "group"])
async def test_it_survives_its_terminal_and_its_group(tmp_path: Path, way: str) -> None:
    async with in_background(tmp_path, ASKS) as place:
        if way == "terminal":
            async with on_terminal(place.program, "--bg", "Write it.", *place.flags) as terminal:
                await terminal.until_shown("It runs in the background. Join it: treadle --attach")
                assert await terminal.ended() == 0
        else:
            shell = await asyncio.create_subprocess_exec(
                "sh",
                "-c",
                '"$@"; kill -HUP 0; kill -KILL 0',
                "sh",
                *TREADLE,
                "--bg",
                "Write it.",
                *place.flags,
                env=place.program.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert await shell.wait() < 0
        (session,) = await place.listed()
        await place.until_waiting(session)
        os.kill(place.worker(session), signal.SIGHUP)
        assert (await place.until_waiting(session))["open"] is True
        assert (await place.run("stop", session)).code == Exit.DONE


@pytest.mark.parametrize("after", [0.02, 0.08, 0.15, 0.25, 0.4])
async def test_a_parent_killed_with_its_group_leaves_the_whole_task_or_nothing(tmp_path: Path, after: float) -> None:
    async with in_background(tmp_path, SAYS) as place:
        parent = await asyncio.create_subprocess_exec(
            *TREADLE,
            "--bg",
            "What is it?",
            *place.flags,
            env=place.program.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        await asyncio.sleep(after)
        with suppress(ProcessLookupError):  # it may just have ended
            if parent.returncode is None:
                os.killpg(parent.pid, signal.SIGKILL)
        await parent.communicate()
        await place.until_gone()
        for row in (await place.listed()).values():
            assert (row["state"], row["open"]) == ("done", False)


async def test_ctrl_c_before_the_id_leaves_no_process(tmp_path: Path) -> None:
    async with in_background(tmp_path, WORKS) as place:
        for after in (0.05, 0.15, 0.3):
            parent = await asyncio.create_subprocess_exec(
                *TREADLE,
                "--bg",
                "What is it?",
                *place.flags,
                env=place.program.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            await asyncio.sleep(after)
            if parent.returncode is None:
                with suppress(ProcessLookupError):  # on a busy machine it has just ended
                    os.killpg(parent.pid, signal.SIGINT)
            out, _ = await parent.communicate()
            if parent.returncode == 0:
                assert (await place.run("stop", out.decode().strip())).code == Exit.DONE
            await place.until_gone()


CANNOT = {
    "no model": (("--bg", "Do it."), Exit.CONFIG, "no-provider"),
    "no folder": (("--bg", "Do it.", "--directory", "/nowhere"), Exit.CONFIG, "workspace-missing"),
    "no task": (("--bg",), Exit.CONFIG, "task-empty"),
    "no words": (("--bg", "-"), Exit.CONFIG, "task-empty"),
    "two tasks": (("--bg", "Do it.", "Do that."), Exit.CONFIG, "task-twice"),
    "a word": (("sesions", "--bg"), Exit.USAGE, "command-unknown"),
    "a command": (("--bg", "/compact"), Exit.USAGE, "task-sign"),
    "no file": (("--bg", "Do it.", "--file", "/nowhere"), Exit.CONFIG, "attachment"),
    "a format": (("--bg", "Do it.", "--output-format", "json"), Exit.USAGE, "background-flag"),
    "a session of another": (("--bg", "Do it.", "--attach"), Exit.USAGE, "background-flag"),
    "no session": (("--bg", "Do it.", "--resume", "zzz"), Exit.FAILED, "session-unknown"),
    "no id": (("--bg", "Do it.", "--resume"), Exit.USAGE, "resume-id"),
}


@pytest.mark.parametrize("case", CANNOT)
async def test_what_is_wrong_is_said_and_nothing_is_left(tmp_path: Path, case: str) -> None:
    words, code, said = CANNOT[case]
    program = Program(tmp_path / "home")
    ended = await program.run(*words, cwd=tmp_path)
    assert (ended.code, ended.out) == (code, "")
    assert f"[{said}" in ended.err
    assert (await program.run("sessions", "--all", "--json")).out == ""
    assert await asyncio.to_thread(left_of, str(tmp_path)) == []


async def test_a_session_that_is_open_is_busy_and_one_that_is_not_goes_on(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        await place.until_waiting(session)
        busy = await place.program.run("--bg", "And this.", "--resume", session, *place.model)
        assert (busy.code, busy.out) == (Exit.TRANSIENT, "")
        assert f"treadle --attach {session}" in busy.err
        os.kill(place.worker(session), signal.SIGTERM)
        row = await place.until_closed(session)
        assert (row["state"], row["ended"]) == ("stopped", "unfinished")
        assert list((place.home / "live").iterdir()) == []
        assert await place.start("", "--resume", session) == session
        await place.until_waiting(session)
        assert (await place.run("stop", "--all")).out == f"Stopped {session}: Write it.\n"
        row = await place.until_closed(session)
        assert (row["state"], row["ended"]) == ("stopped", "cancelled")


async def test_a_terminal_joins_answers_and_leaves_and_the_session_ends_by_itself(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        async with on_terminal(place.program, "--attach", "--directory", str(place.project)) as terminal:
            await terminal.until_shown("Write it.", "one.txt", "❯ Yes")
            await terminal.confirm()
            await terminal.until_shown("It is there.", "■ Done · ")
            assert (await place.listed())[session]["open"] is True
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
        row = await place.until_closed(session)
        assert (row["state"], row["added"]) == ("done", 1)
        assert (place.project / "one.txt").read_text() == "one\n"


async def test_a_killed_worker_leaves_an_unfinished_session_that_goes_on(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        await place.until_waiting(session)
        os.kill(place.worker(session), signal.SIGKILL)
        row = await place.until_closed(session)
        assert (row["state"], row["ended"], row["background"]) == ("stopped", "unfinished", False)
        stopped = await place.run("stop", session)
        assert (stopped.code, stopped.out) == (Exit.DONE, "")
        assert f"{session} is not open (stopped: unfinished)." in stopped.err
        async with on_terminal(place.program, "--resume", session, *place.model) as terminal:
            await terminal.until_shown("❯ Yes")
            async with asyncio.timeout(PATIENCE):  # it is the terminal's as soon as others can attach to it there
                while (row := (await place.listed())[session])["background"]:
                    await asyncio.sleep(0.1)
            assert (row["state"], row["open"]) == ("waiting", True)
            await terminal.confirm()
            await terminal.until_shown("It is there.", "■ Done · ")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0


async def test_a_timer_keeps_the_session_until_it_is_up(tmp_path: Path) -> None:
    turns = (
        Turn(items=(MakeCall(name="set_timer", arguments={"seconds": 2}),)),
        Turn(items=(SayText(text="I wait."),)),
        Turn(items=(SayText(text="Time is up."),)),
    )
    async with in_background(tmp_path, Script(turns=turns)) as place:
        session = await place.start("Wait a little.", "--mode", "full")
        await place.until_closed(session)
        assert "Time is up." in (await place.run("show", session)).out


async def test_a_timer_that_was_ended_does_not_keep_the_session_for_long(tmp_path: Path) -> None:
    turns = (
        Turn(items=(MakeCall(name="set_timer", arguments={"seconds": 3600}),)),
        Turn(items=(SayText(text="I wait."),)),
    )
    async with in_background(tmp_path, Script(turns=turns)) as place:
        session = await place.start("Wait a little.", "--mode", "full")
        await place.until(session, lambda row: row["state"] == "done" and row["open"])
        timer = (await place.run("jobs", "--json")).out
        assert (await place.run("jobs", "kill", json.loads(timer)["id"])).code == Exit.DONE
        await place.until_closed(session)


async def test_several_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        first, second = await asyncio.gather(place.start("Write one."), place.start("Write two."))
        assert first != second
        for session in (first, second):
            await place.until_waiting(session)
        attach = await place.program.run("-p", "Hi.", "--attach", "--directory", str(place.project))
        assert "2 sessions of" in attach.err
        stopped = await place.run("stop", "--all", "--json", "--directory", str(place.project))
        results = {row["id"]: row["result"] for row in map(json.loads, stopped.out.splitlines())}
        assert results == {first: "stopped", second: "stopped"}
        assert place.workers() == {}


@pytest.mark.parametrize("many", [6, pytest.param(20, marks=pytest.mark.soak)])
async def test_many_that_start_together_all_work(tmp_path: Path, many: int) -> None:
    async with in_background(tmp_path, SAYS) as place:
        sessions = await asyncio.gather(*(place.start(f"Task {number}.") for number in range(many)))
        assert len(set(sessions)) == many
        for session in sessions:
            await place.until_closed(session)
        listed = await place.listed()
        assert {row["state"] for row in listed.values()} == {"done"}
        assert set(listed) == set(sessions)
        log = place.home / "treadle.log"
        assert log.read_text() == ""


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
async def test_closed_streams_keep_it_from_nothing(tmp_path: Path, closed: str) -> None:
    async with in_background(tmp_path, SAYS) as place:
        shell = ("sh", "-c", f'exec "$0" -m treadle "$@" {closed}', sys.executable)
        ended = await place.program.run("--bg", "What is it?", *place.flags, command=shell)
        assert ended.code == Exit.DONE
        (session,) = await place.listed()
        assert ended.out == ("" if ">&-" in closed.split() else f"{session}\n")
        assert (await place.until_closed(session))["state"] == "done"


async def test_a_full_pipe_keeps_the_parent_and_not_the_session(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        hears, says = os.pipe()
        os.set_blocking(says, False)
        full = 0
        try:
            while True:
                full += os.write(says, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(says, True)
        process = await asyncio.create_subprocess_exec(
            *TREADLE,
            "--bg",
            "What is it?",
            *place.flags,
            env=place.program.environment,
            stdin=subprocess.DEVNULL,
            stdout=says,
            stderr=subprocess.DEVNULL,
        )
        os.close(says)
        while not (listed := await place.listed()):
            await asyncio.sleep(0.1)
        (session,) = listed
        assert (await place.until_closed(session))["state"] == "done"
        assert process.returncode is None
        with os.fdopen(hears, "rb") as reading:
            data = await asyncio.to_thread(reading.read)
        assert data[full:].decode() == f"{session}\n"
        assert await process.wait() == Exit.DONE


async def test_where_the_id_cannot_be_written_it_is_named_as_an_error(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        shell = ("sh", "-c", 'exec "$0" -m treadle "$@" >/dev/full', sys.executable)
        ended = await place.program.run("--bg", "What is it?", *place.flags, command=shell)
        (session,) = await place.listed()
        assert ended.code == Exit.FAILED
        assert f"session {session} runs in the background" in ended.err
        await place.until_closed(session)


async def test_the_task_comes_from_standard_input_and_files_go_along(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the notes")
    async with in_background(tmp_path, SAYS) as place:
        process = await asyncio.create_subprocess_exec(
            *TREADLE,
            *("--bg", "-", *place.flags, "--file", str(tmp_path / "notes.txt")),
            env=place.program.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        out, _ = await process.communicate(b"Read the notes.\n")
        assert process.returncode == Exit.DONE
        await place.until_closed(out.decode().strip())
        sent = json.dumps([request.body for request in place.server.requests])
    assert "Read the notes." in sent
    assert "the notes" in sent


async def test_a_session_that_nobody_could_reach_is_not_started(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        place.home.mkdir()
        (place.home / "live").touch()
        ended = await place.program.run("--bg", "What is it?", *place.flags)
        assert (ended.code, ended.out) == (Exit.FAILED, "")
        assert "[background-socket]" in ended.err
        assert await place.listed() == {}
        await place.until_gone()


async def test_a_task_that_a_hook_keeps_from_being_sent_leaves_no_session(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        place.home.mkdir()
        hook = '[[hooks.UserPromptSubmit]]\nhooks = [{ type = "command", command = "echo not today >&2; exit 2" }]\n'
        (place.home / "config.toml").write_text(hook)
        ended = await place.program.run("--bg", "What is it?", *place.flags)
        assert (ended.code, ended.out) == (Exit.FAILED, "")
        assert "not today" in ended.err
        await place.until_gone()
        store = Store(place.home / "sessions.db")
        assert store.sessions() == []
        store.close()
