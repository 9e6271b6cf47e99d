"""MCP servers as they are configured, confined, and given by the client of a session."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import left_of
from tests.mcp.hubs import FAKE
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.reports import server_checks
from treadle.app.reports.server_checks import longest_start, server_list
from treadle.app.security.trusted_servers import server_lines
from treadle.app.security.trusting import session_trust
from treadle.app.servers.configured import ServerOrigin, configured_servers, read_servers, server_secrets
from treadle.app.servers.denied import left_out_line
from treadle.app.servers.server_confining import readable_paths
from treadle.app.servers.server_prompts import filled_arguments
from treadle.mcp.states import DeclaredPrompt, ServerState
from treadle.protocol.errors import ToolError
from treadle.protocol.servers import McpServer, ServerTransport


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "ws").mkdir()
    return tmp_path / "home"


def read(entry: object, origin: ServerOrigin = ServerOrigin.USER) -> tuple[McpServer, str]:
    (one,) = read_servers(json.dumps({"mcpServers": {"a": entry}}).encode(), origin)
    return one.server, one.problem


def test_entries_of_claude_code_and_cline_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1")
    stdio = {"command": "npx", "args": ["-y", "${PKG:-pkg}"], "env": {"KEY": "${MY_KEY}"}, "timeout": 90}
    stdio |= {"alwaysAllow": ["one"], "disabled": True, "sandbox": False, "trusted": True}
    assert read(stdio) == (
        McpServer(
            name="a",
            command="npx",
            args=("-y", "pkg"),
            env={"KEY": "secret-1"},
            call_seconds=90.0,
            allowed=("one",),
            enabled=False,
            confined=False,
            trusted=True,
        ),
        "",
    )
    web = {"type": "streamableHttp", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${MY_KEY}"}}
    server = read(web)[0]
    assert (server.transport, server.headers) == (ServerTransport.HTTP, {"Authorization": "Bearer secret-1"})
    assert ("secret-1", "Authorization") in server_secrets([server])
    assert read({"type": "sse", "url": "http://a.example/sse"})[0].transport is ServerTransport.SSE


def test_a_folder_gives_its_servers_no_rights_of_the_user() -> None:
    entry = {"command": "x", "alwaysAllow": ["*"], "sandbox": False, "trusted": True, "sampling": True}
    assert read(entry, ServerOrigin.FOLDER) == (McpServer(name="a", command="x"), "")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("npx", "its entry is not a table"),
        ({}, "it has no url that begins with https:// or http://"),
        ({"type": "stdio"}, "it names no command"),
        ({"url": "file:///etc/passwd"}, "it has no url that begins with https:// or http://"),
        ({"command": "${NOT_SET_ANYWHERE}"}, "the variable NOT_SET_ANYWHERE is not set"),
        ({"type": "carrier-pigeon"}, "its entry has a mistake: carrier-pigeon is not a transport"),
        ({"command": "x", "args": [1, {}]}, "its entry has a mistake: "),
        ({"command": "x", "alwaysAllow": True}, "its entry has a mistake: "),
        ({"command": "x", "alwaysAllow": "echo"}, "its entry has a mistake: "),
        ({"command": "x", "trusted": "no"}, "its entry has a mistake: "),
        ({"command": "x", "timeout": -1}, "its entry has a mistake: a time limit is between 0 and 86,400 s"),
        ({"command": "x", "connectTimeout": "nan"}, "its entry has a mistake: a time limit is between 0 and 86,400 s"),
        ({"url": "https://["}, "its entry has a mistake: "),
        ({"url": "https://a.example:port/"}, "its entry has a mistake: "),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(entry: object, problem: str) -> None:
    assert read(entry)[1].startswith(problem)


def test_a_right_that_is_written_as_text_is_read_as_it_says() -> None:
    server = read({"command": "x", "trusted": "false", "sampling": "false", "sandbox": "true"})[0]
    assert server == McpServer(name="a", command="x")


def test_an_address_that_a_client_gives_and_nobody_can_read_stops_nothing(home: Path) -> None:
    given = McpServer(name="a", transport=ServerTransport.HTTP, url="https://[", headers={"Authorization": "Bearer x"})
    (one,) = configured_servers(session_trust(home.parent / "ws"), (given,)).servers
    assert (one.server, one.problem) == (McpServer(name="a"), "its entry has a mistake: Invalid IPv6 URL")


def test_the_password_in_an_address_is_a_secret() -> None:
    url = "https://me:pa%40ss-word@a.example/mcp?key=k-1"
    server = McpServer(name="a", transport=ServerTransport.HTTP, url=url)
    assert {value for value, _ in server_secrets([server])} == {"pa%40ss-word", "pa@ss-word", "k-1"}


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": []}', "\ud800", '{"mcpServers": ' + "[" * 5_000])
def test_a_file_that_is_none_stops_nothing(home: Path, content: str) -> None:
    (home / "mcp.json").write_bytes(content.encode(errors="surrogatepass"))
    found = configured_servers(session_trust(home.parent / "ws"), (McpServer(name="mine", command="x"),))
    assert [one.server.name for one in found.servers] == ["mine"]
    assert found.notices[0].startswith("The MCP servers of ")


def test_a_folder_cannot_take_the_name_of_a_server_of_the_user(home: Path) -> None:
    (home / "mcp.json").write_text('{"mcpServers": {"a": {"command": "mine"}}}')
    (home.parent / "ws" / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "theirs"}}}')
    found = configured_servers(session_trust(home.parent / "ws", once=True))
    assert [(one.server.command, one.origin) for one in found.servers] == [("mine", ServerOrigin.USER)]
    assert "another one with this name" in found.notices[0]


def test_what_a_folder_would_start_is_shown_exactly(home: Path) -> None:
    servers = {
        "a": {"command": "sh", "args": ["-c", "echo \x1b[2K"], "env": {"K": "${TOKEN}"}},
        "b": {"url": "https://b.example"},
    }
    (home.parent / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert list(server_lines(session_trust(home.parent / "ws").trust)) == [
        "  starts a: sh -c 'echo \\x1b[2K'  with K=${TOKEN}",
        "  connects to b: https://b.example",
    ]


def test_nothing_that_a_folder_would_start_is_left_out_or_shown_as_something_else(home: Path) -> None:
    long = "x" * 600
    servers = {
        "both": {"type": "http", "command": "harmless", "url": "https://b.example"},
        "odd": {"command": "odd", "env": ["K=V"], "args": "a b", "cwd": "/elsewhere"},
        "long": {"command": "sh", "args": ["-c", long]},
        **{f"s{number}": {"command": "x"} for number in range(60)},
    }
    (home.parent / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    lines = list(server_lines(session_trust(home.parent / "ws").trust))
    assert lines[:3] == [
        "  starts both: harmless",
        "  connects to both: https://b.example",
        '  starts odd: odd  with args="a b", cwd="/elsewhere", env=["K=V"]',
    ]
    assert lines[3].endswith("x… (112 more characters, see .mcp.json)")
    assert lines[-1] == "  starts s59: x"


def test_a_server_sees_its_program_and_no_secrets(tmp_path: Path) -> None:
    project = tmp_path / "app"
    (project / "src").mkdir(parents=True)
    (project / "package.json").write_text("{}")
    (project / "src" / "server.js").write_text("")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("")
    arguments = (str(project / "src" / "server.js"), str(tmp_path / ".ssh"), f"--key={tmp_path}/.ssh/id_rsa", "~", "/")
    found = set(readable_paths(McpServer(name="a", command="node", args=arguments), str(tmp_path)))
    assert {str(project / "src" / "server.js"), str(project)} <= found
    assert not [path for path in found if ".ssh" in path or path in ("/", str(Path.home()))]


def test_arguments_of_a_prompt_are_words_or_named() -> None:
    prompt = DeclaredPrompt(name="p", arguments=(("city", True), ("note", False)))
    assert filled_arguments(prompt, "Oslo take an umbrella") == {"city": "Oslo", "note": "take an umbrella"}
    assert filled_arguments(prompt, 'note=x "New York"') == {"city": "New York", "note": "x"}
    with pytest.raises(ToolError, match="It needs city"):
        filled_arguments(prompt, "")


async def test_servers_that_a_client_names_are_connected_to_and_end_with_the_session(home: Path) -> None:
    async def exchange(message: dict[str, Any]) -> dict[str, Any] | None:
        answers: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "calc", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        }
        return (
            {"result": answers[message["method"]]}
            if message["method"] in answers
            else {"error": {"code": 1, "message": ""}}
        )

    opening = Opening(
        workspace=home.parent / "ws",
        settings=Settings(model="openai/one", base_url="http://localhost:1/v1"),
        user_present=True,
        servers=(
            McpServer(name="calc", transport=ServerTransport.INSIDE),
            McpServer(name="fake", command=sys.executable, args=(str(FAKE), "client-named")),
            McpServer(name="lost", transport=ServerTransport.INSIDE),
            McpServer(name="nobody", command="~no-such-user/server", cwd="~no-such-user"),
        ),
        exchanges={"calc": exchange},
    )
    async with await open_session(opening) as live:
        assert live.servers is not None
        async with asyncio.timeout(90):
            await live.servers.hub.settled(90)
        assert {one.name: one.state for one in live.servers.hub.health()} == {
            "calc": ServerState.CONNECTED,
            "fake": ServerState.CONNECTED,
            "lost": ServerState.FAILED,
            "nobody": ServerState.FAILED,
        }
        assert {"mcp__calc__add", "mcp__fake__echo"} <= set(live.servers.hub.tools())
        assert live.servers.unapproved() == frozenset()
    assert left_of("client-named") == []


def test_servers_whose_tools_are_left_out_are_named_with_how_many() -> None:
    line = left_out_line([("one", 1, 0), ("two", 2, 1)])
    assert line.startswith("Tools of MCP servers that are not offered: one (1 tool), two (2 tools). ")
    assert "`treadle mcp tools two --approve`" in line
    assert left_out_line([]) == ""


def test_a_list_waits_as_long_as_servers_that_start_one_after_the_other_may_take() -> None:
    ten = [McpServer(name=str(number), command="x", connect_seconds=30.0) for number in range(10)]
    assert longest_start(ten) > 2 * 30.0
    assert longest_start(ten[:1]) > 30.0
    assert longest_start([McpServer(name="a", command="x", connect_seconds=30.0, enabled=False)]) < 30.0


async def test_a_list_shows_no_server_that_is_still_starting_and_says_which_are_slow(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_checks, "_SAID_AFTER", 0.01)
    entry = {"command": sys.executable, "args": [str(FAKE)], "sandbox": False}
    servers = {f"s{number}": entry for number in range(8)} | {"slow": {**entry, "args": [str(FAKE), "late"]}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    told: list[str] = []
    found = await server_list(session_trust(tmp_path / "ws"), connect=True, tell=told.append)
    assert {one.name: one.state for one in found} == dict.fromkeys(servers, ServerState.CONNECTED)
    (said,) = told
    names = said.removeprefix("Waiting for ").removesuffix(".").split(", ")
    assert names[-1] == "slow", "others may be there on a busy computer"
    assert [name for name in servers if name in names] == names
