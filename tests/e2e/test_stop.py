"""`treadle stop`, and tasks for sessions that another process has open."""

import asyncio
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.in_background import ASKS, SAYS, WORKS, InBackground, in_background
from tests.e2e.process import Ended
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE
from tests.person import CTRL_D
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.protocol.events import Event, Interrupt, Prompt
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn, Wait
from treadle.store.sqlite import Store

FIRST_THEN = Script(
    turns=(
        Turn(items=(Wait(seconds=6.0), SayText(text="The first is done."))),
        Turn(items=(SayText(text="The second is done."),)),
    )
)
"""A turn that takes a while, and one that does not."""

STAYS = Script(
    turns=(
        Turn(
            items=(MakeCall(name="set_timer", arguments={"seconds": 3600}),),
            when=Expectation(last_user=Texts(contains=("Stay",)), assistant_messages=0),
        ),
        Turn(
            items=(SayText(text="I stay."),),
            when=Expectation(assistant_messages=1),
        ),
        Turn(
            items=(SayText(text="One moment."), Wait(seconds=PATIENCE)),
            when=Expectation(last_user=Texts(contains=("long",))),
        ),
        Turn(
            items=(MakeCall(name="write_to_file", arguments={"path": "one.txt", "content": "one\n"}),),
            when=Expectation(last_user=Texts(contains=("Write",))),
        ),
    ),
    otherwise=Turn(items=(SayText(text="It is 42."),)),
)
"""A session that stays open for its timer, and takes tasks."""


def log_of(place: InBackground, session: str) -> list[Event]:
    store = Store(place.home / "sessions.db")
    try:
        return list(store.read(session))
    finally:
        store.close()


async def staying(place: InBackground) -> str:
    """Start a session that is done with its task and stays open."""
    session = await place.start("Stay.")
    await place.until(session, lambda row: row["state"] == "done" and row["open"])
    return session


