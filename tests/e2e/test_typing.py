"""Somebody types over open questions of the real program, at the pace of hands: nothing is approved by that."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import log_of, model
from tests.person import CTRL_C, ENTER, QUIET, SHIFT_TAB, Person, Stroke
from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

_TURNS = 40
_SLACK = 0.1
"""Seconds by which a pause may look longer to the program than to the test."""


async def type_all(terminal: Terminal, strokes: list[Stroke]) -> bool:
    """Do these things in real time; gives whether one of them may have said yes: a key of its own after a pause."""
    last, may_say_yes = time.monotonic(), False
    for stroke in strokes:
        await asyncio.sleep(stroke.pause)
        if stroke.data:
            now = time.monotonic()
            may_say_yes |= stroke.data in (ENTER, SHIFT_TAB) and now - last >= QUIET - _SLACK
            last = now
            terminal.type(stroke.data)
    return may_say_yes


async def typing_in_the_program(folder: Path, seed: int) -> None:
    """Type over a question about a command, as one seed wants it, and look at the log."""
    project = folder / "project"
    project.mkdir()
    turns = tuple(
        Turn(items=(MakeCall(name="execute_command", arguments={"command": f"touch made-{number}"}),))
        for number in range(_TURNS)
    )
    person = Person(seed)
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = (*model(server), "--directory", str(project))
        async with on_terminal(Program(folder / "home"), *flags, "Go on.") as terminal:
            if seed % 2:
                await type_all(terminal, list(person.types("please look ")))
            await terminal.until_shown("touch made-0")
            said_yes = await type_all(terminal, person.anything())
            await asyncio.sleep(0.5)
            terminal.type(CTRL_C)
            await asyncio.sleep(0.5)
    answers = [event.data for event in log_of(folder / "home") if isinstance(event.data, Answer)]
    yes = [answer for answer in answers if answer.option in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)]
    assert not yes or said_yes, (seed, yes)
    assert bool(list(project.iterdir())) <= bool(yes)


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.soak)])
async def test_typing_over_a_question_of_the_program_approves_nothing(tmp_path: Path, seed: int) -> None:
    await typing_in_the_program(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
async def test_a_hundred_typings_in_the_program_approve_nothing(tmp_path: Path, seed: int) -> None:
    await typing_in_the_program(tmp_path, seed)
