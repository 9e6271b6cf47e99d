"""Requests at random moments, in any order: each is answered, nothing hangs, and the agent ends as it should."""

import asyncio
import random
from pathlib import Path
from typing import Any, cast

import pytest

from tests.acp.driving import Editor, RefusedByAgentError, editor
from tests.e2e.faults.driving import make, run
from tests.e2e.running import model
from treadle.acp.acp_agent import EditorAgent
from treadle.door.past import find_session
from treadle.protocol.errors import SessionError
from treadle.providers.scripted.script import Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

STEPS = (
    make("write_to_file", path="a.txt", content="one\n"),
    run("echo hi; sleep 0.1"),
    make("ask_followup_question", question="Which?", options=["a", "b"]),
    make("ask_followup_question", question="What?"),
    make("read_file", path="a.txt"),
)
EXPECTED = (-32002, -32800)
"""A session that was closed meanwhile, and a request that was taken back."""

BUSY = ("is busy", "works on a message")
"""What is said of a session that cannot be opened now: it is open in another process, or has a turn in this one."""


def answering(chance: random.Random, client: Editor) -> None:
    """Answer at random, after a while."""

    def later(params: dict[str, Any]) -> Any:
        answer = asyncio.get_running_loop().create_future()
        option = {"outcome": "selected", "optionId": chance.choice(params["options"])["optionId"]}
        given = {"outcome": {"outcome": "cancelled"} if chance.random() < 0.2 else option}
        asyncio.get_running_loop().call_later(chance.random() * 0.2, answer.set_result, given)
        return answer

    def reading(params: dict[str, Any]) -> Any:
        if chance.random() < 0.5:
            raise RefusedByAgentError({"code": -32002, "message": "not here"})
        return {"content": "typed\n"}

    def writing(params: dict[str, Any]) -> Any:
        Path(params["path"]).write_text(params["content"])
        return {}

    client.answers = {
        "session/request_permission": later,
        "fs/read_text_file": reading,
        "fs/write_text_file": writing,
        "terminal/create": lambda _: {"terminalId": "t"},
        "terminal/wait_for_exit": lambda _: {"exitCode": 0},
        "terminal/release": lambda _: {},
    }


def one(chance: random.Random, client: Editor, sessions: list[str], folder: Path) -> "asyncio.Future[Any] | None":
    """Do something."""
    session = chance.choice(sessions)
    blocks = [{"type": "text", "text": chance.choice(["Go.", "Go.", "/status", "/compact", "/undo"])}]
    what = chance.choice(["prompt"] * 4 + ["cancel", "back", "close", "session/load", "session/fork", "steer", "mode"])
    match what:
        case "cancel":
            client.tell("session/cancel", sessionId=session)
            return None
        case "back":
            if client.waiting:
                client.tell("$/cancel_request", requestId=chance.choice(list(client.waiting)))
            return None
        case "prompt":
            meta = {"steering": chance.random() < 0.3}
            return client.begin("session/prompt", sessionId=session, prompt=blocks, _meta=meta)
        case "steer":
            return client.begin("_session/steering", sessionId=session, prompt=blocks)
        case "mode":
            mode = chance.choice(["plan", "ask", "edits"])
            return client.begin("session/set_mode", sessionId=session, modeId=mode)
        case "close":
            return client.begin("session/close", sessionId=session)
        case _:
            return client.begin(what, sessionId=session, cwd=str(folder), mcpServers=[])


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.soak if seed > 200 else ()) for seed in range(200, 260)]
)
async def test_two_editors_on_the_same_sessions_are_both_answered(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "ws"
    folder.mkdir()
    items = (Turn(items=(SayText(text="So."), chance.choice(STEPS)), pace=Pace(chunk=1)) for _ in range(300))
    async with (
        ScriptedServer(Script(turns=tuple(items))) as server,
        editor(tmp_path / "home", *model(server), "--max-steps", "10") as first,
        editor(tmp_path / "home", *model(server), "--max-steps", "10") as second,
    ):
        clients = (first, second)
        for client in clients:
            answering(chance, client)
            await client.initialize()
        sessions = [await client.new(folder) for client in clients]
        begun: list[asyncio.Future[Any]] = []
        for _ in range(40):
            if (future := one(chance, chance.choice(clients), sessions, folder)) is not None:
                begun.append(future)
            await asyncio.sleep(chance.random() * 0.1)
        for client in clients:
            for session in sessions:
                client.tell("session/cancel", sessionId=session)
        async with asyncio.timeout(90):
            ended = await asyncio.gather(*begun, return_exceptions=True)
        wrong = [error for error in ended if isinstance(error, RefusedByAgentError) and error.code not in EXPECTED]
        assert [error.message for error in wrong if not any(one in error.message for one in BUSY)] == []
        for client in clients:
            assert await client.end() == 0
            assert client.process.stderr is not None
            assert await client.process.stderr.read() == b""


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_comes_in_whatever_order_is_answered(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "ws"
    folder.mkdir()
    if seed % 2:
        (folder / "AGENTS.md").write_text("Be brief.\n")
    items = (Turn(items=(SayText(text="So."), chance.choice(STEPS)), pace=Pace(chunk=1)) for _ in range(300))
    async with (
        ScriptedServer(Script(turns=tuple(items))) as server,
        editor(tmp_path / "home", *model(server), "--max-steps", "10") as client,
    ):
        answering(chance, client)
        await client.initialize(fs={"readTextFile": True, "writeTextFile": True}, terminal=True)
        sessions = [await client.new(folder) for _ in range(2)]
        begun = []
        for _ in range(30):
            if (future := one(chance, client, sessions, folder)) is not None:
                begun.append(future)
            await asyncio.sleep(chance.random() * 0.1)
        for session in sessions:
            client.tell("session/cancel", sessionId=session)
        async with asyncio.timeout(90):
            ended = await asyncio.gather(*begun, return_exceptions=True)
        wrong = [error for error in ended if isinstance(error, RefusedByAgentError) and error.code not in EXPECTED]
        assert [error.message for error in wrong if BUSY[1] not in error.message] == []
        assert await client.end() == 0
        assert client.process.stderr is not None
        assert await client.process.stderr.read() == b""


async def test_a_session_that_goes_while_it_is_asked_for_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    with pytest.raises(SessionError) as gone:
        find_session("20261130-000000-abcdef")
    assert EditorAgent.describe(cast("EditorAgent", None), gone.value).code == EXPECTED[0]
