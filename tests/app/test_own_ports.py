"""`/ports`: the servers of a session's commands, opened on this machine for a person, also for an attached one."""

import asyncio
import http.client
import re
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.app.rehearsal import ME, call, run
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.processes.attaching import attach_session
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.app.session.own_commands.command_answers import CommandAnswer
from treadle.app.session.shared.remote import RemoteSession
from treadle.app.slash import do_command
from treadle.protocol.events import Prompt
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import TurnEnded
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SERVES = call("execute_command", command="exec python3 -m http.server 8177", background=True)
WAITS = run("for i in $(seq 100); do curl -sf localhost:8177 >/dev/null && break; sleep 0.1; done")
ENDS = run("pkill -f http.server; sleep 0.5; true")


@asynccontextmanager
async def session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *prompts: list[MakeCall]
) -> AsyncIterator[tuple[LiveSession, Settings]]:
    """A session whose model does what each prompt is answered with."""
    bubblewrap()
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    for made in (tmp_path / "home", folder):
        made.mkdir()
    (folder / "index.html").write_text("made here")
    done = call("attempt_completion", result="Done.")
    turns = tuple(Turn(items=(one,)) for calls in prompts for one in (*calls, done))
    async with ScriptedServer(Script(turns=turns)) as server:
        settings = Settings(
            model="anthropic-compatible/scripted",
            tool_protocol=ToolProtocol.NATIVE,
            base_url=server.base_url,
            mode=Mode.AUTO,
        )
        opening = Opening(
            workspace=folder, settings=settings, user_present=False, trust=session_trust(folder, once=True)
        )
        async with await open_session(opening) as live, asyncio.timeout(90):
            live.keep()
            yield live, settings


async def work(live: LiveSession) -> None:
    feed = live.follow()
    await live.post(Prompt(id=f"p{id(feed)}", content=(Text(text="Try."),)), ME)
    async for notification in feed:
        if isinstance(notification, TurnEnded):
            return


async def entered(where: LiveSession | RemoteSession, argument: str = "") -> CommandAnswer:
    return await asyncio.to_thread(do_command, "ports", argument, where)


def fetch(url: str, host: str = "") -> str:
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.code)


async def test_a_person_opens_the_port_of_a_server_and_it_closes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with session(tmp_path, monkeypatch, [SERVES, WAITS], [ENDS]) as (live, _):
        assert (await entered(live)).text == "No command of this session listens on a port."
        await work(live)
        assert re.match(r"8177 \(python3, \d+\)\nWrite /ports", (await entered(live)).text)
        said = (await entered(live, "8177")).text
        url = said.removeprefix("Open it: ").split()[0]
        assert (url, await asyncio.to_thread(fetch, url)) == ("http://127.0.0.1:8177", "made here")
        assert await asyncio.to_thread(fetch, url, "evil.example:8177") == "421"
        assert await asyncio.to_thread(fetch, url, "localhost:8177") == "made here"
        assert url in (await entered(live)).text
        await work(live)
        assert (await entered(live)).text == "No command of this session listens on a port."
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(fetch, url)


async def test_a_server_that_comes_after_the_one_whose_port_was_opened_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = run("pkill -f http.server; while curl -s localhost:8177; do sleep 0.01; done; echo over")
    async with session(tmp_path, monkeypatch, [SERVES, WAITS], [another, SERVES, WAITS], [ENDS]) as (live, _):
        await work(live)
        url = (await entered(live, "8177")).text.split()[2]
        assert await asyncio.to_thread(fetch, url) == "made here"
        held, writer = await asyncio.open_connection("127.0.0.1", 8177)
        await work(live)
        assert await held.read() == b"", "a connection to the first one has ended"
        writer.close()
        with pytest.raises((urllib.error.URLError, ConnectionError, http.client.RemoteDisconnected)):
            await asyncio.to_thread(fetch, url)
        assert url not in (await entered(live)).text
        url = (await entered(live, "8177")).text.split()[2]  # another test may have taken the number meanwhile
        assert await asyncio.to_thread(fetch, url) == "made here", "it is opened again by a person"
        await work(live)
        while not await asyncio.to_thread(is_free, 8177):  # nobody looks
            await asyncio.sleep(0.05)


async def test_a_server_that_listens_anew_is_the_same_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anew = "while True: h.HTTPServer(('', 8177), h.SimpleHTTPRequestHandler).handle_request()"
    serves = call("execute_command", command=f'exec python3 -c "import http.server as h\n{anew}"', background=True)
    async with session(tmp_path, monkeypatch, [serves, WAITS]) as (live, _):
        await work(live)
        url = (await entered(live, "8177")).text.split()[2]
        assert [await asyncio.to_thread(fetch, url) for _ in range(3)] == ["made here"] * 3


def is_free(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) != 0


async def test_where_the_number_is_taken_another_one_is_opened_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 8177)
    async with taken, session(tmp_path, monkeypatch, [SERVES, WAITS]) as (live, _):
        await work(live)
        url = (await entered(live, "8177")).text.split()[2]
        assert not url.endswith(":8177")
        assert await asyncio.to_thread(fetch, url) == "made here"
        assert (await entered(live, "close 8177")).text == "Port 8177 is closed on this machine."
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(fetch, url)


async def test_an_attached_terminal_lists_and_opens_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with session(tmp_path, monkeypatch, [SERVES, WAITS]) as (live, settings):
        await work(live)
        async with await attach_session(live.id, tmp_path / "work", settings) as remote:
            assert await entered(remote) == await entered(live)
            url = (await entered(remote, "8177")).text.split()[2]
            assert await asyncio.to_thread(fetch, url) == "made here"


@pytest.mark.parametrize(("said", "part"), [("9", "listens on port 9"), ("odd", "Write /ports"), ("close 5", "port 5")])
async def test_what_cannot_be_opened_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, part: str
) -> None:
    async with session(tmp_path, monkeypatch) as (live, _):
        answer = await entered(live, said)
        assert (part in answer.text, answer.warning) == (True, True)
