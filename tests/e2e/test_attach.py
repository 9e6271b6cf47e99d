"""Two real terminals on one session."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import model
from tests.mcp.hubs import FAKE
from tests.person import CTRL_C, CTRL_D, ENTER, TAB
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DONE = "■ Done · "
SCRIPT = Script(
    turns=(
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "one.txt", "content": "one\n"}),)),
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "two.txt", "content": "two\n"}),)),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Both are there."}),)),
    ),
)


@asynccontextmanager
async def joined(program: Program, project: Path) -> AsyncIterator[tuple[Terminal, Terminal]]:
    """Give a terminal whose task is done, and a second one that is attached to its session."""
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server, "anthropic"), "--directory", str(project))
        async with on_terminal(program, *flags, "write both files") as first:
            await first.until_shown("❯ Yes")
            await first.confirm()
            await first.until_shown("two.txt", "❯ Yes")
            await first.confirm()
            await first.until_shown(DONE)
            async with on_terminal(program, "--attach", "--directory", str(project)) as second:
                await second.until_shown("Attached as terminal 2", DONE)
                yield first, second


async def test_a_second_terminal_joins_answers_leaves_and_comes_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(tmp_path / "home")
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server, "anthropic"), "--directory", str(project))
        async with on_terminal(program, *flags, "write both files") as first:
            await first.until_shown("❯ Yes")
            async with on_terminal(program, "--attach", "--directory", str(project)) as second:
                await second.until_shown("Attached as terminal 2", "write both files", "one.txt", "❯ Yes")
                await second.confirm()
                await first.until_shown("you allowed it in terminal 2", "two.txt")
                await second.until(lambda shown: "two.txt" in shown and "❯ Yes" in shown, "the second question")
                second.type(CTRL_D)
                await second.until_shown(
                    "You left session", "It continues: 1 open question. To return: treadle --attach"
                )
                assert await second.ended() == 0
            assert (project / "one.txt").read_text() == "one\n"
            async with on_terminal(program, "--attach", "--directory", str(project)) as third:
                await third.until_shown("Attached as terminal 3", "✓ Create one.txt", "two.txt", "❯ Yes")
                await first.confirm()
                await third.until_shown("you allowed it in the first terminal", "Both are there.", DONE)
                await first.until_shown("Both are there.", DONE)
                first.type(CTRL_D)
                assert await first.ended() == 0
                await third.until_shown("The session was closed.")
                assert "You left session" not in third.shown
            assert (project / "two.txt").read_text() == "two\n"


async def test_an_attached_terminal_lists_and_approves_the_servers_of_the_session(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    home.mkdir()
    entry = {"command": sys.executable, "args": [str(FAKE), "attached"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    program = Program(home)
    async with joined(program, project) as (first, second):
        second.type(f"/mcp{ENTER}")
        await second.until_shown("fake  connected", "new (asks at its first use)")
        second.type(f"/mcp approve fake{ENTER}")
        await second.until_shown("Approved as they are now: echo, big, slow, die, reads")
        second.type(CTRL_D)
        assert await second.ended() == 0
        first.type(f"/mcp{ENTER}")
        await first.until_shown("fake  connected")
        assert "asks at its first use" not in first.shown
        first.type(CTRL_D)
        assert await first.ended() == 0


async def test_a_terminal_offers_what_a_prompt_of_a_server_can_be_followed_by(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    home.mkdir()
    entry = {"command": sys.executable, "args": [str(FAKE), "prompts"]}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    program = Program(home)
    assert (await program.run("mcp", "test", "fake")).code == 0  # from now on the names of its prompts are known
    async with joined(program, project) as (first, second):
        for terminal in (first, second):
            terminal.type("/fake:weather O")
            await terminal.until_shown("Oslo", "'New York'")
            terminal.type(TAB)
            await terminal.until_shown("/fake:weather Oslo")
        second.type(f"{CTRL_C}{CTRL_D}")
        assert await second.ended() == 0
        first.type(f"{CTRL_C}{CTRL_D}")
        assert await first.ended() == 0


async def test_joining_says_what_is_wrong(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    nothing = await program.run("--attach", "--directory", str(tmp_path))
    assert nothing.code == 78
    assert "needs a terminal" in nothing.err
    task = await program.run("--attach", "--directory", str(tmp_path), "do it")
    assert "--attach takes no task for the terminal" in task.err
    none = await program.run("--attach", "-p", "do it", "--directory", str(tmp_path))
    assert (none.code, "is open. [session-none]" in none.err) == (1, True)
    async with on_terminal(program, "--attach", "--directory", str(tmp_path)) as terminal:
        await terminal.until_shown("is open.", "treadle --attach ID")
