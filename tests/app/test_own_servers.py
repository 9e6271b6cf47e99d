"""A session in which commands, web_fetch and the browser meet the servers that it started, and nobody else's."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.app.rehearsal import call, rehearse, run
from tests.needed import require
from tests.workspace.sandbox.running import bubblewrap
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Outcome
from treadle.workspace.namespaces.listeners import CommandServers
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.network.gateway import Gateway
from treadle.workspace.searching.search import find_ripgrep

SERVES = (
    "python3 -m http.server 8123 >/dev/null 2>&1 & echo $! > pid; "
    "for i in $(seq 100); do curl -sf localhost:8123 >/dev/null && break; sleep 0.1; done"
)
FETCH = call("web_fetch", url="http://localhost:8123/")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bubblewrap()
    (tmp_path / "index.html").write_text("<h1>Made here</h1>")
    return tmp_path


async def test_a_server_is_fetched_called_and_ended_without_a_question(folder: Path) -> None:
    calls = [
        run(SERVES),
        FETCH,
        run("curl -s localhost:8123"),
        run("kill $(cat pid); sleep 0.5; curl -s localhost:8123"),
    ]
    found = await rehearse(folder, calls, mode=Mode.AUTO)
    started, fetched, called, ended = found.texts[:4]
    assert found.asked == []
    assert "It listens on localhost:8123" in started
    assert "Made here" in fetched
    assert "Made here" in called
    assert "Made here" not in ended
    assert [one.outcome for one in found.results[:4]] == [Outcome.OK, Outcome.OK, Outcome.OK, Outcome.FAILED]


async def test_the_browser_sees_the_same_server(folder: Path) -> None:
    require("chromium")
    found = await rehearse(
        folder, [run(SERVES), call("browser_action", action="launch", url="http://localhost:8123/")], mode=Mode.AUTO
    )
    assert (found.asked, found.results[1].outcome) == ([], Outcome.OK)


async def test_what_the_machine_serves_at_the_same_port_is_still_asked_about(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 8123)):
        found = await rehearse(folder, [FETCH], mode=Mode.AUTO)
    assert (found.asked, "needs approval" in found.texts[0]) == ([], True), "nobody is there, so it is denied"


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[CommandServers, SessionNamespaces, socket.socket]]:
    """Listen on a port inside from outside, as a command would."""
    bubblewrap()
    shared = SessionNamespaces()
    assert shared.holder() is not None
    try:
        with shared.socket(socket.AF_INET6, socket.SOCK_STREAM) as listening:
            listening.bind(("::1", 8124))
            listening.listen()
            yield CommandServers(lambda: shared), shared, listening
    finally:
        shared.close()


async def test_ports_are_known_also_of_what_listens_on_the_newer_loopback_alone() -> None:
    async with serving() as (servers, _, listening):
        assert servers.ports() == frozenset({8124})
        assert servers.listening() == (), "Treadle itself listens, and names only what commands listen on"
        assert (servers.answer("localhost", 8124), servers.answer("example.com", 8124)) == (True, False)
        reader, writer = await servers.connect(8124)
        inner, _ = listening.accept()
        inner.sendall(b"hello")
        assert await reader.readexactly(5) == b"hello"
        inner.close()
        writer.close()
        with pytest.raises(OSError, match="nothing listens on port 9 of the session"):
            await servers.connect(9)


async def test_no_page_of_the_web_reaches_a_server_of_the_session() -> None:
    async with serving() as (servers, _, _listening):
        gateway = Gateway(servers=servers)
        proxy = urlsplit(await gateway.start())

        async def status() -> bytes:
            reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port)
            writer.write(b"CONNECT localhost:8124 HTTP/1.1\r\n\r\n")
            answer = await reader.readline()
            writer.close()
            return answer.split()[1]

        assert await status() == b"403"
        gateway.opens_own = True
        assert await status() == b"200"
        await gateway.close()


async def test_where_nothing_was_started_there_are_no_ports() -> None:
    assert CommandServers(lambda: None).ports() == frozenset()
    assert CommandServers(SessionNamespaces).listening() == ()


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.ASK, Mode.PLAN])
async def test_commands_find_the_program_that_searches_and_nothing_else_of_ours(folder: Path, mode: Mode) -> None:
    assert find_ripgrep(os.environ)
    found = await rehearse(folder, [run("rg -l Made && ls -A /tmp/.treadle-programs 2>/dev/null | cat")], mode=mode)
    assert (found.asked, found.texts[0].splitlines()[1:3] in (["index.html", "rg"], ["index.html"])) == ([], True)
