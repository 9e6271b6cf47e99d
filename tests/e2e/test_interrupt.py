"""Stopping the real program in the middle of anything: soon, with nothing left running, and resumable."""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import Running, left_of, log_of, model, running
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.errors.exits import Exit
from treadle.engine.core.advance import advance
from treadle.engine.core.state import State
from treadle.protocol.events import Event, Interrupt, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import QuestionAsked, QuestionClosed, TurnEnded, TurnStop
from treadle.providers.scripted.script import Expectation, MakeCall, Pace, Refuse, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

GO_ON = Turn(
    when=Expectation(last_user=Texts(contains=("Go on.",))),
    items=(MakeCall(name="attempt_completion", arguments={"result": "Went on."}),),
)
WELL = Turn(when=Expectation(), items=(SayText(text="Well."),))
SLOWLY = Turn(items=(SayText(text="All work and no play. " * 400),), pace=Pace(chunk=8, delay=0.02))
LATER = Turn(items=(Refuse(status=429, headers={"Retry-After": "30"}),))


def command(line: str) -> Turn:
    return Turn(items=(MakeCall(name="execute_command", arguments={"command": line}),))


FOR_EVER = {
    "prints": "yes {}",
    "keeps the pipe open": "sleep 1000.{} & wait",
    "ignores requests to end": "trap '' TERM INT; while true; do sleep 0.1; : {}; done",
    "left a session": "setsid sh -c 'sleep 1000.{}' & wait",
}


def cut_off(ended: Ended) -> tuple[str, int, int, bool]:
    """Give what the last record says of a turn that goes on, and whether what it has used is in it."""
    result = json.loads(ended.out.splitlines()[-1])
    assert result["type"] == "result"
    return result["stop"], result["exit_code"], result["steps"], result["usage"].get("output_tokens", 0) > 0


async def until_stoppable(program: Running, phase: str) -> None:
    """Wait until the phase has really begun."""
    match phase:
        case "streams":
            await program.until("text_delta")
        case "waits to retry":
            await program.until("retry_scheduled")
        case "prints":
            await program.until("call_output")
        case _:
            await program.until("call_changed", status="running")


def settled_after(events: Sequence[Event]) -> int:
    """Milliseconds between the user's interrupt and the event that ended the turn, as the log has them."""
    state, asked = State(), 0
    for event in events:
        state, _ = advance(state, event)
        if isinstance(event.data, Interrupt):
            asked = event.at
        if asked and state.turn is None:
            return event.at - asked
    raise AssertionError("the turn was not ended")


async def go_on(program: Program, *flags: str) -> None:
    """Resume the session: a valid history is one that the server takes."""
    ended = await program.run("-p", "Go on.", "--continue", *flags)
    assert (ended.code, ended.out) == (Exit.DONE, "Went on.\n"), ended.err


def script_for(phase: str, marker: str) -> Script:
    turns = {"streams": SLOWLY, "waits to retry": LATER}
    return Script(turns=(GO_ON, turns.get(phase) or command(FOR_EVER[phase].format(marker))))


@pytest.fixture
def marker() -> str:
    """A number that stands in the command line of nothing else."""
    return str(secrets.randbelow(10**12) + 10**12)


@pytest.mark.parametrize(
    ("phase", "wire"),
    [(phase, "anthropic") for phase in ("streams", "waits to retry", *FOR_EVER)]
    + [pytest.param(phase, "chat", marks=pytest.mark.soak) for phase in ("streams", "keeps the pipe open")],
)
async def test_an_interrupt_ends_the_turn_at_once_and_the_session_goes_on(
    tmp_path: Path, phase: str, wire: str, marker: str
) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(script_for(phase, marker)) as server:
        flags = (*model(server, wire), "--mode", "full", "--directory", str(tmp_path))
        async with running(program, "-p", "Work.", *flags) as session:
            await until_stoppable(session, phase)
            session.send(signal.SIGINT)
            result = await session.until("result")
            ended = await session.end()
        assert (ended.code, result["stop"], result["exit_code"]) == (Exit.INTERRUPTED, "cancelled", Exit.INTERRUPTED)
        assert left_of(marker) == []
        taken = settled_after(log_of(tmp_path / "home"))
        print(f"{phase} over {wire}: the turn had ended {taken} ms after the interrupt")
        assert taken < 5000
        await go_on(program, *flags)
    assert server.violations == []


@pytest.mark.parametrize(
    "phase", ["streams", pytest.param("waits to retry", marks=pytest.mark.soak), "keeps the pipe open"]
)
async def test_a_terminated_program_leaves_nothing_running_and_a_session_that_goes_on(
    tmp_path: Path, phase: str, marker: str
) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(script_for(phase, marker)) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(tmp_path))
        async with running(program, "-p", "Work.", *flags) as session:
            await until_stoppable(session, phase)
            session.send(signal.SIGTERM)
            ended = await session.end()
        assert (ended.code, "Traceback" in ended.err) == (Exit.TERMINATED, False), ended.err
        assert cut_off(ended) == ("unfinished", Exit.TERMINATED, 1, phase != "streams")
        assert left_of(marker) == []
    async with ScriptedServer(Script(turns=(GO_ON, WELL))) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(tmp_path))
        open_turn = await program.run("-p", "", "--continue", *flags)
        assert (open_turn.code, open_turn.out) == (Exit.DONE, "Well.\n"), open_turn.err
        await go_on(program, *flags)
    assert server.violations == []


