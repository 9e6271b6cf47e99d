"""A session that is open in one editor and comes to another one: both see it, either may go."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import Editor, RefusedByAgentError, choosing, editor, working
from tests.e2e.faults.driving import DONE, make, run
from tests.e2e.process import Program
from tests.e2e.running import left_of, model
from treadle.protocol.events import Prompt, SetMode
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

EDIT = make("write_to_file", path="a.txt", content="one\n")
SLOW = Turn(items=(SayText(text="I look. "), Wait(seconds=60)))


def begun(client: Editor, session: str, text: str = "Work.") -> "asyncio.Future[Any]":
    """Send a prompt; its answer comes later."""
    return client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


@asynccontextmanager
async def joined(tmp_path: Path, server: ScriptedServer, session: str) -> AsyncIterator[Editor]:
    """Open a session in a second editor, as soon as the first one lets others in."""
    async with editor(tmp_path / "home", *model(server)) as client:
        client.answers["session/request_permission"] = choosing("allow_once")
        await client.initialize()
        async with asyncio.timeout(90):
            while True:
                try:
                    folder = str(tmp_path / "ws")
                    await client.call("session/load", sessionId=session, cwd=folder, mcpServers=[])
                    break
                except RefusedByAgentError:  # it lets nobody in yet
                    await asyncio.sleep(0.05)
        yield client


async def test_a_question_is_answered_in_the_second_editor_and_both_see_the_rest(tmp_path: Path) -> None:
    turns = (Turn(items=(EDIT,)), DONE, DONE, DONE)
    async with ScriptedServer(Script(turns=turns)) as server, working(tmp_path, server) as (first, session, folder):
        first.answers["session/request_permission"] = lambda _: asyncio.get_running_loop().create_future()
        turn = begun(first, session)
        await first.until(lambda: first.asked)
        async with joined(tmp_path, server, session) as second:
            answer = await turn
            await second.until(lambda: second.said() == "Done.")
            (asked,) = [params for method, params in second.asked if method == "session/request_permission"]
            again = await second.prompt(session, "And now?")
            await first.until(lambda: first.said("user_message_chunk") == "And now?")
            await first.until(lambda: first.said() == "Done.Done.")
            said = second.said("user_message_chunk")
            notices = second.said("agent_thought_chunk")
            assert await second.end() == 0
        after = await first.prompt(session, "Once more.")
        assert (folder / "a.txt").read_text() == "one\n"
    assert [one["stopReason"] for one in (answer, again, after)] == ["end_turn"] * 3
    assert asked["toolCall"]["title"] == "Create a.txt?"
    assert said == "Work."
    assert "The session continues when you leave." in notices
    assert "saved files only" in notices
    assert [method for method, _ in first.asked] == ["session/request_permission", "$/cancel_request"]


async def test_who_joins_sees_what_was_before_and_what_is_being_written(tmp_path: Path) -> None:
    turns = (Turn(items=(SayText(text="First."),)), SLOW)
    async with ScriptedServer(Script(turns=turns)) as server, working(tmp_path, server) as (first, session, _):
        await first.prompt(session)
        turn = begun(first, session, "Go on.")
        await first.until(lambda: first.said() == "First.I look. ")
        async with joined(tmp_path, server, session) as second:
            await second.until(lambda: second.said() == "First.I look. ")
            said = second.said("user_message_chunk")
            second.tell("session/cancel", sessionId=session)
            answer = await turn
    assert said == "Work.Go on."
    assert answer["stopReason"] == "cancelled"


async def test_leaving_stops_nothing_of_the_other_editor(tmp_path: Path) -> None:
    turns = (Turn(items=(run("echo begun; while [ ! -e go ]; do sleep 0.05; done; sleep 0.063"),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server, "--mode", "full") as (first, session, folder),
    ):
        turn = begun(first, session)
        await first.until(lambda: "begun" in json.dumps(first.of("tool_call_update")))
        async with joined(tmp_path, server, session) as second:
            lines: list[Any] = []
            second.send = lines.append  # type: ignore[assignment,method-assign]
            waits = begun(second, session, "Then this.")
            changed = second.begin("session/set_mode", sessionId=session, modeId="auto")
            del second.send
            second.send_line(b"\n".join(json.dumps(line).encode() for line in lines))  # they are read at once
            await changed
            log = Store(tmp_path / "home" / "sessions.db")
            ops = [one.data for one in log.read(session) if isinstance(one.data, Prompt | SetMode)]
            log.close()
            assert [type(op) for op in ops] == [Prompt, Prompt, SetMode]  # in the order in which they were sent
            await second.call("session/close", sessionId=session)
            left = await waits
            with pytest.raises(RefusedByAgentError):
                await second.prompt(session)
        (folder / "go").touch()
        answer = await turn
        await first.until(lambda: first.said("user_message_chunk") == "Then this.")
    assert (left["stopReason"], answer["stopReason"]) == ("cancelled", "end_turn")
    assert left_of("sleep 0.063") == []


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_prompt_that_is_taken_back_while_it_waits_leaves_the_turn_alone(
    tmp_path: Path, *, elsewhere: bool
) -> None:
    turns = (Turn(items=(run("echo begun; while [ ! -e go ]; do sleep 0.05; done"),)), DONE, DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server, "--mode", "full") as (first, session, folder),
        AsyncExitStack() as stack,
    ):
        turn = begun(first, session)
        await first.until(lambda: "begun" in json.dumps(first.of("tool_call_update")))
        other = await stack.enter_async_context(joined(tmp_path, server, session)) if elsewhere else first
        waits = begun(other, session, "Then this.")
        number = max(other.waiting)
        await other.call("session/set_mode", sessionId=session, modeId="auto")  # taken after the prompt
        other.tell("$/cancel_request", requestId=number)
        with pytest.raises(RefusedByAgentError) as refused:
            await waits
        (folder / "go").touch()
        answer = await turn
        await first.prompt(session, "Another.")
        sent = json.dumps(server.requests[-1].body)
    assert refused.value.code == -32800
    assert answer["stopReason"] == "end_turn"
    assert "Another." in sent
    assert "Then this." not in sent


async def test_a_prompt_that_somebody_else_drops_ends_as_cancelled(tmp_path: Path) -> None:
    turns = (Turn(items=(Wait(seconds=60),)), DONE)
    async with ScriptedServer(Script(turns=turns)) as server, working(tmp_path, server) as (first, session, _):
        turn = begun(first, session)
        await first.until(lambda: server.requests)
        waits = begun(first, session, "Then this.")
        await first.call("session/set_mode", sessionId=session, modeId="auto")  # taken after the prompt
        stopped = await Program(tmp_path / "home").run("stop", session)
        answers = await asyncio.gather(turn, waits)
    assert stopped.code == 0
    assert [one["stopReason"] for one in answers] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("how", ["close", "kill"])
@pytest.mark.usefixtures("started_anew")
async def test_a_session_that_was_closed_elsewhere_is_continued_here(tmp_path: Path, how: str) -> None:
    async with ScriptedServer(Script(turns=(DONE, DONE))) as server, working(tmp_path, server) as (first, session, _):
        await first.prompt(session, "First.")
        async with joined(tmp_path, server, session) as second:
            if how == "close":
                assert await first.end() == 0
            else:
                first.process.kill()
                await first.process.wait()
            with suppress(RefusedByAgentError):  # on its way in that moment: it says to send it again
                answer = await second.prompt(session, "Second.")
            if len(server.requests) == 1:
                answer = await second.prompt(session, "Second.")
            await second.call("session/set_mode", sessionId=session, modeId="plan")
            await second.until(lambda: second.of("current_mode_update"))
            sent = json.dumps(server.requests[-1].body)
    assert answer["stopReason"] == "end_turn"
    assert "First." in sent
    assert "Second." in sent


async def test_choices_and_commands_reach_the_session_where_it_is(tmp_path: Path) -> None:
    async with ScriptedServer(Script(turns=(DONE, DONE))) as server, working(tmp_path, server) as (first, session, _):
        await first.prompt(session)
        async with joined(tmp_path, server, session) as second:
            thought = await second.call(
                "session/set_config_option", sessionId=session, configId="thought_level", value="low"
            )
            await second.call("session/set_mode", sessionId=session, modeId="edits")
            await first.until(lambda: first.of("current_mode_update"))
            second.updates.clear()
            await second.prompt(session, "/status")
            status = second.said()
            second.updates.clear()
            await second.prompt(session, "/nothing")
            wrong = second.said()
        options = first.of("config_option_update")[-1]["configOptions"]
    assert [one["currentValue"] for one in thought["configOptions"]][2] == "low"
    assert first.of("current_mode_update")[-1]["currentModeId"] == "edits"
    assert session in status
    assert wrong.startswith("There is no command /nothing.")
    assert [one["currentValue"] for one in options][2] == "low"
