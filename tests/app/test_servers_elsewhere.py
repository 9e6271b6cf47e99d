"""`/mcp` for a session of another process: asked over its socket, and done where its servers are."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.mcp.hubs import FAKE
from tests.orphans import no_orphans
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.processes.attaching import attach_session
from treadle.app.session.live import LiveSession
from treadle.app.session.own_commands.command_answers import CommandAnswer
from treadle.app.session.shared.remote import RemoteSession
from treadle.app.slash import do_command

__all__ = ["no_orphans"]

SETTINGS = Settings(model="openai/one", base_url="http://localhost:1/v1")


@asynccontextmanager
async def attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *behaviour: str
) -> AsyncIterator[tuple[LiveSession, RemoteSession]]:
    """A session, with a server that behaves so if that is said, and a surface that is attached to it."""
    home, folder = tmp_path / "home", tmp_path / "ws"
    monkeypatch.setenv("TREADLE_HOME", str(home))
    for made in (home, folder):
        made.mkdir()
    if behaviour:
        entry = {"command": sys.executable, "args": [str(FAKE), *behaviour]}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    opening = Opening(workspace=folder, settings=SETTINGS, user_present=True)
    async with await open_session(opening) as live, asyncio.timeout(90):
        live.keep()
        # It lets others in a moment after it was opened, and is waited for.
        async with await attach_session(live.id, folder, SETTINGS) as remote:
            yield live, remote


async def entered(session: LiveSession | RemoteSession, argument: str = "") -> CommandAnswer:
    return await asyncio.to_thread(do_command, "mcp", argument, session)


async def test_the_state_of_servers_is_the_same_in_the_session_and_where_one_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attached(tmp_path, monkeypatch, "elsewhere") as (live, remote):
        own, other = await entered(live), await entered(remote)
        assert own == other
        assert "fake  connected" in other.text
        assert "new (asks at its first use): echo" in other.text


async def test_a_yes_of_an_attached_person_is_to_the_tools_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attached(tmp_path, monkeypatch, "elsewhere") as (live, remote):
        assert live.servers is not None
        assert (await entered(remote, "approve nobody")).warning
        said = await entered(remote, "approve fake")
        assert (said.text, said.warning) == ("Approved as they are now: echo, big, slow, die, reads", False)
        assert live.servers.unapproved() == frozenset()
        assert (await entered(remote, "odd")).text == "Write /mcp, /mcp approve NAME or /mcp reconnect NAME."
        assert "again" in (await entered(remote, "reconnect fake")).text


async def test_a_session_without_servers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with attached(tmp_path, monkeypatch) as (live, remote):
        assert (await entered(remote)) == (await entered(live))
        assert (await entered(remote)).text.startswith("No MCP servers are used here.")


async def test_a_prompt_is_completed_for_an_attached_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with attached(tmp_path, monkeypatch, "prompts") as (live, remote):
        assert live.servers is not None
        await live.servers.hub.settled(90)
        words = await asyncio.to_thread(remote.servers.complete, ("fake", "weather"), "O")
        assert list(words[:2]) == ["Oslo", "'New York'"]


async def test_a_connection_that_is_lost_meanwhile_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with attached(tmp_path, monkeypatch, "silent") as (_, remote):
        asking = asyncio.create_task(entered(remote))
        while not remote._waiting:
            await asyncio.sleep(0.01)
        assert remote._line._writer is not None
        remote._line._writer.transport.abort()
        said = await asking
    assert said.warning
    assert "the connection to the session is lost" in said.text
