"""Goals in the real program: the exit codes, what lists say of them, and a program that is killed during the check."""

import asyncio
import json
import signal
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import model, running
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DONE = Turn(items=(SayText(text="Done."),))


def script(*paths: str) -> Script:
    """Write a file in each turn of the session, and then say that it is done."""
    turns = [
        turn
        for path in paths
        for turn in (Turn(items=(MakeCall(name="write_to_file", arguments={"path": path, "content": "x\n"}),)), DONE)
    ]
    return Script(turns=(*turns, *[DONE] * 6))


async def test_a_goal_is_met_or_given_up_and_the_exit_code_says_which(tmp_path: Path) -> None:
    folder, program = tmp_path / "ws", Program(tmp_path / "home")
    folder.mkdir()
    async with ScriptedServer(script("a.txt", "b.txt")) as server:
        words = model(server)
        task = ("-p", "Write files.", "--goal", "both files are there", "-C", str(folder), "--mode", "edits", *words)
        met = await program.run(*task, "--check", "test -f b.txt", "--output-format", "json")
    result = json.loads(met.out.splitlines()[-1])
    assert (met.code, result["exit_code"], result["goal"]["state"], result["steps"]) == (Exit.DONE, 0, "met", 4)
    assert {change["path"].rpartition("/")[2] for change in result["changes"]} == {"a.txt", "b.txt"}
    async with ScriptedServer(script("a.txt")) as server:
        words = model(server)
        task = ("-p", "Write files.", "--goal", "c is there", "-C", str(folder), "--mode", "edits", *words)
        blocked = await program.run(*task, "--check", "test -f c.txt")
        listed = await program.run("sessions", "--json", "-C", str(folder))
        rows = [json.loads(line) for line in listed.out.splitlines()]
        assert (blocked.code, [row["goal"] for row in rows]) == (Exit.GOAL, ["blocked", "met"])
        assert "3 checks in a row failed in the same way: Exit status 1" in blocked.err
        assert "\n# Checking the goal\n" in blocked.err
        (folder / "c.txt").touch()
        again = await program.run("-p", "/goal resume", "--continue", "-C", str(folder), *words)
    assert (again.code, "The goal is met" in again.err) == (Exit.DONE, True)


async def test_a_goal_that_plan_mode_leaves_unchecked_says_so(tmp_path: Path) -> None:
    folder, program = tmp_path / "ws", Program(tmp_path / "home")
    folder.mkdir()
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        task = ("-p", "Look.", "--goal", "n", "--check", "true", "--mode", "plan", "-C", str(folder), *model(server))
        ended = await program.run(*task, "--output-format", "json")
    goal = json.loads(ended.out.splitlines()[-1])["goal"]
    assert (ended.code, goal["state"]) == (Exit.GOAL, "active")
    why = "it was not checked, because the session is in plan mode; continue in another one, such as --mode edits"
    assert goal["reason"] == why
    assert f"The goal is not met yet: {why}" in " ".join(ended.err.split())


async def test_a_program_that_was_killed_during_the_check_checks_again(tmp_path: Path) -> None:
    folder, program = tmp_path / "ws", Program(tmp_path / "home")
    folder.mkdir()
    async with ScriptedServer(script("a.txt")) as server:
        words = model(server)
        task = ("-p", "Write it.", "--goal", "it is there", "-C", str(folder), "--mode", "full", *words)
        check = "touch begun; test -f go || sleep 600"
        async with running(program, *task, "--check", check) as run:
            async with asyncio.timeout(90):
                while not (folder / "begun").exists():
                    await asyncio.sleep(0.02)
            run.send(signal.SIGKILL)
            await run.end()
        (folder / "go").touch()
        again = await program.run("-p", "", "--continue", "-C", str(folder), *words)
    assert (again.code, "The goal is met" in again.err) == (Exit.DONE, True)
