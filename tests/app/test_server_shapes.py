"""MCP servers in the files of several programs: each is read as its own program reads it, or named with why not."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.config.places import config_file, servers_file
from treadle.app.config.server_files import read_entries
from treadle.app.security.trusted_servers import server_lines
from treadle.app.security.trusting import session_trust
from treadle.app.servers.configured import Configured, configured_servers
from treadle.protocol.servers import McpServer, ServerTransport
from treadle.store.activation import SERVER_FILES

STDIO, HTTP, SSE = ServerTransport.STDIO, ServerTransport.HTTP, ServerTransport.SSE
LOCAL = McpServer(name="a", command="npx", args=("-y", "tool"))
REMOTE = McpServer(name="a", transport=HTTP, url="https://a.example/mcp")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEY", "secret")
    for name in ("MISSING", "OTHER", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    return (tmp_path / "work").resolve()


def found(folder: Path, files: dict[str, Any]) -> Configured:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return configured_servers(session_trust(folder, once=True))


def usual(**entry: Any) -> dict[str, Any]:
    return {"mcpServers": {"a": entry}}


CODEX = '[mcp_servers.a]\ncommand = "npx"\nargs = ["-y", "tool"]\n'
SHAPES: list[tuple[str, Any, McpServer]] = [
    (".mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".mcp.json", "\ufeff" + json.dumps(usual(command="npx", args=["-y", "tool"])), LOCAL),
    (".mcp.json", usual(type="stdio", command="npx", args=["-y", "tool"], env={}, description="d"), LOCAL),
    (".mcp.json", usual(command=["npx", "-y", "tool"]), LOCAL),
    (".mcp.json", usual(type="http", url="https://a.example/mcp"), REMOTE),
    (".mcp.json", usual(type="streamable-http", url="https://a.example/mcp"), REMOTE),
    (".mcp.json", usual(url="https://a.example/mcp"), REMOTE),
    (
        ".mcp.json",
        usual(type="sse", url="https://a.example/sse"),
        McpServer(name="a", transport=SSE, url="https://a.example/sse"),
    ),
    (
        ".mcp.json",
        usual(command="x", env={"PORT": 3000, "ON": True}),
        McpServer(name="a", command="x", env={"PORT": "3000", "ON": "true"}),
    ),
    (".mcp.json", usual(command="x", env=None, args=None), McpServer(name="a", command="x")),
    (".mcp.json", usual(command="x", timeout=600_000), McpServer(name="a", command="x", call_seconds=600)),
    (".mcp.json", usual(command="x", disabled=True), McpServer(name="a", command="x", enabled=False)),
    (
        ".mcp.json",
        usual(command="${KEY}/x", args=["--k=${KEY}", "${OTHER:-b}"], env={"K": "${KEY}"}),
        McpServer(name="a", command="secret/x", args=("--k=secret", "b"), env={"K": "secret"}),
    ),
    (
        ".mcp.json",
        usual(type="http", url="https://${OTHER:-a.example}/mcp", headers={"Authorization": "Bearer ${KEY}"}),
        McpServer(name="a", transport=HTTP, url="https://a.example/mcp", headers={"Authorization": "Bearer secret"}),
    ),
    (
        ".mcp.json",
        usual(command="x", args=["${CLAUDE_PROJECT_DIR:-.}"]),
        McpServer(name="a", command="x", args=("FOLDER",)),
    ),
    (".cursor/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".cursor/mcp.json", usual(url="https://a.example/mcp"), REMOTE),
    (".cursor/mcp.json", usual(transport={"type": "http", "url": "https://a.example/mcp"}), REMOTE),
    (
        ".cursor/mcp.json",
        usual(command="${workspaceFolder}/x", args=["${userHome}", "${env:KEY}"]),
        McpServer(name="a", command="FOLDER/x", args=("HOME", "secret")),
    ),
    (
        ".vscode/mcp.json",
        {"servers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "tool"]}}, "inputs": []},
        LOCAL,
    ),
    (
        ".vscode/mcp.json",
        '{\n  // the servers\n  "servers": {"a": {"url": "https://a.example/mcp"},},\n  /* none */ "inputs": []\n}',
        REMOTE,
    ),
    (".vscode/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".codex/config.toml", CODEX, LOCAL),
    (
        ".codex/config.toml",
        f'm = 1\n{CODEX}env_vars = ["KEY"]\nstartup_timeout_sec = 20\ntool_timeout_sec = 9\nenv = {{X = "1"}}\n',
        McpServer(
            name="a",
            command="npx",
            args=("-y", "tool"),
            env={"KEY": "secret", "X": "1"},
            connect_seconds=20,
            call_seconds=9,
        ),
    ),
    (
        ".codex/config.toml",
        '[mcp_servers.a]\nurl = "https://a.example/mcp"\nbearer_token_env_var = "KEY"\nenabled = false\n',
        McpServer(
            name="a",
            transport=HTTP,
            url="https://a.example/mcp",
            headers={"Authorization": "Bearer secret"},
            enabled=False,
        ),
    ),
    (
        ".codex/config.toml",
        '[mcp_servers]\na = {url = "https://a.example/mcp", env_http_headers = {X = "KEY"}}\n',
        McpServer(name="a", transport=HTTP, url="https://a.example/mcp", headers={"X": "secret"}),
    ),
    (".gemini/settings.json", {"theme": "t", **usual(httpUrl="https://a.example/mcp", trust=True)}, REMOTE),
    (
        ".gemini/settings.json",
        usual(url="https://a.example/sse", timeout=5000),
        McpServer(name="a", transport=SSE, url="https://a.example/sse", call_seconds=5),
    ),
    (
        ".gemini/settings.json",
        usual(command="npx", args=["-y", "tool"], env={"K": "$KEY", "L": "${KEY}"}),
        McpServer(name="a", command="npx", args=("-y", "tool"), env={"K": "secret", "L": "secret"}),
    ),
    ("opencode.json", {"mcp": {"a": {"type": "local", "command": ["npx", "-y", "tool"]}}}, LOCAL),
    (
        "opencode.jsonc",
        '{"mcp": {"a": {"type": "remote", "url": "https://a.example/mcp", "enabled": true}}} // end',
        REMOTE,
    ),
    (
        ".opencode/opencode.json",
        {"mcp": {"a": {"type": "local", "command": ["x"], "environment": {"K": "{env:KEY}"}, "enabled": False}}},
        McpServer(name="a", command="x", env={"K": "secret"}, enabled=False),
    ),
    (".roo/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".kilocode/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".amazonq/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".junie/mcp/mcp.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
    (".windsurf/mcp_config.json", usual(command="npx", args=["-y", "tool"]), LOCAL),
]


@pytest.mark.parametrize(("name", "content", "wanted"), SHAPES)
def test_a_server_is_what_its_own_program_takes_it_for(
    folder: Path, name: str, content: Any, wanted: McpServer
) -> None:
    read = found(folder, {name: content})
    assert (read.notices, [one.problem for one in read.servers]) == ((), [""])
    for text, instead in ((str(folder), "FOLDER"), (str(folder.parent), "HOME")):
        read = Configured(servers=tuple(_replaced(one, text, instead) for one in read.servers))
    assert [one.server for one in read.servers] == [wanted]
    shown = list(server_lines(session_trust(folder, once=True).trust))
    assert any(line.startswith(("  starts a:", "  connects to a:")) for line in shown)


def _replaced(one: Any, text: str, instead: str) -> Any:
    return msgspec.json.decode(msgspec.json.encode(one).replace(text.encode(), instead.encode()), type=type(one))


NAMED: list[tuple[str, Any, str]] = [
    (".mcp.json", usual(command="x", args=["${MISSING}"]), "the variable MISSING is not set"),
    (
        ".mcp.json",
        usual(command="x", env={"A": "${MISSING}", "B": "${OTHER}"}),
        "the variables MISSING, OTHER are not set",
    ),
    (
        ".mcp.json",
        usual(type="http", url="https://x", headers={"A": "${input:the-key}"}),
        "it needs ${input:the-key}, which only an editor can give",
    ),
    (".vscode/mcp.json", {"servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}, "it needs ${input:key}"),
    (".cursor/mcp.json", usual(command="${env:MISSING}"), "the variable MISSING is not set"),
    (".gemini/settings.json", usual(command="x", env={"K": "$MISSING"}), "the variable MISSING is not set"),
    (
        "opencode.json",
        {"mcp": {"a": {"type": "local", "command": ["x", "{env:MISSING}"]}}},
        "the variable MISSING is not set",
    ),
    (".codex/config.toml", f'{CODEX}env_vars = ["MISSING"]\n', "the variable MISSING is not set"),
    (".mcp.json", {"mcpServers": {"a": "x"}}, "its entry is not a table"),
    (".cursor/mcp.json", usual(command="uvx", args=["treadle", "mcp", "serve"]), "it is Treadle itself"),
    (".mcp.json", usual(command="/opt/bin/treadle", args=["mcp", "serve"]), "it is Treadle itself"),
    (".mcp.json", usual(type="ws", url="wss://x"), "ws is not a transport"),
    (".mcp.json", usual(args=["x"]), "it has no url"),
    (".mcp.json", usual(command="x", args="-y tool"), "its entry has a mistake"),
]


@pytest.mark.parametrize(("name", "content", "says"), NAMED)
def test_a_server_that_cannot_be_used_says_why(folder: Path, name: str, content: Any, says: str) -> None:
    (one,) = found(folder, {name: content}).servers
    assert says in one.problem


FILES: list[tuple[dict[str, Any], list[str]]] = [
    ({".mcp.json": "{"}, ["The MCP servers of .mcp.json are not used: it is not valid JSON"]),
    ({".mcp.json": "[]"}, ['The MCP servers of .mcp.json are not used: it holds no table "mcpServers".']),
    ({".mcp.json": {"a": {"command": "x"}}}, ['of .mcp.json are not used: it holds no table "mcpServers".']),
    (
        {".codex/config.toml": "mcp_servers = 1"},
        ['of .codex/config.toml are not used: it holds no table "mcp_servers".'],
    ),
    ({".codex/config.toml": "[mcp_servers"}, ["of .codex/config.toml are not used: it is not valid TOML"]),
    ({".mcp.json": {}, ".vscode/mcp.json": {"inputs": []}, ".cursor/mcp.json": ""}, []),
    (
        {".codex/config.toml": 'model = "m"', ".gemini/settings.json": {"theme": "t"}, "opencode.json": {"model": "m"}},
        [],
    ),
    ({".mcp.json": usual(command="x"), ".cursor/mcp.json": usual(command="x")}, []),
    (
        {".mcp.json": usual(command="x"), ".vscode/mcp.json": usual(command="y")},
        ["a of .vscode/mcp.json is not used: there is another one"],
    ),
    ({".mcp.json": usual(command="x", disabledTools=["t"])}, ["a of .mcp.json is used without its disabledTools."]),
    ({".vscode/mcp.json": usual(command="x", envFile="${workspaceFolder}/.env")}, ["is used without its envFile."]),
]


@pytest.mark.parametrize(("files", "says"), FILES)
def test_what_of_a_file_is_not_used_is_said(folder: Path, files: dict[str, Any], says: list[str]) -> None:
    notices = found(folder, files).notices
    assert len(notices) == len(says)
    assert all(words in notice for words, notice in zip(says, notices, strict=True))


def test_of_other_settings_only_those_that_name_servers_are_asked_about(folder: Path) -> None:
    found(folder, {".codex/config.toml": 'model = "m"', ".gemini/settings.json": {"theme": "t"}, "opencode.json": {}})
    assert session_trust(folder).items == ()
    found(folder, {".codex/config.toml": CODEX})
    assert [item.path for item in session_trust(folder).items] == [".codex/config.toml"]
    assert found(folder, {}).servers[0].server == LOCAL
    assert configured_servers(session_trust(folder)).servers == (), "a folder that is not trusted starts nothing"


@given(st.sampled_from(SERVER_FILES), st.binary(max_size=60) | st.sampled_from([b'{"mcp":[]}', b"[mcp_servers]\na=1"]))
def test_no_content_breaks_the_reading(name: str, content: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(read_entries(name, content), dict)


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://example.org/${KEY}/mcp"},
        {"url": "https://example.org/mcp", "headers": {"X-Key": "Bearer ${KEY:-none}"}},
        {"command": "server", "env": {"K": "${env:KEY}"}},
        {"command": "server", "args": ["--key=${KEY}"]},
    ],
)
@pytest.mark.parametrize("key", ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_OWN"])
def test_the_key_of_a_provider_goes_to_the_servers_of_the_user_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], key: str
) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('[providers.groq]\napi_key_env = "MY_OWN"\n')
    content = json.loads(json.dumps({"mcpServers": {"one": entry}}).replace("KEY", key))
    monkeypatch.setenv(key, "sk-31415926")
    (one,) = found(folder, {".mcp.json": content}).servers
    assert one.problem.startswith(f"it wants ${{{key}}}, the key of a provider, which no server of a folder is given")
    assert "sk-31415926" not in repr(one)
    servers_file().write_text(json.dumps(content))
    (own,) = configured_servers(session_trust(folder)).servers
    assert (own.problem, "sk-31415926" in repr(own)) == ("", True)


def test_a_variable_that_is_not_set_or_holds_no_key_of_a_provider_is_filled_in_as_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TICKETS_TOKEN", "t-1")
    entry = {"command": "server", "env": {"K": "${OPENAI_API_KEY:-none}", "T": "${TICKETS_TOKEN}"}}
    (one,) = found(folder, {".mcp.json": {"mcpServers": {"one": entry}}}).servers
    assert (one.problem, one.server.env) == ("", {"K": "none", "T": "t-1"})
