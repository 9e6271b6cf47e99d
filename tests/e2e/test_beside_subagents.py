"""What a person does in the folder while subagents work stays theirs, and what subagents may not do is counted."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, ScriptItem, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

CHILD = Texts(contains=("You are a subagent",))
WAITS = "until test -e mine.txt; do sleep 0.05; done"


def call(name: str, **arguments: Any) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


def of_child(*items: ScriptItem, before: int) -> Turn:
    return Turn(when=Expectation(system=CHILD, assistant_messages=before), items=items)


def script(agent: str, *child: Sequence[ScriptItem]) -> Script:
    works = [of_child(*items, before=number) for number, items in enumerate(child)]
    begins = call("use_subagents", tasks=[{"prompt": "Work.", "agent": agent}])
    return Script(turns=(*works, Turn(items=(begins,)), Turn(items=(SayText(text="Done."),))))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "keep.txt").write_text("kept\n")
    return Program(tmp_path / "home")


async def beside(program: Program, plan: Script, *flags: str) -> tuple[dict[str, Any], int]:
    """Run a task, and edit two files in its folder while the subagent works; gives the result and the exit code."""
    folder = program.home.parent / "work"
    async with ScriptedServer(plan) as server:

        async def edit() -> None:
            while not any("You are a subagent" in json.dumps(one.body) for one in server.requests):
                await asyncio.sleep(0.02)
            with (folder / "keep.txt").open("a") as file:
                file.write("mine\n")
            (folder / "mine.txt").write_text("mine\n")

        editing = asyncio.create_task(edit())
        ended = await program.run("-p", "Go.", *model(server), "--trust", "--output-format", "json", *flags, cwd=folder)
        await editing
    return json.loads(ended.out), ended.code


async def undone(program: Program) -> dict[str, str]:
    """Undo the turn, whatever there is to undo; gives the files."""
    folder = program.home.parent / "work"
    async with ScriptedServer(Script(turns=())) as server:
        await program.run("-p", "/undo", *model(server), "--continue", "--trust", cwd=folder)
    return {one.name: one.read_text() for one in folder.glob("*.txt")}


MINE = {"keep.txt": "kept\nmine\n", "mine.txt": "mine\n"}


async def test_what_a_person_edits_while_a_subagent_only_reads_is_not_of_the_session(program: Program) -> None:
    plan = script(
        "explore",
        [call("read_file", paths=["keep.txt"])],
        [call("execute_command", command=WAITS)],
        [SayText(text="Read.")],
    )
    result, code = await beside(program, plan, "--mode", "auto")
    assert (code, result["changes"]) == (Exit.DONE, [])
    assert await undone(program) == MINE


async def test_an_undo_takes_back_what_a_subagent_handed_back_and_nothing_of_what_a_person_did_meanwhile(
    program: Program,
) -> None:
    waits = f"until test -e {program.home.parent}/work/mine.txt; do sleep 0.05; done"
    writes = [call("write_to_file", path="theirs.txt", content="theirs\n")]
    plan = script("worker", writes, [call("execute_command", command=waits)], [SayText(text="Written.")])
    result, code = await beside(program, plan, "--mode", "full")
    assert code == Exit.DONE
    assert [Path(one["path"]).name for one in result["changes"]] == ["theirs.txt"]
    assert await undone(program) == MINE


async def test_calls_of_a_subagent_that_are_denied_count_as_those_of_the_session(program: Program) -> None:
    folder = program.home.parent / "work"
    plan = script("worker", [call("execute_command", command="git push origin main")], [SayText(text="I could not.")])
    async with ScriptedServer(plan) as server:
        ended = await program.run(
            "-p", "Go.", *model(server), "--trust", "--mode", "auto", "--output-format", "json", cwd=folder
        )
    assert (ended.code, json.loads(ended.out)["denied"]) == (Exit.PERMISSION, 1)
