"""Sessions of a client: several at once, listed, loaded, resumed, copied, closed and deleted; and their options."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.acp.driving import RefusedByAgentError, choosing, diff, editor, working
from tests.e2e.faults.driving import DONE, make, run, script
from tests.e2e.running import left_of, model
from treadle.acp.client_servers import server_of
from treadle.acp.shapes import OpenRequest
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/scripted"
EDIT = make("write_to_file", path="a.txt", content="one\n")


async def test_a_session_is_loaded_with_its_history(tmp_path: Path) -> None:
    turns = (Turn(items=(SayText(text="I write it."), EDIT)), DONE, DONE)
    async with ScriptedServer(Script(turns=turns)) as server:
        async with working(tmp_path, server) as (client, session, folder):
            await client.prompt(session, "Write a file.")
            assert await client.end() == 0
        async with editor(tmp_path / "home", *model(server)) as client:
            await client.initialize()
            loaded = await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            history = [update["sessionUpdate"] for update in client.updates]
            said = client.said("user_message_chunk"), client.said()
            (call,) = client.of("tool_call")
            answer = await client.prompt(session, "And now?")
    assert loaded["modes"]["currentModeId"] == "ask"
    kinds = ["user_message_chunk", "agent_message_chunk", "tool_call", "agent_message_chunk"]
    assert [kind for kind in history if kind in kinds] == kinds
    assert said == ("Write a file.", "I write it.\n\nDone.")
    assert (call["title"], call["status"]) == ("Create a.txt (+1 -0)", "completed")
    assert call["content"] == [diff(folder / "a.txt", "one\n")]
    assert answer["stopReason"] == "end_turn"
    assert len(server.requests) == 3


async def test_a_session_is_resumed_without_its_history(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(DONE, DONE))) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        await client.prompt(session, "First.")
        await client.call("session/resume", sessionId=session, cwd=str(folder))
        client.updates.clear()
        await client.prompt(session, "Second.")
        sent = json.dumps(server.requests[-1].body)
    assert client.said("user_message_chunk") == ""
    assert "First." in sent


async def test_a_copy_of_a_session_goes_its_own_way(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(DONE, DONE, DONE))) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        await client.prompt(session, "First.")
        forked = (await client.call("session/fork", sessionId=session, cwd=str(folder)))["sessionId"]
        await client.prompt(forked, "In the copy.")
        in_copy = json.dumps(server.requests[-1].body)
        await client.prompt(session, "In the first.")
        in_first = json.dumps(server.requests[-1].body)
        listed = await client.call("session/list", cwd=str(folder))
    assert forked != session
    assert "First." in in_copy
    assert "In the copy." not in in_first
    assert {one["sessionId"] for one in listed["sessions"]} == {session, forked}


@pytest.mark.parametrize("again", [False, True], ids=["in the same process", "in another process"])
async def test_a_session_that_is_opened_again_keeps_the_mode_and_model_that_were_chosen(
    tmp_path: Path, *, again: bool
) -> None:
    turns = (DONE, Turn(items=(EDIT,)), DONE)
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = ("--mode", "auto", "--trust")
        async with working(tmp_path, server, *flags) as (client, session, folder):
            await client.prompt(session, "First.")
            await client.call("session/set_mode", sessionId=session, modeId="plan")
            fork = await client.call("session/fork", sessionId=session, cwd=str(folder))
            loaded = await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            if not again:
                await client.prompt(session, "Write.")
        if again:
            other = tuple("anthropic-compatible/other" if one == MODEL else one for one in model(server))
            async with editor(tmp_path / "home", *other, *flags) as client:
                await client.initialize()
                loaded = await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
                await client.prompt(session, "Write.")
    assert [one["modes"]["currentModeId"] for one in (fork, loaded)] == ["plan", "plan"]
    assert not (folder / "a.txt").exists()
    assert {request.body["model"] for request in server.requests} == {"scripted"}


async def test_a_session_that_works_is_not_opened_again_and_its_turn_goes_on(tmp_path: Path) -> None:
    turns = (Turn(items=(run("sleep 1; echo one > a.txt"),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server, "--mode", "full", "--trust") as (client, session, folder),
    ):
        turn = asyncio.create_task(client.prompt(session, "Work."))
        await client.until(lambda: client.of("tool_call"))
        with pytest.raises(RefusedByAgentError) as refused:
            await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        assert (await turn)["stopReason"] == "end_turn"
        assert (folder / "a.txt").exists()
        await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
    assert "works on a message" in refused.value.message


async def test_sessions_are_listed_by_pages_closed_and_deleted(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(DONE,))) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        await client.new(folder)
        await client.prompt(session, "Keep this.")
        listed = await client.call("session/list", cwd=str(folder))
        elsewhere = await client.call("session/list", cwd=str(tmp_path))
        await client.call("session/close", sessionId=session)
        with pytest.raises(RefusedByAgentError) as closed:
            await client.prompt(session)
        await client.call("session/delete", sessionId=session)
        left = await client.call("session/list")
        with pytest.raises(RefusedByAgentError) as unknown:
            await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        with pytest.raises(RefusedByAgentError) as begun:
            await client.call("session/load", sessionId=session[:8], cwd=str(folder), mcpServers=[])
    (row,) = listed["sessions"]
    assert (row["sessionId"], row["title"], row["cwd"]) == (session, "Keep this.", str(folder))
    assert (elsewhere["sessions"], left["sessions"]) == ([], [])
    assert (closed.value.code, unknown.value.code, begun.value.code) == (-32002, -32002, -32002)


async def test_two_sessions_work_at_the_same_time(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(Turn(items=(run("sleep 0.5; pwd"),)), DONE))) as server,
        working(tmp_path, server, "--mode", "full") as (client, first, _),
    ):
        other = tmp_path / "other"
        other.mkdir()
        second = await client.new(other)
        block = [{"type": "text", "text": "Work."}]
        turns = [client.begin("session/prompt", sessionId=one, prompt=block) for one in (first, second)]
        ends = [(await turn)["stopReason"] for turn in turns]
    assert ends == ["end_turn", "end_turn"]
    outputs = [json.dumps(client.of("tool_call_update", one)) for one in (first, second)]
    assert [str(folder) in output for output, folder in zip(outputs, (tmp_path / "ws", other), strict=True)] == [
        True,
        True,
    ]
    assert client.said(session=first) == client.said(session=second) == "Done."


async def test_mode_model_and_thinking_can_be_chosen(tmp_path: Path) -> None:
    async with ScriptedServer(Script(turns=(DONE,))) as server, working(tmp_path, server) as (client, session, _):
        await client.call("session/set_mode", sessionId=session, modeId="plan")
        await client.until(lambda: client.of("current_mode_update"))
        other = await client.call("session/set_config_option", sessionId=session, configId="mode", value="edits")
        thought = await client.call(
            "session/set_config_option", sessionId=session, configId="thought_level", value="low"
        )
        same = await client.call(
            "session/set_config_option", sessionId=session, configId="model", value="anthropic-compatible/other"
        )
        refused = []
        for method, params in [
            ("session/set_mode", {"modeId": "wild"}),
            ("session/set_config_option", {"configId": "model", "value": "nobody/none"}),
            ("session/set_config_option", {"configId": "shape", "value": "round"}),
        ]:
            with pytest.raises(RefusedByAgentError) as error:
                await client.call(method, sessionId=session, **params)
            refused.append(error.value.code)
        await client.prompt(session)

    def values(answer: Any) -> list[str]:
        return [one["currentValue"] for one in answer["configOptions"]]

    assert [one["category"] for one in other["configOptions"]] == ["mode", "model", "thought_level"]
    assert client.of("current_mode_update")[0]["currentModeId"] == "plan"
    assert values(other) == ["edits", "anthropic-compatible/scripted", "as set"]
    assert values(thought) == ["edits", "anthropic-compatible/scripted", "low"]
    assert values(same)[1] == "anthropic-compatible/other"
    assert server.requests[-1].body["model"] == "other"
    assert refused == [-32602, -32602, -32602]


@pytest.mark.usefixtures("started_anew")
async def test_a_session_whose_client_was_killed_goes_on_in_another(tmp_path: Path) -> None:
    turns = (Turn(items=(run("echo begun; sleep 61"),)), DONE)
    async with ScriptedServer(Script(turns=turns)) as server:
        async with working(tmp_path, server) as (client, session, folder):
            block = [{"type": "text", "text": "Work."}]
            turn = client.begin("session/prompt", sessionId=session, prompt=block)
            await client.until(lambda: "begun" in json.dumps(client.of("tool_call_update")))
            client.process.send_signal(signal.SIGKILL)
            with pytest.raises(ConnectionError):
                await turn
        async with editor(tmp_path / "home", *model(server)) as client:
            await client.initialize()
            await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            answer = await client.prompt(session, "Go on.")
            code = await client.end()
    assert (answer["stopReason"], code) == ("end_turn", 0)
    assert left_of("sleep 61") == []


@pytest.mark.parametrize("how", ["eof", "term"])
async def test_the_end_of_the_client_ends_everything(tmp_path: Path, how: str) -> None:
    async with (
        ScriptedServer(script(run("echo begun; sleep 62"))) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: "begun" in json.dumps(client.of("tool_call_update")))
        if how == "term":
            client.process.terminate()
            code = await asyncio.wait_for(client.process.wait(), 90)
        else:
            code = await client.end()
        answer = await turn
    assert (code, answer["stopReason"]) == (143 if how == "term" else 0, "cancelled")
    assert left_of("sleep 62") == []


async def test_without_a_model_the_client_is_shown_how_to_sign_in(tmp_path: Path) -> None:
    async with editor(tmp_path / "home") as client:
        started = await client.initialize(auth={"terminal": True})
        with pytest.raises(RefusedByAgentError) as refused:
            await client.new(tmp_path)
        with pytest.raises(RefusedByAgentError) as still:
            await client.call("authenticate", methodId="login")
        with pytest.raises(RefusedByAgentError) as wrong:
            await client.call("authenticate", methodId="magic")
    (method,) = started["authMethods"]
    assert (method["type"], method["args"]) == ("terminal", ["start"])
    assert refused.value.code == still.value.code == -32000
    assert refused.value.message.startswith("Authentication required: No model is configured")
    assert "treadle login" in refused.value.message
    assert wrong.value.code == -32602


@pytest.mark.parametrize("folder", ["relative", "/", "/no/such/folder"])
async def test_a_folder_that_cannot_be_worked_in_is_refused(tmp_path: Path, folder: str) -> None:
    async with ScriptedServer(script()) as server, editor(tmp_path / "home", *model(server)) as client:
        await client.initialize()
        with pytest.raises(RefusedByAgentError) as refused:
            await client.call("session/new", cwd=folder, mcpServers=[])
    assert refused.value.code == -32602


async def test_further_folders_belong_to_the_session(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "there.txt").write_text("found it\n")
    steps = (make("read_file", path=str(other / "there.txt")),)
    async with ScriptedServer(script(*steps)) as server, editor(tmp_path / "home", *model(server)) as client:
        await client.initialize()
        (tmp_path / "ws").mkdir()
        session = await client.new(tmp_path / "ws", additionalDirectories=[str(other)])
        await client.prompt(session)
        sent = json.dumps(server.requests[-1].body)
    assert "found it" in sent
    assert client.asked == []


async def test_a_turn_that_waits_is_cancelled_when_its_session_is_closed(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(Turn(items=(Wait(seconds=60),)),))) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: server.requests)
        await client.call("session/close", sessionId=session)
        answer = await turn
    assert answer["stopReason"] == "cancelled"


async def test_a_choice_before_the_first_prompt_holds(tmp_path: Path) -> None:
    async with ScriptedServer(script(EDIT)) as server, working(tmp_path, server) as (client, session, folder):
        await client.call("session/set_mode", sessionId=session, modeId="edits")
        client.answers["session/request_permission"] = choosing("reject_once")
        await client.prompt(session)
        assert (folder / "a.txt").read_text() == "one\n"
    assert client.asked == []


async def test_a_session_in_which_nothing_was_said_can_be_resumed(tmp_path: Path) -> None:
    async with ScriptedServer(script()) as server:
        async with working(tmp_path, server) as (client, session, folder):
            await client.end()
        async with editor(tmp_path / "home", *model(server)) as client:
            await client.initialize()
            await client.call("session/resume", sessionId=session, cwd=str(folder))
            answer = await client.prompt(session)
    assert answer["stopReason"] == "end_turn"


async def test_a_prompt_that_is_cancelled_at_once_does_not_run(tmp_path: Path) -> None:
    async with ScriptedServer(script()) as server, working(tmp_path, server) as (client, session, folder):
        for number in range(300):
            (folder / f"{number}.txt").write_text("x\n" * 1000)
        text = " ".join(f"@{number}.txt" for number in range(300))
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        client.tell("session/cancel", sessionId=session)
        answer = await turn
        after = await client.prompt(session, "And now?")
    assert (answer["stopReason"], after["stopReason"]) == ("cancelled", "end_turn")
    assert len(server.requests) == 1


def test_the_servers_of_a_client_are_taken_over() -> None:
    named = [
        {"name": "git", "command": "mcp-git", "args": ["-v"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "web", "url": "https://mcp.test/", "headers": [{"name": "X", "value": "y"}]},
        {"type": "sse", "name": "old", "url": "https://mcp.test/sse", "headers": []},
    ]
    request = msgspec.convert({"cwd": "/w", "mcpServers": named}, OpenRequest)
    assert [server_of(server) for server in request.mcp_servers or ()] == [
        McpServer(name="git", command="mcp-git", args=("-v",), env={"A": "b"}),
        McpServer(name="web", transport=ServerTransport.HTTP, url="https://mcp.test/", headers={"X": "y"}),
        McpServer(name="old", transport=ServerTransport.SSE, url="https://mcp.test/sse"),
    ]


async def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    async with ScriptedServer(script()) as server, editor(tmp_path / "home", *model(server)) as client:
        await client.initialize()
        (tmp_path / "ws").mkdir()
        inside = [{"type": "acp", "name": "mine", "serverId": "1"}]
        with pytest.raises(RefusedByAgentError) as refused:
            await client.call("session/new", cwd=str(tmp_path / "ws"), mcpServers=inside)
    assert refused.value.code == -32602
    assert "mine" in refused.value.message