async def begin(place: InBackground, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *TREADLE,
        *arguments,
        env=place.program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def end(process: asyncio.subprocess.Process) -> Ended:
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def test_stop_interrupts_what_goes_on_drops_the_queue_and_closes(tmp_path: Path) -> None:
    async with in_background(tmp_path, WORKS) as place:
        session = await place.start("First.")
        waiting = await begin(place, "-p", "Second.", "--attach", session)
        while not any(isinstance(one.data, Prompt) and one.seq > 5 for one in log_of(place, session)):
            await asyncio.sleep(0.1)
        stopped = await place.run("stop", session[:15], "--json")
        row = json.loads(stopped.out)
        assert (stopped.code, row["id"], row["result"], row["state"], row["ended"]) == (
            Exit.DONE,
            session,
            "stopped",
            "stopped",
            "cancelled",
        )
        dropped = await end(waiting)
        await place.until_gone()
        assert (dropped.code, dropped.out) == (Exit.FAILED, "")
        assert "The prompt was removed from the queue." in dropped.err
        interrupts = [one.source.name for one in log_of(place, session) if isinstance(one.data, Interrupt)]
        assert interrupts == ["headless:stop 3"]


async def test_a_session_in_a_terminal_is_interrupted_and_stays(tmp_path: Path) -> None:
    async with (
        in_background(tmp_path, WORKS) as place,
        on_terminal(place.program, *place.flags, "Do it.", command=TREADLE) as terminal,
    ):
        await terminal.until_shown("One moment.")
        (session,) = await place.listed()
        stopped = await place.run("stop", session)
        process = terminal.process.pid
        said = f"Interrupted {session}. It stays open in the program that has it (process {process}).\n"
        assert stopped == Ended(Exit.DONE, said, "")
        await terminal.until_shown("■ Stopped · ")
        row = (await place.listed())[session]
        assert (row["state"], row["open"], row["background"]) == ("stopped", True, False)
        assert "stopped: interrupted (open)" in (await place.run("sessions", "--all")).out
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0


async def test_what_is_not_there_is_said_and_the_rest_is_stopped(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        await place.until_waiting(session)
        stopped = await place.run("stop", "zzz", session)
        assert (stopped.code, stopped.out) == (Exit.FAILED, f"Stopped {session}: Write it.\n")
        assert "There is no session 'zzz'." in stopped.err
        again = await place.run("stop", session)
        assert again == Ended(
            Exit.DONE,
            "",
            f"{session} is not open (stopped: interrupted). Continue it with: treadle --resume {session}\n",
        )
        assert await place.run("stop", "--all") == Ended(Exit.DONE, "", "No session runs in the background.\n")
        for words in (("stop",), ("stop", "--all", session)):
            assert "[session-which]" in (await place.run(*words)).err


async def test_stop_takes_a_session_that_began_a_moment_ago(tmp_path: Path) -> None:
    async with in_background(tmp_path, WORKS) as place:
        for _ in range(3):
            session = await place.start("Do it.")
            assert (await place.run("stop", session)).out == f"Stopped {session}: Do it.\n"


@pytest.mark.soak
async def test_a_suspended_process_is_named_with_what_to_do(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        await place.until_waiting(session)
        worker = place.worker(session)
        os.kill(worker, signal.SIGSTOP)
        stopped = await place.run("stop", session)
        assert (stopped.code, stopped.out) == (Exit.FAILED, "")
        assert f"Its process is {worker}: `kill -CONT {worker}` continues it" in stopped.err
        os.kill(worker, signal.SIGCONT)
        assert (await place.run("stop", session)).out == f"Stopped {session}: Write it.\n"


async def test_a_task_for_an_open_session_waits_for_its_turn_and_prints_its_answer(tmp_path: Path) -> None:
    async with in_background(tmp_path, FIRST_THEN) as place:
        session = await place.start("First.")
        answered = await place.run("-p", "Second.", "--attach", session)
        assert (answered.code, answered.out) == (Exit.DONE, "The second is done.\n")
        assert "This waits for its turn." in answered.err
        assert "The first is done." not in answered.err
        await place.until_closed(session)
        asked = [one.source.name for one in log_of(place, session) if isinstance(one.data, Prompt)]
        assert asked == ["headless:background", "headless:script 2"]


async def test_the_formats_are_those_of_other_tasks(tmp_path: Path) -> None:
    async with in_background(tmp_path, STAYS) as place:
        session = await staying(place)
        here = ("--attach", "--directory", str(place.project))
        answered = await place.run("-p", "What is it?", *here, "--output-format", "json")
        result = json.loads(answered.out)
        assert answered.code == Exit.DONE
        assert (result["type"], result["session_id"], result["text"], result["stop"], result["exit_code"]) == (
            "result",
            session,
            "It is 42.",
            "end_turn",
            0,
        )
        answered = await place.run("-p", "What is it?", *here, "--output-format", "stream-json")
        kinds = [json.loads(line)["type"] for line in answered.out.splitlines()]
        assert (kinds[0], kinds[-1]) == ("session", "result")
        assert kinds.count("turn_ended") == kinds.count("prompt_delivered") == 1
        assert (await place.listed())[session]["open"] is True


async def test_a_question_is_left_to_others(tmp_path: Path) -> None:
    async with in_background(tmp_path, STAYS) as place:
        session = await staying(place)
        asking = await begin(place, "-p", "Write it.", "--attach", session)
        await place.until_waiting(session)
        async with on_terminal(place.program, "--attach", session) as terminal:
            await terminal.until_shown("one.txt", "❯ Yes")
            await terminal.confirm()
            answered = await end(asking)
        assert (answered.code, answered.out) == (Exit.DONE, "It is 42.\n")
        assert answered.err.count(f"Answer it with: treadle --attach {session}") == 1
        assert (place.project / "one.txt").read_text() == "one\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_takes_back_the_task_and_the_session_stays(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with in_background(tmp_path, STAYS) as place:
        session = await staying(place)
        first = await begin(place, "-p", "A long one.", "--attach", session, "--output-format", "stream-json")
        assert first.stdout is not None
        while b"text_delta" not in (line := await first.stdout.readline()):
            assert line, await end(first)
        second = await begin(place, "-p", "Another.", "--attach", session)
        assert second.stderr is not None
        while b"waits for its turn" not in (line := await second.stderr.readline()):
            assert line, await end(second)
        while sum(isinstance(one.data, Prompt) for one in log_of(place, session)) < 3:
            await asyncio.sleep(0.1)
        second.send_signal(number)
        assert (await end(second)).code == code
        row = (await place.listed())[session]
        assert (row["state"], row["open"]) == ("working", True), "the turn of the other one goes on"
        first.send_signal(number)
        assert (await end(first)).code == code
        async with asyncio.timeout(PATIENCE):  # whoever is told to end does not wait for the session
            while (row := (await place.listed())[session])["state"] == "working":
                await asyncio.sleep(0.1)
        assert (row["state"], row["ended"], row["open"]) == ("stopped", "cancelled", True)
        assert (await place.run("-p", "What is it?", "--attach", session)).out == "It is 42.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_further_signals_change_nothing_and_a_record_says_how_the_task_ended(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with in_background(tmp_path, STAYS) as place:
        session = await staying(place)
        first = await begin(place, "-p", "A long one.", "--attach", session, "--output-format", "stream-json")
        assert first.stdout is not None
        while b"text_delta" not in (line := await first.stdout.readline()):
            assert line, await end(first)
        second = await begin(place, "-p", "Another.", "--attach", session, "--output-format", "json")
        while sum(isinstance(one.data, Prompt) for one in log_of(place, session)) < 3:
            await asyncio.sleep(0.1)
        records = []
        for process in (second, first):
            process.send_signal(number)
            while process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)
                await asyncio.sleep(0.01)
            ended = await end(process)
            assert (ended.code, "Traceback" in ended.err) == (code, False), ended.err
            records.append(json.loads(ended.out.splitlines()[-1]))
        assert [(one["type"], one["exit_code"], one["stop"]) for one in records] == [
            ("result", code, "unfinished"),  # it was taken back
            ("result", code, "cancelled"),
        ]


async def test_what_an_open_session_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    async with in_background(tmp_path, SAYS) as place:
        session = await place.start("What is it?")
        await place.until_closed(session)
        for words, code, said in (
            (("-p", "Hi.", "--attach", session), Exit.FAILED, "session-not-live"),
            (("-p", "Hi.", "--attach", session, "--mode", "full"), Exit.USAGE, "attach-settings"),
            (("-p", "Hi.", "--attach", session, "--json-schema", "{}"), Exit.USAGE, "attach-settings"),
            (("-p", "/compact", "--attach", session), Exit.USAGE, "task-sign"),
            (("-p", "", "--attach", session), Exit.CONFIG, "task-empty"),
            (("-p", "Hi.", "--attach", "zzz"), Exit.FAILED, "session-unknown"),
        ):
            ended = await place.run(*words)
            assert (ended.code, ended.out) == (code, ""), words
            assert f"[{said}]" in ended.err, words


async def test_the_list_of_the_terminal_joins_a_session_in_the_background(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        session = await place.start("Write it.")
        await place.until_waiting(session)
        async with on_terminal(place.program, "--resume", *place.flags) as terminal:
            await terminal.until_shown("Write it.", "waiting")
            terminal.type("\r")
            await terminal.until_shown("Attached as terminal 2", "❯ Yes")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
        assert (await place.listed())[session]["state"] == "waiting"
        assert (await place.run("stop", session)).code == Exit.DONE


async def test_an_attached_terminal_goes_to_another_session_and_leaves_the_first_at_work(tmp_path: Path) -> None:
    async with in_background(tmp_path, ASKS) as place:
        first, second = await place.start("Write it."), await place.start("Write it again.")
        for session in (first, second):
            await place.until_waiting(session)
        async with on_terminal(place.program, "--attach", first, *place.flags) as terminal:
            await terminal.until_shown("Attached as terminal 2", "❯ Yes")
            terminal.type("\x1b")
            await terminal.until_shown("you said no", "■ Done · ")
            terminal.type("/resume\r")
            await terminal.until_shown("Write it again.", "waiting")
            terminal.type("\r")
            await terminal.until_shown("Write it again.", "❯ Yes")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
        await place.until_closed(first)
        assert (await place.listed())[second]["state"] == "waiting"
        assert (await place.run("stop", second)).code == Exit.DONE
