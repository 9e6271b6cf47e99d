"""What comes on the standard streams: garbage, long lines, unknown methods, and an answer before anything is loaded."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import RefusedByAgentError, editor, working
from tests.e2e.faults.driving import make, script
from tests.e2e.process import Program
from tests.ready import TREADLE
from treadle.providers.scripted.scripted_server import ScriptedServer

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


WRONG: list[tuple[bytes, Any, int]] = [
    (b"{", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b"[" * 100_000, None, -32600),
    (b"[]", None, -32600),
    (b"1", None, -32600),
    (b"{}", None, -32600),
    (b'{"id": 7, "method": 3}', 7, -32600),
    (b'{"id": 7, "method": "nes/start"}', 7, -32601),
    (b'{"id": "a", "method": "session/new"}', "a", -32602),
    (b'{"id": 7, "method": "session/prompt", "params": {"sessionId": 1, "prompt": [null]}}', 7, -32602),
    (b'{"id": 7, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}', 7, -32002),
    (b'{"id": 7, "method": "session/list", "params": {"cursor": "-1"}}', 7, -32602),
    (b'{"id": 7, "method": "session/delete", "params": {"sessionId": ""}}', 7, -32002),
]


async def test_what_is_wrong_is_answered_and_ends_nothing(tmp_path: Path) -> None:
    found = []
    async with editor(tmp_path / "home") as client:
        client.tell("session/cancel", sessionId="x")
        client.tell("no/such/notification")
        client.send_line(b"")
        client.send_line(b'{"id": 99, "result": {}}')
        for line, _, _ in WRONG:
            before = len(client.raw)
            client.send_line(line)
            await client.until(lambda: len(client.raw) > before)  # noqa: B023 - awaited here
            found.append((line, client.raw[-1]["id"], client.raw[-1]["error"]["code"]))
        await client.initialize()
    assert found == WRONG


async def test_an_answer_is_taken_whose_text_has_half_a_character(tmp_path: Path) -> None:
    """Nothing waits for ever: the text is read with a character in its place that says so."""
    async with (
        ScriptedServer(script(make("read_file", path="a.txt"))) as server,
        working(tmp_path, server, fs={"readTextFile": True}) as (client, session, folder),
    ):
        (folder / "a.txt").write_text("saved\n")
        client.answers["fs/read_text_file"] = lambda _: asyncio.Future()
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Read it."}])
        await client.until(lambda: any(method == "fs/read_text_file" for method, _ in client.asked))
        for one in [one["id"] for one in client.raw if one.get("method") == "fs/read_text_file"]:
            client.send_line(b'{"jsonrpc":"2.0","id":%d,"result":{"content":"typed \\ud83d\\n"}}' % one)
        assert (await turn)["stopReason"] == "end_turn"
        sent = json.dumps(server.requests[-1].body, ensure_ascii=False)
    assert "typed \N{REPLACEMENT CHARACTER}" in sent


async def test_a_prompt_of_twenty_megabytes_is_taken_and_one_of_sixty_is_refused(tmp_path: Path) -> None:
    async with editor(tmp_path / "home") as client:
        client.send({"id": 5, "method": "session/close", "params": {"sessionId": "a" * 20_000_000}})
        client.send({"id": 6, "method": "session/close", "params": {"sessionId": "a" * 60_000_000}})
        await client.initialize()
        await client.until(lambda: len(client.raw) == 3)
    codes = {message["id"]: message["error"]["code"] for message in client.raw if "error" in message}
    assert codes == {5: -32002, None: -32700}


async def test_the_version_that_is_spoken_is_answered(tmp_path: Path) -> None:
    async with editor(tmp_path / "home") as client:
        answer = await client.call("initialize", protocolVersion=7, clientCapabilities={"plan": {}, "unknown": [1]})
    assert answer["protocolVersion"] == 1


def test_initialize_is_answered_before_the_program_or_the_sdk_is_loaded() -> None:
    code = (
        "import sys, asyncio; from treadle.acp import acp_main as main; from msgspec import Raw\n"
        "main._load = lambda: None\n"
        "async def go():\n"
        "    return await main._Front({}, False)._request('initialize', Raw(b'{\"protocolVersion\": 1}'))\n"
        "assert asyncio.run(go()).protocol_version == 1\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split()) - {"treadle.app", "treadle.app.hosting", "treadle.app.hosting.descriptor_lines"}
    late = ("acp", "pydantic", "mcp", "httpx2", "sqlite3", "treadle.app", "treadle.protocol", "prompt_toolkit", "rich")
    assert sorted(name for name in loaded if any(f"{name}.".startswith(f"{one}.") for one in late)) == []


async def test_input_from_a_file_is_answered_to_its_end(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    lines = [HELLO, {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}]
    requests.write_text("\n".join(map(json.dumps, lines)))
    program = Program(tmp_path / "home")
    with requests.open() as source:
        process = await asyncio.create_subprocess_exec(
            *TREADLE, "acp", env=program.environment, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
    answers = [json.loads(line) for line in out.splitlines()]
    assert ([one["id"] for one in answers], process.returncode, err) == ([1, 2], 0, b"")


async def test_a_client_that_reads_no_more_ends_the_agent(tmp_path: Path) -> None:
    async with ScriptedServer(script()) as server, working(tmp_path, server) as (client, _, _):
        transport = client.process._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()
        client.tell("session/cancel", sessionId="x")
        with pytest.raises((ConnectionError, RefusedByAgentError)):
            await client.call("session/list")
        assert await asyncio.wait_for(client.process.wait(), 90) == 0