async def test_a_second_interrupt_ends_the_program_while_the_first_one_is_worked_on(
    tmp_path: Path, marker: str
) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(script_for("ignores requests to end", marker)) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(tmp_path))
        async with running(program, "-p", "Work.", *flags) as session:
            await session.until("call_changed", status="running")
            session.send(signal.SIGINT)
            await session.until("phase_changed", phase="CANCELLING")
            session.send(signal.SIGINT)
            ended = await session.end()
        assert (ended.code, "Traceback" in ended.err) == (Exit.INTERRUPTED, False), ended.err
        stop, *rest = cut_off(ended)
        assert stop in ("unfinished", "cancelled")  # the turn may have ended before the program does
        assert rest == [Exit.INTERRUPTED, 1, True]
        assert left_of(marker) == []
        await go_on(program, *flags)
    assert server.violations == []


@pytest.mark.parametrize(
    ("words", "record"),
    [("Work.", "result"), ("/btw What is it?", "command"), ("/pin It is it.", "command"), ("/compact", "command")],
)
async def test_signals_after_the_end_is_told_change_neither_it_nor_the_exit_code(
    tmp_path: Path, words: str, record: str
) -> None:
    program, home = Program(tmp_path / "home"), tmp_path / "home"
    home.mkdir()
    hook = (
        f'{{ type = "command", command = "touch {tmp_path}/closing; sleep 0.5; touch {tmp_path}/closed", timeout = 3 }}'
    )
    (home / "config.toml").write_text(f'[[hooks.SessionEnd]]\nmatcher = ""\nhooks = [{hook}]\n')
    async with ScriptedServer(Script(turns=(), otherwise=WELL)) as server:
        flags = (*model(server), "--directory", str(tmp_path))
        assert (await program.run("-p", "Begin.", *flags)).code == Exit.DONE
        (tmp_path / "closed").unlink()
        (tmp_path / "closing").unlink()
        async with running(program, "-p", words, "--continue", *flags) as session:
            told = await session.until(record)
            session.send(signal.SIGINT)
            while not (tmp_path / "closing").exists():
                await asyncio.sleep(0.01)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
                session.send(number)
                await asyncio.sleep(0.02)
            ended = await session.end()
    assert (ended.code, told["exit_code"], "Traceback" in ended.err) == (Exit.DONE, Exit.DONE, False), ended.err
    assert (tmp_path / "closed").exists(), "it closes as if there had been none"


@pytest.mark.parametrize("module", ["treadle.cli.main", "treadle.cli.work", "treadle.tools.declarations"])
async def test_an_interrupt_while_modules_are_loaded_ends_the_program_without_a_word(
    tmp_path: Path, module: str
) -> None:
    interrupts = f"a[:1] == ({module!r},) and os.kill(os.getpid(), signal.SIGINT)"
    hook = f"sys.addaudithook(lambda event, a: event == 'import' and {interrupts})"
    line = f"import os, signal, sys; from treadle.__main__ import main; {hook}; main()"
    ended = await Program(tmp_path / "home").run("-p", "Work.", command=(sys.executable, "-c", line), cwd=tmp_path)
    assert (ended.code, ended.out, ended.err) == (Exit.INTERRUPTED, "", "")


async def test_an_interrupt_while_a_person_is_asked_withdraws_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    source = Source(kind="test")
    closed: list[QuestionClosed] = []
    async with ScriptedServer(Script(turns=(GO_ON, command("touch made")))) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url)
        live = await open_session(Opening(workspace=tmp_path, settings=settings, user_present=True))
        feed = live.follow()
        async with live:
            await live.post(Prompt(id="p", content=(Text(text="Work."),)), source)
            question = await anext(item.question async for item in feed if isinstance(item, QuestionAsked))
            await live.post(Interrupt(), source)
            async for item in feed:
                if isinstance(item, QuestionClosed):
                    closed.append(item)
                if isinstance(item, TurnEnded):
                    break
            assert isinstance(item, TurnEnded)
            assert item.outcome.stop is TurnStop.CANCELLED
            assert closed == [QuestionClosed(question_id=question.id)]
            assert live.status.questions == ()
        print(f"asking: the turn had ended {settled_after(log_of(tmp_path / 'home'))} ms after the interrupt")
        flags = (*model(server), "--directory", str(tmp_path))
        await go_on(Program(tmp_path / "home"), *flags)
    assert server.violations == []
