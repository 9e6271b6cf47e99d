"""Real servers: each feature once, over each transport and in both eras."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.mcp.hubs import NODE, PEERS, call, hub_of, needs_node, peer, plan_of, text_of, until
from tests.needed import require
from treadle.engine.ports import Asked, PersonReply, ask_person
from treadle.mcp.callbacks import SampleAsked
from treadle.mcp.fixed_tools import AccessResource, resource_spec
from treadle.mcp.hub import McpHub
from treadle.mcp.states import ServerState
from treadle.protocol.messages import Image
from treadle.protocol.servers import McpServer, ServerEra, ServerTransport
from treadle.protocol.tools import CallResult, Origin, Outcome
from treadle.tools.images import served_image_of


async def resource(hub: McpHub, **arguments: Any) -> CallResult:
    """Read a resource as the model does."""
    return await (await AccessResource(hub, served_image_of, resource_spec()).prepare(arguments)).run(lambda _: None)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def everything_over(kind: str) -> AsyncIterator[str]:
    """Run the server of everything over HTTP; gives its address."""
    port = free_port()
    script = PEERS / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        str(script),
        kind,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def reached(kind: str) -> AsyncIterator[McpServer]:
    """The server of everything over its pipes, or over HTTP in one of its two forms."""
    if kind == "stdio":
        yield peer("everything")
        return
    async with everything_over(kind) as url:
        transport = ServerTransport.SSE if kind == "sse" else ServerTransport.HTTP
        yield McpServer(name="everything", transport=transport, url=url)


@pytest.mark.sample(2)
@needs_node
@pytest.mark.parametrize("era", [ServerEra.AUTO, ServerEra.LEGACY])
@pytest.mark.parametrize("kind", ["stdio", "streamableHttp", "sse"])
async def test_each_feature_of_a_server_works_once_over_each_transport(
    tmp_path: Path, kind: str, era: ServerEra
) -> None:
    asked: list[Asked] = []
    samples: list[SampleAsked] = []

    async def ask(one: Asked) -> PersonReply:
        asked.append(one)
        return PersonReply(accepted=True, values={"name": "Ada", "integer": 42} if one.form else {})

    async def sample(one: SampleAsked) -> tuple[str, str]:
        samples.append(one)
        return "scripted", "A poem."

    ask_person.set(ask)
    async with (
        reached(kind) as server,
        hub_of(tmp_path, replace(server, name="all", era=era, sampling=True), sample=sample) as hub,
    ):
        await until(lambda: "mcp__all__get-roots-list" in hub.tools())
        echo = await call(hub, "mcp__all__echo", message="hi\x1b[31m")
        assert (echo.outcome, echo.origin, text_of(echo)) == (Outcome.OK, Origin.SERVER, "Echo: hi\\x1b[31m")
        image = await call(hub, "mcp__all__get-tiny-image")
        assert [type(block) for block in image.content].count(Image) == 1
        shown: list[str] = []
        await call(hub, "mcp__all__trigger-long-running-operation", shown.append, duration=0.8, steps=4)
        # What is told in the moment in which the result comes may be too late; what is logged is shown besides.
        progress = [line for line in shown if line.endswith("/4\n")]
        assert progress == [f"{number}/4\n" for number in range(1, len(progress) + 1)]
        assert len(progress) >= 2
        structured = text_of(await call(hub, "mcp__all__get-structured-content", location="New York"))
        assert '"temperature"' in structured
        wrong = await call(hub, "mcp__all__get-sum", a="x")
        assert (wrong.outcome, "-32602" in text_of(wrong)) == (Outcome.FAILED, True)
        links = text_of(await call(hub, "mcp__all__get-resource-links", count=2))
        assert links.count("access_mcp_resource reads it]") == 2
        embedded = text_of(await call(hub, "mcp__all__get-resource-reference", resourceType="Text", resourceId=1))
        assert "[resource demo://resource/dynamic/text/1, text/plain]\nResource 1" in embedded
        assert str(tmp_path) in text_of(await call(hub, "mcp__all__get-roots-list"))
        assert "Ada" in text_of(await call(hub, "mcp__all__trigger-elicitation-request"))
        assert (asked[0].who, bool(asked[0].form), asked[0].url) == ("MCP server all", True, "")
        assert "A poem." in text_of(await call(hub, "mcp__all__trigger-sampling-request", prompt="Write."))
        assert samples[0].texts[0][0] == "user"
        assert asked[1].text.startswith("It wants an answer of the model, which costs money. It asks:\n")
        listed = text_of(await resource(hub, server_name="all"))
        assert "demo://resource/dynamic/text/{resourceId}" in listed
        read = await resource(hub, server_name="all", uri="demo://resource/dynamic/text/1")
        assert text_of(read).startswith("[resource demo://resource/dynamic/text/1, text/plain]\n")
        assert {prompt.name for _, prompt in hub.prompts()} >= {"simple-prompt", "args-prompt"}


@needs_node
async def test_the_clock_of_a_call_stands_still_while_a_person_thinks(tmp_path: Path) -> None:
    async def ask(one: Asked) -> PersonReply:
        await asyncio.sleep(1.2)
        return PersonReply(declined=True)

    server = peer("everything")
    server = McpServer(name="all", command=server.command, args=server.args, call_seconds=1.0)
    ask_person.set(ask)
    async with hub_of(tmp_path, server) as hub:
        await until(lambda: "mcp__all__trigger-elicitation-request" in hub.tools())
        assert "declined" in text_of(await call(hub, "mcp__all__trigger-elicitation-request"))


@needs_node
async def test_without_anybody_a_server_that_asks_is_answered_at_once(tmp_path: Path) -> None:
    async with hub_of(tmp_path, peer("everything")) as hub:
        await until(lambda: "mcp__everything__trigger-elicitation-request" in hub.tools())
        answer = text_of(await call(hub, "mcp__everything__trigger-elicitation-request"))
        assert "cancel" in answer
        assert "mcp__everything__trigger-sampling-request" not in hub.tools()


@pytest.mark.sample(2)
@needs_node
@pytest.mark.parametrize("era", [ServerEra.AUTO, ServerEra.LEGACY])
@pytest.mark.parametrize("kind", ["streamableHttp", "sse"])
async def test_a_server_over_http_works(tmp_path: Path, kind: str, era: ServerEra) -> None:
    transport = ServerTransport.SSE if kind == "sse" else ServerTransport.HTTP
    async with (
        everything_over(kind) as url,
        hub_of(tmp_path, McpServer(name="web", transport=transport, url=url, era=era)) as hub,
    ):
        assert hub.health()[0].state is ServerState.CONNECTED, hub.health()[0].why
        assert text_of(await call(hub, "mcp__web__echo", message="hi")) == "Echo: hi"
        slow = asyncio.create_task(call(hub, "mcp__web__trigger-long-running-operation", duration=60, steps=2))
        await asyncio.sleep(0.2)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert text_of(await call(hub, "mcp__web__get-sum", a=2, b=3)).endswith("is 5.")


@needs_node
@pytest.mark.parametrize("era", [ServerEra.AUTO, ServerEra.LEGACY])
async def test_files_and_memory_work(tmp_path: Path, era: ServerEra) -> None:
    (tmp_path / "notes.txt").write_text("Some notes.")
    memory = peer("memory")
    memory = replace(memory, env={"MEMORY_FILE_PATH": str(tmp_path / "m.json")}, era=era)
    files = replace(peer("filesystem", str(tmp_path)), era=era)
    async with hub_of(tmp_path, files, memory) as hub:
        read = await call(hub, "mcp__filesystem__read_text_file", path=str(tmp_path / "notes.txt"))
        assert text_of(read) == "Some notes."
        outside = await call(hub, "mcp__filesystem__read_text_file", path="/etc/passwd")
        assert (outside.outcome, "Access denied" in text_of(outside)) == (Outcome.FAILED, True)
        entity = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
        await call(hub, "mcp__memory__create_entities", entities=[entity])
        assert "counts" in text_of(await call(hub, "mcp__memory__search_nodes", query="Ada"))


@pytest.mark.parametrize(
    "era", [pytest.param(era, marks=() if era is ServerEra.AUTO else pytest.mark.soak) for era in ServerEra]
)
async def test_the_servers_written_in_python_work(tmp_path: Path, era: ServerEra) -> None:
    require("mcp_server_time", "mcp_server_git")
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)

    def python(name: str, *arguments: str) -> McpServer:
        return McpServer(name=name, command=sys.executable, args=("-m", f"mcp_server_{name}", *arguments), era=era)

    servers = (python("time"), python("git", "--repository", str(tmp_path / "repo")), python("fetch"))
    async with hub_of(tmp_path, *servers, wait=30) as hub:
        versions = {one.protocol for one in hub.health()}
        assert versions == {"2025-11-25" if era is ServerEra.LEGACY else "2026-07-28"}
        assert '"timezone": "Asia/Tokyo"' in text_of(
            await call(hub, "mcp__time__get_current_time", timezone="Asia/Tokyo")
        )
        status = text_of(await call(hub, "mcp__git__git_status", repo_path=str(tmp_path / "repo")))
        assert "No commits yet" in status
        gone = await call(hub, "mcp__fetch__fetch", url="http://127.0.0.1:9/x")
        assert gone.outcome is Outcome.FAILED
        assert [prompt.name for _, prompt in hub.prompts()] == ["fetch"]


async def test_a_server_that_its_host_has_is_asked_through_the_host(tmp_path: Path) -> None:
    seen: list[str] = []

    async def exchange(message: dict[str, Any]) -> dict[str, Any] | None:
        seen.append(message["method"])
        tool = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
        answers: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "calc", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "5"}]},
        }
        if "id" not in message:
            return None
        answer = answers.get(message["method"])
        if answer is None:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": answer}

    plan = plan_of(McpServer(name="calc", transport=ServerTransport.INSIDE), tmp_path, exchange=exchange, kept=False)
    async with hub_of(tmp_path, plan) as hub:
        assert text_of(await call(hub, "mcp__calc__add", a=2, b=3)) == "5"
    assert [method for method in seen if method != "server/discover"] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert not list((tmp_path / "pins").glob("*"))
