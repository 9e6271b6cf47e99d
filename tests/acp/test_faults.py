"""What goes wrong in the middle: requests that are taken back, odd input of the client and of the model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import RefusedByAgentError, editor, working
from tests.e2e.faults.driving import DONE, make, run, script
from tests.e2e.running import model
from treadle.providers.scripted.script import Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer


async def test_a_session_whose_closing_is_taken_back_is_closed_whole(tmp_path: Path) -> None:
    turns = tuple(Turn(items=(Wait(seconds=60),)) for _ in range(9))
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        for moment in range(4):
            seen = len(server.requests)
            turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
            while len(server.requests) == seen:
                await asyncio.sleep(0.01)
            closing = client.begin("session/close", sessionId=session)
            number = max(client.waiting)
            await asyncio.sleep(moment * 0.003)
            client.tell("$/cancel_request", requestId=number)
            await asyncio.gather(closing, return_exceptions=True)
            try:
                await client.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            except RefusedByAgentError:  # it was taken back before it began
                client.tell("session/cancel", sessionId=session)
            assert (await turn)["stopReason"] == "cancelled"


@pytest.mark.parametrize("value", [10**30, -(10**30), "\ud800"])
async def test_arguments_that_no_tool_takes_do_not_keep_a_turn_from_its_end(tmp_path: Path, value: Any) -> None:
    turns = (Turn(items=(make("read_file", path="a.txt", start_line=value),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        assert (await client.prompt(session))["stopReason"] == "end_turn"


@pytest.mark.parametrize("params", [{"cursor": "9" * 5_000}, {"cursor": "-1"}, {"cwd": "a\0b"}, {"cwd": "relative"}])
async def test_a_list_that_cannot_be_is_refused_as_the_clients_mistake(tmp_path: Path, params: dict[str, Any]) -> None:
    async with editor(tmp_path / "home") as client:
        await client.initialize()
        with pytest.raises(RefusedByAgentError) as refused:
            await client.call("session/list", **params)
    assert refused.value.code == -32602


@pytest.mark.parametrize("variable", ["", "sk-of-the-environment"])
async def test_signing_out_forgets_the_stored_key(tmp_path: Path, variable: str) -> None:
    home, folder = tmp_path / "home", tmp_path / "ws"
    for one in (home, folder):
        one.mkdir()
    stored = home / "auth.json"
    stored.write_text('{"keys": {"anthropic": "sk-of-the-file", "openai": "sk-other"}}')
    stored.chmod(0o600)
    async with editor(home, "--model", "anthropic/claude-sonnet-4-5", ANTHROPIC_API_KEY=variable) as client:
        capabilities = (await client.initialize())["agentCapabilities"]
        await client.new(folder)
        if variable:
            with pytest.raises(RefusedByAgentError, match="comes from ANTHROPIC_API_KEY"):
                await client.call("logout")
        else:
            assert await client.call("logout") == {}
            assert await client.call("logout") == {}
            with pytest.raises(RefusedByAgentError, match="Authentication required"):
                await client.new(folder)
    assert capabilities["auth"] == {"logout": {}}
    assert json.loads(stored.read_text())["keys"] == {"openai": "sk-other"}


async def test_a_document_that_is_not_base64_is_refused(tmp_path: Path) -> None:
    pdf = {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "%%%"}}
    async with (
        ScriptedServer(script()) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        with pytest.raises(RefusedByAgentError, match="not base64"):
            await client.call("session/prompt", sessionId=session, prompt=[pdf])


async def test_a_client_that_gives_no_terminal_is_shown_much_output_and_the_turn_ends(tmp_path: Path) -> None:
    turns = (Turn(items=(run("seq 200000"),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        working(tmp_path, server, "--mode", "full", terminal=True) as (client, session, _),
    ):
        client.answers["terminal/create"] = lambda _: asyncio.get_running_loop().create_future()
        assert (await client.prompt(session))["stopReason"] == "end_turn"
        shown = json.dumps(client.of("tool_call_update", session)[-1])
    assert "200000" in shown


async def test_a_folder_for_temporary_files_with_a_long_name_leaves_the_output_in_the_call(tmp_path: Path) -> None:
    long = tmp_path / ("t" * 120)
    long.mkdir()
    folder = tmp_path / "ws"
    folder.mkdir()
    turns = (Turn(items=(run("echo seen"),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        editor(tmp_path / "home", *model(server), "--mode", "full", TMPDIR=str(long)) as client,
    ):
        await client.initialize(terminal=True)
        session = await client.new(folder)
        await client.prompt(session)
        assert "seen" in json.dumps(client.of("tool_call_update"))
        assert await client.end() == 0
        assert client.process.stderr is not None
        assert await client.process.stderr.read() == b""
    assert [path.name for path in long.iterdir() if path.name.startswith("treadle-")] == []
