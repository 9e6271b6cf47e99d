"""Whoever leaves a session reads what ended with it or continues, and how to come back, however they leave."""

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import model
from tests.person import CTRL_C, CTRL_D, ENTER
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SERVES = MakeCall(name="execute_command", arguments={"command": "sleep 600", "background": True})
WRITES = MakeCall(name="write_to_file", arguments={"path": "made.txt", "content": "one\ntwo\n"})
TIMED = MakeCall(name="set_timer", arguments={"seconds": 600, "note": "look again"})
IDLE = Script(turns=(*(Turn(items=(call,)) for call in (SERVES, WRITES, TIMED)), Turn(items=(SayText(text="Done."),))))
WAITS = MakeCall(name="execute_command", arguments={"command": "sleep 601"})
BUSY = Script(turns=(Turn(items=(WAITS,)), Turn(items=(SayText(text="It went on."),))))

Leave = Callable[[Terminal], Awaitable[None]]


def typed(*keys: str) -> Leave:
    """Leave by keys, each after what was before it is read."""

    async def leave(terminal: Terminal) -> None:
        for one in keys:
            terminal.type(one)
            if one == CTRL_C and one is not keys[-1]:
                await terminal.until(lambda shown: "again quits" in shown, "that Ctrl-C again quits")

    return leave


def sent(number: signal.Signals) -> Leave:
    """Leave by a signal."""

    async def leave(terminal: Terminal) -> None:
        terminal.process.send_signal(number)

    return leave


@pytest.mark.parametrize(
    ("leave", "code", "flags"),
    [
        pytest.param(typed(CTRL_D), Exit.DONE, (), id="ctrl-d"),
        pytest.param(typed(f"/quit{ENTER}"), Exit.DONE, (), id="quit", marks=pytest.mark.soak),
        pytest.param(typed(CTRL_C, CTRL_C), Exit.DONE, (), id="ctrl-c twice", marks=pytest.mark.soak),
        pytest.param(sent(signal.SIGTERM), Exit.TERMINATED, (), id="sigterm", marks=pytest.mark.soak),
        pytest.param(sent(signal.SIGHUP), Exit.HANGUP, (), id="sighup", marks=pytest.mark.soak),
        pytest.param(sent(signal.SIGTERM), Exit.TERMINATED, ("--screen-reader",), id="reader, sigterm"),
        pytest.param(typed(CTRL_D), Exit.DONE, ("--screen-reader",), id="reader", marks=pytest.mark.soak),
    ],
)
async def test_leaving_says_what_ended_with_the_session_and_how_to_continue_it(
    tmp_path: Path, leave: Leave, code: Exit, flags: tuple[str, ...]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(tmp_path / "home")
    async with ScriptedServer(IDLE) as server:
        said = (*model(server), "--directory", str(project), "--mode", "full", *flags)
        async with on_terminal(program, *said, "serve it") as first:
            await first.until_shown("Done.", "$0.00")
            async with on_terminal(program, "--attach", "--directory", str(project)) as second:
                await second.until_shown("Attached as terminal 2", "Done.")
                await leave(first)
                assert await first.ended() == code
                await first.until_shown(
                    "Session kept: serve it · 1 turn · +2 -0 · $0.00",
                    "Ended with the session: 1 background command, 1 timer, 1 attached program.",
                    "Go on with: treadle --resume 20",
                )
                await second.until_shown("The session was closed.", "treadle --resume 20")
        listed = await program.run("sessions", "--directory", str(project))
        assert "  done  $0.00  full  +2 -0  serve it\n" in listed.out


@pytest.mark.parametrize(
    ("leave", "code"),
    [
        pytest.param(typed(CTRL_D), Exit.DONE, id="ctrl-d"),
        pytest.param(sent(signal.SIGTERM), Exit.TERMINATED, id="sigterm"),
        pytest.param(typed(f"/quit{ENTER}"), Exit.DONE, id="quit", marks=pytest.mark.soak),
        pytest.param(sent(signal.SIGHUP), Exit.HANGUP, id="sighup", marks=pytest.mark.soak),
    ],
)
async def test_a_turn_continues_where_one_was_attached_and_stops_with_the_session(
    tmp_path: Path, leave: Leave, code: Exit
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(tmp_path / "home")
    async with ScriptedServer(BUSY) as server:
        flags = (*model(server), "--directory", str(project), "--mode", "full")
        async with on_terminal(program, *flags, "wait long") as first:
            await first.until_shown("sleep 601")
            async with on_terminal(program, "--attach", "--directory", str(project)) as second:
                await second.until_shown("Attached as terminal 2", "sleep 601")
                await leave(second)
                assert await second.ended() == code
                await second.until_shown("It continues: the agent is working. To return: treadle --attach 20")
            first.type(f"/quit{ENTER}")
            assert await first.ended() == Exit.DONE
            await first.until_shown(
                "The turn is not done: it continues when you resume the session.", "Go on with: treadle --resume 20"
            )
            assert "attached program" not in first.shown
        resumed = await program.run("-p", "", "--continue", *flags)
        assert (resumed.code, "It went on." in resumed.out) == (Exit.DONE, True), resumed
