"""A folder is untrusted for a client until its user has answered the question about it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import RefusedByAgentError, choosing, editor
from tests.e2e.faults.driving import DONE
from tests.e2e.running import model
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

RULE = "Always answer in rhyme."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "AGENTS.md").write_text(f"{RULE}\n")
    return made


async def ask(tmp_path: Path, folder: Path, option: str, *, before: str = "") -> tuple[list[str], list[str], list[str]]:
    """Prompt twice; gives what the model was sent each time, what was asked, and the modes."""
    async with ScriptedServer(Script(turns=(DONE, DONE))) as server:
        async with editor(tmp_path / "home", *model(server)) as client:
            client.answers["session/request_permission"] = choosing(option)
            await client.initialize()
            session = await client.new(folder)
            if before:
                await client.call("session/set_mode", sessionId=session, modeId=before)
            for text in ("One.", "Two."):
                await client.prompt(session, text)
            asked = [params["toolCall"]["title"] for _, params in client.asked]
            modes = [update["currentModeId"] for update in client.of("current_mode_update", session)]
        sent = [json.dumps(request.body) for request in server.requests]
    return sent, asked, modes


@pytest.mark.parametrize("option", ["always", "once"])
async def test_a_yes_uses_the_rules_from_the_first_request_on(tmp_path: Path, folder: Path, option: str) -> None:
    sent, asked, _ = await ask(tmp_path, folder, option)
    assert [RULE in request for request in sent] == [True, True]
    assert asked == [f"Do you trust {folder}?"]


@pytest.mark.parametrize("option", ["later", "never"])
async def test_a_no_leaves_the_folder_untrusted(tmp_path: Path, folder: Path, option: str) -> None:
    sent, asked, _ = await ask(tmp_path, folder, option)
    assert [RULE in request for request in sent] == [False, False]
    assert len(asked) == 1


async def test_a_plain_repository_is_asked_about_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    async with (
        ScriptedServer(Script(turns=(DONE,))) as server,
        editor(tmp_path / "home", *model(server)) as client,
    ):
        client.answers["session/request_permission"] = choosing("later")
        await client.initialize()
        await client.prompt(await client.new(folder), "One.")
        ((_, asked),) = client.asked
    assert "It is a git repository. Nothing in it runs automatically today." in json.dumps(asked)


async def test_only_a_lasting_answer_is_remembered(tmp_path: Path, folder: Path) -> None:
    counts = [len((await ask(tmp_path, folder, option))[1]) for option in ("once", "later", "always", "later")]
    assert counts == [1, 1, 1, 0]


async def test_a_no_for_ever_asks_no_more(tmp_path: Path, folder: Path) -> None:
    counts = [len((await ask(tmp_path, folder, option))[1]) for option in ("never", "always")]
    assert counts == [1, 0]


async def test_what_was_chosen_before_the_question_holds_after_it(tmp_path: Path, folder: Path) -> None:
    sent, _, modes = await ask(tmp_path, folder, "always", before="plan")
    assert RULE in sent[0]
    assert set(modes) == {"plan"}


async def test_a_client_that_cannot_ask_works_untrusted(tmp_path: Path, folder: Path) -> None:
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        async with editor(tmp_path / "home", *model(server)) as client:
            await client.initialize()
            await client.prompt(await client.new(folder))
        assert RULE not in json.dumps(server.requests[0].body)


async def test_cancel_while_the_folder_is_asked_about_ends_the_prompt(tmp_path: Path, folder: Path) -> None:
    import asyncio

    async with ScriptedServer(Script(turns=(Turn(items=()),))) as server:
        async with editor(tmp_path / "home", *model(server)) as client:
            waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            client.answers["session/request_permission"] = lambda _: waiting
            await client.initialize()
            session = await client.new(folder)
            turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Hi."}])
            await client.until(lambda: client.asked)
            client.tell("session/cancel", sessionId=session)
            assert (await turn)["stopReason"] == "cancelled"
        assert server.requests == []


async def test_trust_that_is_said_on_the_command_line_asks_nothing(tmp_path: Path, folder: Path) -> None:
    async with ScriptedServer(Script(turns=(DONE,))) as server:
        async with editor(tmp_path / "home", *model(server), "--trust") as client:
            await client.initialize()
            await client.prompt(await client.new(folder))
        assert RULE in json.dumps(server.requests[0].body)
    assert client.asked == []


async def test_a_mistake_in_the_settings_of_a_trusted_folder_is_shown_once(tmp_path: Path, folder: Path) -> None:
    (folder / ".treadle").mkdir()
    (folder / ".treadle" / "config.toml").write_text("mode = 3\n")
    async with ScriptedServer(Script(turns=(DONE,))) as server, editor(tmp_path / "home", *model(server)) as client:
        client.answers["session/request_permission"] = choosing("always")
        await client.initialize()
        session = await client.new(folder)
        with pytest.raises(RefusedByAgentError) as refused:
            await client.prompt(session)
        answer = await client.prompt(session)
        assert RULE not in json.dumps(server.requests[0].body)
    assert (refused.value.code, answer["stopReason"]) == (-32602, "end_turn")
