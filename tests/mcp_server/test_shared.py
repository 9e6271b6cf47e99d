"""A real terminal and an MCP client on one session."""

import asyncio

import pytest
from mcp_types import ElicitResult

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, log_of, model
from tests.mcp_server.serving import ERAS, Person, Place, accept, client, until, use
from tests.person import CTRL_D
from treadle.protocol.events import Answer, Prompt
from treadle.protocol.messages import text_of
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SCRIPT = Script(
    turns=(
        Turn(items=(SayText(text="Hello, terminal."),)),
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "one.txt", "content": "one\n"}),)),
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "two.txt", "content": "two\n"}),)),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Both are there."}),)),
        Turn(items=(SayText(text="Bye, terminal."),)),
    ),
)


@pytest.mark.parametrize("era", ERAS)
async def test_a_terminal_and_a_client_answer_in_turn_and_each_gets_its_own_answer(place: Place, era: str) -> None:
    program = Program(place.home)
    person = Person([accept(decision="allow_once", comment=""), ElicitResult(action="cancel")])
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server, "anthropic"), "--directory", str(place.folder))
        async with on_terminal(program, *flags, "say hello") as terminal:
            await terminal.until_shown("Hello, terminal.")
            async with asyncio.timeout(PATIENCE):
                while not list((place.home / "live").glob("*.sock")):  # the terminal lets others in after its greeting
                    await asyncio.sleep(0.02)
            async with client(place.stdio(), era, person) as connected:
                (session,) = (await use(connected, "list_tasks"))["sessions"]
                task = await use(connected, "join_task", session_id=session["session_id"])
                await use(connected, "send_message", task_id=task["task_id"], text="write both files")
                await terminal.until_shown("write both files")
                # The client's user answers the first question, the person at the terminal the second.
                found = await use(connected, "task_result", task_id=task["task_id"])
                await terminal.until_shown("you allowed it, answered by mcp 2 over MCP", "two.txt", "❯ Yes")
                assert (found["state"], len(person.shown)) == ("needs_answer", 2)
                await terminal.confirm()
                await terminal.until_shown("Both are there.")
                assert (await until(connected, task, "done"))["answer"] == "Both are there."
                terminal.type("thanks\r")
                await terminal.until_shown("Bye, terminal.")
                status = await use(connected, "task_status", task_id=task["task_id"])
                assert status["answer"] == "Both are there."
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
    assert server.violations == []
    log = log_of(place.home)
    assert [(event.source.name, text_of(event.data.content)) for event in log if isinstance(event.data, Prompt)] == [
        ("tui:main", "say hello"),
        ("mcp:mcp 2", "write both files"),
        ("tui:main", "thanks"),
    ]
    assert [event.source.name for event in log if isinstance(event.data, Answer)] == ["mcp:mcp 2", "tui:main"]
    assert "was not written by the user" in str(server.requests[1].body)
