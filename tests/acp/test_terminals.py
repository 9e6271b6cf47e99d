"""Commands in the client's terminals: what runs there only shows the output of what runs confined."""

import asyncio
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import Editor, choosing, working
from tests.e2e.faults.driving import run, script
from tests.e2e.running import PATIENCE
from treadle.acp.terminals import ShownCommand
from treadle.acp.updates import LOST
from treadle.providers.scripted.scripted_server import ScriptedServer


@dataclass
class Terminals:
    """The terminals of a client; a broken one runs nothing."""

    broken: bool = False
    running: dict[str, "asyncio.Task[tuple[bytes, int]]"] = field(default_factory=dict)
    released: list[str] = field(default_factory=list)

    def give(self, client: Editor) -> None:
        client.answers |= {
            "terminal/create": self.create,
            "terminal/wait_for_exit": self.wait,
            "terminal/release": self.release,
        }

    def create(self, params: dict[str, Any]) -> Any:
        number = f"t{len(self.running)}"
        command = ["false"] if self.broken else [params["command"], *params["args"]]
        self.running[number] = asyncio.ensure_future(self.run(command))
        return {"terminalId": number}

    async def run(self, command: list[str]) -> tuple[bytes, int]:
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        out, _ = await process.communicate()
        assert process.returncode is not None
        return out, process.returncode

    def wait(self, params: dict[str, Any]) -> Any:
        return asyncio.ensure_future(self.status(params["terminalId"]))

    async def status(self, number: str) -> Any:
        return {"exitCode": (await self.running[number])[1]}

    def release(self, params: dict[str, Any]) -> Any:
        self.released.append(params["terminalId"])
        return {}


def contents(client: Editor) -> list[Any]:
    """What a call showed, in order."""
    return [update["content"] for update in client.of("tool_call_update") if "content" in update]


async def test_a_command_is_shown_in_a_terminal_while_it_runs_confined(tmp_path: Path) -> None:
    command = "printf '\\033]0;title\\007red\\n'; sleep 0.5; exit 3"
    async with (
        ScriptedServer(script(run(command))) as server,
        working(tmp_path, server, "--mode", "edits", terminal=True) as (client, session, folder),
    ):
        terminals = Terminals()
        terminals.give(client)
        await client.prompt(session)
        await client.until(lambda: terminals.released)
        out, status = await terminals.running["t0"]
    (asked,) = [params for method, params in client.asked if method == "terminal/create"]
    assert asked["cwd"] == str(folder)
    assert command not in json.dumps(asked)
    assert out == b"red\n"
    assert status == 3
    assert contents(client)[-1] == [{"type": "terminal", "terminalId": "t0"}]


async def test_what_a_terminal_cannot_show_is_shown_in_the_call(tmp_path: Path) -> None:
    async with (
        ScriptedServer(script(run("echo hello"))) as server,
        working(tmp_path, server, terminal=True) as (client, session, _),
    ):
        terminals = Terminals(broken=True)
        terminals.give(client)
        await client.prompt(session)
        await client.until(lambda: terminals.released and contents(client)[-1][0]["type"] == "content")
        shown = contents(client)[-1]
    assert "hello" in shown[0]["content"]["text"]


async def test_what_a_terminal_cannot_show_is_shown_while_the_command_runs(tmp_path: Path) -> None:
    line = "sleep 0.5; echo hello; until test -e go; do sleep 0.05; done"
    async with (
        ScriptedServer(script(run(line))) as server,
        working(tmp_path, server, "--mode", "full", terminal=True) as (client, session, folder),
    ):
        terminals = Terminals(broken=True)
        terminals.give(client)
        ends = asyncio.ensure_future(client.prompt(session))
        await client.until(lambda: any(LOST in json.dumps(one) for one in contents(client)))
        await client.until(lambda: "hello" in json.dumps(contents(client)[-1]))
        assert (terminals.released, ends.done()) == (["t0"], False)
        (folder / "go").touch()
        await ends
    assert contents(client)[-1][0]["type"] == "content"


class Silent:
    """A client whose terminals run nothing; it does not answer what is in `silent`."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.asked: list[str] = []

    async def _answer(self, method: str) -> None:
        self.asked.append(method)
        if method in self.silent:
            await asyncio.Event().wait()

    async def create_terminal(self, command: list[str], folder: str, kept: int) -> str:
        await self._answer("create")
        return "t"

    async def wait_for_terminal(self, terminal: str) -> None:
        await self._answer("wait")

    async def release_terminal(self, terminal: str) -> None:
        await self._answer("release")


@pytest.mark.parametrize("silent", [("create",), ("wait",), ("wait", "release"), ()])
@pytest.mark.parametrize("finished", [False, True], ids=["the command runs", "it has ended"])
async def test_a_terminal_that_does_not_come_up_is_given_back_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, silent: tuple[str, ...], *, finished: bool
) -> None:
    monkeypatch.setattr("treadle.acp.terminals._PATIENCE", 0.1)
    client: Any = Silent(*silent)
    command = ShownCommand(client, "/")
    command.show("hello")
    if finished:
        command.finish(0)
    async with asyncio.timeout(PATIENCE):
        await command.run()
    given = "create" not in silent
    assert (command.was_seen, command.terminal, command.lost) == (False, "", given)
    assert client.asked == ["create", "wait", "release"][: 3 if given else 1]


async def test_a_client_that_refuses_a_terminal_is_shown_the_output(tmp_path: Path) -> None:
    async with (
        ScriptedServer(script(run("echo hello"))) as server,
        working(tmp_path, server, terminal=True) as (client, session, _),
    ):
        client.answers["session/request_permission"] = choosing("allow_once")
        await client.prompt(session)
    assert "hello" in contents(client)[-1][0]["content"]["text"]
