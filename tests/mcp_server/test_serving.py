"""The wire: only the protocol on it, proper ends, clients that hang, leave or send garbage, and who may use HTTP."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.running import PATIENCE, log_of
from tests.mcp_server.serving import ERAS, TOKEN, Person, Place, accept, client, serving_http, text, until, use, wait
from treadle.app.errors.exits import Exit
from treadle.protocol.events import Prompt
from treadle.workspace.installed import install_command

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw \x1b[31m client " + "x" * 100, "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def tool(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """A request that calls a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class RawClient:
    """A client that writes lines, whatever they are."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout
        self.read: list[dict[str, Any]] = []

    async def send(self, *messages: object) -> None:
        """Send messages, or bytes as they are."""
        for one in messages:
            self._in.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
        await self._in.drain()

    async def answer(self, number: int) -> dict[str, Any]:
        """Read until the answer to a request; every line must be a message of the protocol."""
        async with asyncio.timeout(PATIENCE):
            while line := await self._out.readline():
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
                self.read.append(message)
                if message.get("id") == number:
                    return dict(message)
        raise AssertionError(f"no answer to {number}, only {self.read}")

    async def end(self) -> tuple[int, str]:
        """Close its input, and wait for its end; gives the exit code and what it wrote to standard error."""
        if not self._in.is_closing():
            self._in.close()
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            rest, err = await asyncio.gather(self._out.read(), self.process.stderr.read())
            code = await self.process.wait()
        for line in rest.splitlines():
            assert json.loads(line)["jsonrpc"] == "2.0"
        return code, err.decode()


async def raw(place: Place, *flags: str) -> RawClient:
    """Start the server with pipes."""
    return RawClient(
        await asyncio.create_subprocess_exec(
            *place.command(*flags),
            env=place.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=2**24,
        )
    )


async def started(place: Place) -> tuple[RawClient, str]:
    """Start the server and a task that its model takes a minute for."""
    place.script([wait(60), text("late")])
    one = await raw(place)
    await one.send(HELLO, READY, tool(2, "start_task", task="Wait."))
    found = await one.answer(2)
    return one, found["result"]["structuredContent"]["task_id"]


async def test_garbage_is_answered_or_left_out_and_the_server_goes_on(place: Place) -> None:
    one = await raw(place)
    await one.send(b"\xff\xfe\x00 nonsense\n", b"{broken\n", b"[]\n", b"{}\n", b"\n", b'"x"\n', b"[[[[\n")
    await one.send(HELLO, READY)
    assert (await one.answer(1))["result"]["serverInfo"]["name"] == "treadle"
    await one.send(b"null\n", {"jsonrpc": "2.0", "id": 5, "method": "no/such"}, tool(6, "no_such_tool"))
    assert "error" in await one.answer(5)
    unknown = await one.answer(6)
    assert "error" in unknown or unknown["result"]["isError"]
    await one.send(tool(7, "start_task", task=5), tool(8, "task_result", task_id="x", wait_seconds="soon"))
    assert (await one.answer(7))["result"]["isError"] is True
    assert (await one.answer(8))["result"]["isError"] is True
    await one.send(tool(9, "list_tasks"))
    assert (await one.answer(9))["result"]["structuredContent"] == {"tasks": [], "sessions": []}
    code, _ = await one.end()
    assert code == Exit.DONE


async def test_a_name_of_the_client_is_harmless_and_short_in_the_log(place: Place) -> None:
    one, _ = await started(place)
    await one.end()
    (prompt,) = (event for event in log_of(place.home) if isinstance(event.data, Prompt))
    assert prompt.source.kind == "mcp"
    assert prompt.source.id.startswith("raw ")
    assert "\x1b" not in prompt.source.id
    assert len(prompt.source.id) < 60


async def test_at_the_end_of_its_input_sessions_are_closed_and_can_be_continued(place: Place) -> None:
    one, task_id = await started(place)
    await one.send(tool(3, "task_result", task_id=task_id, wait_seconds=3600))
    code, err = await one.end()
    assert (code, "Traceback" in err) == (Exit.DONE, False), err
    place.script(when={"Again.": [text("Back.")]})
    async with client(place.stdio(), "legacy") as connected:
        task = await use(connected, "join_task", session_id=task_id)
        await use(connected, "send_message", task_id=task_id, text="Again.")
        assert (await until(connected, task, "done"))["answer"] == "Back."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
async def test_a_turn_that_was_cut_off_is_followed_to_its_answer(place: Place, number: signal.Signals) -> None:
    place.script([wait(60)])
    one, task_id = await started(place)
    one.process.send_signal(number)
    await one.process.wait()
    await one.end()
    place.script([text("The answer is 42.")])
    async with client(place.stdio(), "legacy") as connected:
        task = await use(connected, "join_task", session_id=task_id)
        assert task["state"] in ("working", "done")
        found = await use(connected, "task_result", task_id=task_id, wait_seconds=60)
    assert (found["state"], found["answer"], found["steps"]) == ("done", "The answer is 42.", 1)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)], ids=["term", "int", "hup"]
)
async def test_a_signal_ends_it_in_the_middle_of_everything(place: Place, number: signal.Signals, code: int) -> None:
    one, task_id = await started(place)
    await one.send(*(tool(n, "task_result", task_id=task_id, wait_seconds=3600) for n in range(3, 8)))
    one.process.send_signal(number)
    async with asyncio.timeout(PATIENCE):
        assert await one.process.wait() == code
    _, err = await one.end()
    assert "Traceback" not in err


async def test_a_client_that_never_reads_keeps_nobody_from_ending_it(place: Place) -> None:
    one, task_id = await started(place)
    flood = [tool(number, "list_tasks") for number in range(10, 1500)]
    sending = asyncio.ensure_future(one.send(*flood))
    await asyncio.sleep(0.5)
    one.process.terminate()
    async with asyncio.timeout(PATIENCE):
        assert await one.process.wait() == Exit.TERMINATED
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    assert [event.data.id for event in log_of(place.home) if isinstance(event.data, Prompt)]
    assert task_id


async def test_a_request_that_is_cancelled_leaves_the_task_alone(place: Place) -> None:
    place.script([wait(1), text("Here.")])
    one = await raw(place)
    await one.send(HELLO, READY, tool(2, "start_task", task="Wait."))
    task_id = (await one.answer(2))["result"]["structuredContent"]["task_id"]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    await one.send(tool(3, "task_result", task_id=task_id, wait_seconds=60), cancelled)
    await one.send(tool(4, "task_result", task_id=task_id, wait_seconds=60))
    assert (await one.answer(4))["result"]["structuredContent"]["answer"] == "Here."
    assert (await one.end())[0] == Exit.DONE


async def test_what_is_cancelled_while_it_is_being_done_is_done_whole_or_not_at_all(place: Place) -> None:
    place.script([wait(60), text("late")])
    one = await raw(place)
    await one.send(HELLO, READY)
    await one.answer(1)
    for number in range(2, 12):
        await one.send(tool(number, "start_task", task="Wait."))
        await asyncio.sleep(0.004 * number)
        await one.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    await asyncio.sleep(1)
    await one.send(tool(50, "list_tasks"))
    listed = (await one.answer(50))["result"]["structuredContent"]["tasks"]
    assert {task["state"] for task in listed} <= {"working"}
    for number, task in enumerate(listed, start=60):
        await one.send(tool(number, "close_task", task_id=task["task_id"]))
        assert (await one.answer(number))["result"]["isError"] is False
    await one.send(tool(99, "list_tasks"))
    assert (await one.answer(99))["result"]["structuredContent"]["tasks"] == []
    code, err = await one.end()
    assert (code, err) == (Exit.DONE, "")


async def test_what_something_prints_does_not_get_on_the_wire(place: Place) -> None:
    noisy = place.root / "noisy.py"
    noisy.write_text(
        "import os, sys, threading, time\n"
        "def shout():\n"
        "    while not os.path.samestat(os.fstat(1), os.fstat(2)):  # the wire is not taken yet\n"
        "        time.sleep(0.01)\n"
        "    for _ in range(50):\n"
        "        print('NOISE', flush=True); os.write(1, b'MORE NOISE\\n'); os.system('echo CHILD')\n"
        "threading.Thread(target=shout).start()\n"
        "from treadle.__main__ import main\n"
        "sys.argv = ['treadle', *sys.argv[1:]]\n"
        "main()\n"
    )
    one = RawClient(
        await asyncio.create_subprocess_exec(
            sys.executable,
            str(noisy),
            *place.arguments(),
            env=place.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    )
    await one.send(HELLO, READY)
    await one.answer(1)
    for number in range(2, 12):
        await one.send(tool(number, "list_tasks"))
        await one.answer(number)
        await asyncio.sleep(0.15)
    code, err = await one.end()
    assert (code, "NOISE" in err, "CHILD" in err) == (Exit.DONE, True, True)


def http(token: str) -> httpx2.AsyncClient:
    """A client of HTTP with this token."""
    return httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=PATIENCE)


@pytest.mark.parametrize("era", ERAS)
async def test_a_whole_task_over_http(place: Place, era: str) -> None:
    person = Person([accept(decision="allow_once", comment="")])
    async with serving_http(place) as (process, address):
        async with (
            http(TOKEN) as connection,
            client(streamable_http_client(address, http_client=connection), era, person) as connected,
        ):
            task = await use(connected, "start_task", task="Write a.txt.")
            assert (await until(connected, task, "done"))["answer"] == "It is done."
        # Another client finds the task of the one that left.
        async with (
            http(TOKEN) as connection,
            client(streamable_http_client(address, http_client=connection), era) as two,
        ):
            assert (await use(two, "task_status", task_id=task["task_id"]))["answer"] == "It is done."
        # One that leaves in the middle of a request is no news for standard error.
        said = {**HELLO, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
        async with http(TOKEN) as connection:
            for seconds in (0.001, 0.002, 0.005, 0.01, 0.02):
                with contextlib.suppress(httpx2.TimeoutException):
                    await connection.post(address, json=said, timeout=seconds)
        process.terminate()
        out, err = await process.communicate()
        assert (process.returncode, out) == (Exit.TERMINATED, b"")
        assert err.decode() == "Authorization: Bearer the token in TREADLE_MCP_TOKEN\n"
    assert (place.folder / "a.txt").read_text() == "hello\n"


@pytest.mark.parametrize("token", ["", TOKEN[:-1], "ü"])
async def test_http_is_for_those_with_the_token(place: Place, token: str) -> None:
    async with serving_http(place) as (_, address):
        said = {b"Authorization": f"Bearer {token}".encode()} if token else {}
        async with httpx2.AsyncClient(headers=said) as connection:
            answers = [await connection.request(method, address, json=HELLO) for method in ("POST", "GET", "DELETE")]
    assert [one.status_code for one in answers] == [401] * 3
    assert answers[0].headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("header", "status"), [({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)]
)
async def test_a_page_in_a_browser_cannot_reach_it(place: Place, header: dict[str, str], status: int) -> None:
    async with serving_http(place) as (_, address), http(TOKEN) as connection:
        answer = await connection.post(address, json=HELLO, headers=header)
    assert answer.status_code == status


def run(place: Place, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the server to its end."""
    environment = {**place.environment, **variables}
    return subprocess.run(
        place.command(*flags), env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_what_cannot_be_served_is_said_with_the_fix(place: Place) -> None:
    short = run(place, "--http", TREADLE_MCP_TOKEN="short")
    assert (short.returncode, "mcp-token" in short.stderr, "Unset TREADLE_MCP_TOKEN" in short.stderr) == (
        78,
        True,
        True,
    )
    port = run(place, "--http", "--port", "99999")
    assert (port.returncode, "port-unusable" in port.stderr) == (78, True)
    wide = run(place, "-C", "/")
    assert (wide.returncode, "workspace-too-wide" in wide.stderr, wide.stdout) == (78, True, "")


def test_without_the_extra_it_says_how_to_get_it(place: Place) -> None:
    code = "import sys; sys.modules['mcp'] = None; from treadle.cli.main import run; sys.exit(run(sys.argv[1:]))"
    ended = subprocess.run(
        [sys.executable, "-c", code, *place.arguments()],
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"fix: Run: {install_command('mcp')}" in ended.stderr


def test_a_new_token_is_made_for_each_server_and_shown_once(place: Place) -> None:
    process = subprocess.Popen(
        place.command("--http"), env=place.environment, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    address, authorization = process.stderr.readline(), process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=PATIENCE)[1]
    token = authorization.split()[-1]
    assert address.startswith("Serving MCP at http://127.0.0.1:")
    assert (len(token) >= 40, rest, process.returncode) == (True, "", Exit.TERMINATED)
