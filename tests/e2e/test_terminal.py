"""The same tasks with a person at a real terminal, who sees each change and says yes to it."""

import signal
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import log_of, model
from tests.e2e.samples import NAMES, sample, tree
from tests.person import CTRL_C, CTRL_D, ENTER
from tests.ready import TREADLE
from treadle.app.errors.exits import Exit
from treadle.engine.core.advance import fold
from treadle.engine.core.state import phase
from treadle.protocol.notifications import Phase
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

YES = ("❯ Yes", "❯ Apply")
"""The chosen answer of a question, before an edit and after a command that changed something in its copy."""
DONE = "■ Done · "


def asks(shown: str) -> bool:
    return any(answer in shown for answer in YES)


async def approve_until_done(terminal: Terminal) -> int:
    """Say yes to every question; gives their number."""
    questions = 0
    while True:
        await terminal.until(lambda shown: asks(shown) or DONE in shown, "a question or the summary")
        if DONE in terminal.shown:
            return questions
        questions += 1
        await terminal.confirm()
        await terminal.until(lambda shown: not asks(shown), "the question to be closed")


WAYS = [(wire, protocol) for wire in ("anthropic", "chat") for protocol in ("native", "xml")]


@pytest.mark.parametrize(
    ("name", "wire", "protocol"),
    [
        pytest.param(name, *way, marks=() if number % 3 == 0 and way == WAYS[number % len(WAYS)] else pytest.mark.soak)
        for number, name in enumerate(NAMES)
        for way in WAYS
    ],
)
async def test_a_task_is_done_with_a_yes_to_each_change(tmp_path: Path, name: str, wire: str, protocol: str) -> None:
    task = sample(name)
    project = task.lay_out(tmp_path / "project")
    async with ScriptedServer(task.script) as server:
        flags = (*model(server, wire), "--tool-protocol", protocol, "--directory", str(project))
        async with on_terminal(Program(tmp_path / "home"), *flags) as terminal:
            await terminal.until_shown("? for keys")
            terminal.type(f"{task.prompt}{ENTER}")
            questions = await approve_until_done(terminal)
            added, removed = changed_line(task.name)
            assert (terminal.colours_of("+", added), terminal.colours_of("-", removed)) == ({"green"}, {"red"})
            terminal.type(f"/quit{ENTER}")
            assert await terminal.ended() == Exit.DONE
            assert terminal.restored()
    assert server.violations == []
    made = [item for turn in task.script.turns for item in turn.items if isinstance(item, MakeCall)]
    edits = sum(call.name in ("replace_in_file", "write_to_file") for call in made)
    commands = sum(call.name == "execute_command" for call in made)
    assert edits <= questions <= edits + commands, "each edit asks, and each command that changed something"
    assert tree(project) == task.repaired
    state = fold(log_of(tmp_path / "home"))
    assert (phase(state), state.turn) == (Phase.WAITING_FOR_EVENT, None)


async def test_ctrl_c_at_a_question_is_no_and_stops_the_turn(tmp_path: Path) -> None:
    task = sample("demo")
    project = task.lay_out(tmp_path / "project")
    async with ScriptedServer(task.script) as server:
        flags = (*model(server), "--directory", str(project))
        async with on_terminal(Program(tmp_path / "home"), *flags, task.prompt) as terminal:
            await terminal.until(asks, "a question")
            terminal.type(CTRL_C)
            await terminal.until_shown("■ Stopped")
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            assert terminal.restored()
    assert server.violations == []
    assert tree(project) == task.project


async def test_a_terminated_session_gives_the_terminal_back(tmp_path: Path) -> None:
    task = sample("demo")
    project = task.lay_out(tmp_path / "project")
    async with ScriptedServer(task.script) as server:
        flags = (*model(server), "--directory", str(project))
        async with on_terminal(Program(tmp_path / "home"), *flags, task.prompt) as terminal:
            await terminal.until(asks, "a question")
            assert not terminal.restored()
            terminal.process.send_signal(signal.SIGTERM)
            assert await terminal.ended() == Exit.TERMINATED
            assert terminal.restored()
    assert tree(project) == task.project
    (asked,) = fold(log_of(tmp_path / "home")).questions
    assert asked.text.startswith("Edit")


def changed_line(name: str) -> tuple[str, str]:
    """A line that a task adds and one that it takes away, as far as no other line begins so."""
    match name:
        case "demo":
            changed = "        result[booking.category] = "
            return f"{changed}result.get(", f"{changed}booking.amount"
        case "rename":
            return "from units import", "from measure import"
        case "module":
            ending = '    return re.sub(r"[^a-z0-9]+", "-", plain.lower())'
            return f"{ending}.strip", ending
        case _:
            return "from decimal import ROUND_HALF_EVEN, Decimal", "from decimal import ROUND_HALF_EVEN, ROUND_UP"


async def test_what_a_kill_left_open_is_told_when_the_session_is_taken_up(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    sleeps = Turn(items=(MakeCall(name="execute_command", arguments={"command": "sleep 600"}),))
    async with ScriptedServer(Script(turns=(sleeps, Turn(items=(SayText(text="I see."),))))) as server:
        chosen, program = model(server), Program(tmp_path / "home")
        model_name = f" {chosen[1].partition('/')[2]} · "
        flags = (*chosen, "--mode", "full", "--directory", str(project))
        async with on_terminal(program, *flags, "Go.", command=TREADLE) as terminal:
            await terminal.until_shown("Running sleep 600")
            terminal.process.kill()
        # The address is said anew, as no log keeps it; the model stays the session's own.
        async with on_terminal(program, "--continue", *chosen[2:], "--directory", str(project)) as again:
            await again.until_shown(
                "? Run sleep 600  nobody knows whether it was done", "I see.", "? for keys", model_name
            )
    assert server.violations == []
