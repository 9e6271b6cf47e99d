"""What clients get that know this agent: edits as the user wants them, the inbox, and checkpoints."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import RefusedByAgentError, Responder, choosing, editor, working
from tests.e2e.faults.driving import DONE, make
from tests.e2e.running import model
from treadle.providers.scripted.script import Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

OLD = "".join(f"line {number}\n" for number in range(1, 31))
BLOCKS = "".join(
    f"------- SEARCH\nline {old}\n=======\nline {new}\n+++++++ REPLACE\n" for old, new in ((2, "two"), (20, "twenty"))
)
EDIT = Turn(items=(make("replace_in_file", path="a.txt", diff=BLOCKS),))
TWICE = Script(turns=(Turn(items=(make("write_to_file", path="a.txt", content="one\n"),)), DONE))


def saying(option: str, **details: Any) -> Responder:
    """Choose, and say more with it."""

    def respond(params: dict[str, Any]) -> Any:
        chosen = choosing(option)(params)
        chosen["outcome"]["_meta"] = {"treadle": details}
        return chosen

    return respond


async def test_an_edit_is_made_as_the_user_wants_it(tmp_path: Path) -> None:
    async with (
        ScriptedServer(Script(turns=(EDIT, DONE))) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        (folder / "a.txt").write_text(OLD)
        wanted = OLD.replace("line 20\n", "line 20, by hand\n")
        details = {"comment": "Leave the first.", "edited": {"oldText": OLD, "newText": wanted}}
        client.answers["session/request_permission"] = saying("allow_once", **details)
        await client.prompt(session)
        ((_, asked),) = [one for one in client.asked if one[0] == "session/request_permission"]
        sent = json.dumps(server.requests[-1].body)
        assert (folder / "a.txt").read_text() == wanted
    assert asked["toolCall"]["_meta"] == {"treadle": {"editable": True}}
    places = [one for one in asked["toolCall"]["content"] if one["type"] == "diff"]
    assert [one["_meta"]["treadle"] for one in places] == [{"oldLine": 1, "newLine": 1}, {"oldLine": 17, "newLine": 17}]
    for place in places:
        first = place["_meta"]["treadle"]["oldLine"] - 1
        lines = place["oldText"].splitlines()
        assert OLD.splitlines()[first : first + len(lines)] == lines
    assert "Leave the first." in sent


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (OLD, OLD, "left out every part"),
        (OLD, OLD + "------- SEARCH\n", "this call cannot write the result"),
        (OLD, OLD.replace("line 2\n", "line two\n").removesuffix("\n"), "took away the line end"),
        (OLD + "line 31\n", OLD.replace("line 2\n", "line two\n"), "saw another text of the file than you"),
        ("", "line two\n", "saw another text of the file than you"),
    ],
    ids=["nothing is left", "the call cannot write it", "the last line end", "another text", "it seems to be new"],
)
async def test_an_edit_that_cannot_be_made_so_is_not_made_otherwise(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    async with (
        ScriptedServer(Script(turns=(EDIT, DONE))) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        (folder / "a.txt").write_text(OLD)
        client.answers["session/request_permission"] = saying("allow_once", edited={"oldText": old, "newText": new})
        await client.prompt(session)
        assert (folder / "a.txt").read_text() == OLD
        assert why in json.dumps(server.requests[-1].body)
        (call,) = {one["toolCallId"] for one in client.of("tool_call") + client.of("tool_call_update")}
        ended = [one for one in client.of("tool_call_update") if one.get("status") in ("completed", "failed")]
    assert [(one["toolCallId"], one["status"]) for one in ended] == [(call, "failed")]


async def test_the_inbox_names_the_sessions_that_wait_and_goes_on_with_their_answers(tmp_path: Path) -> None:
    async with ScriptedServer(TWICE) as server, working(tmp_path, server) as (client, session, _):
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        client.answers["session/request_permission"] = lambda _: answer
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Write it."}])
        await client.until(lambda: any(method == "session/request_permission" for method, _ in client.asked))
        while_asked = await client.call("_treadle/inbox")
        answer.set_result({"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        assert (await turn)["stopReason"] == "end_turn"
        afterwards = await client.call("_treadle/inbox")
    rows = [(one["sessionId"], one["state"], one["title"]) for one in while_asked["sessions"]]
    assert (rows, while_asked["waiting"]) == ([(session, "waiting", "Write it.")], 1)
    assert ([one["state"] for one in afterwards["sessions"]], afterwards["waiting"]) == (["done"], 0)
    assert (afterwards["sessions"][0]["added"], afterwards["sessions"][0]["open"]) == (1, True)


@pytest.mark.parametrize("again", [False, True], ids=["it is open here", "it is open nowhere"])
async def test_files_go_back_to_a_checkpoint_and_forth_again(tmp_path: Path, *, again: bool) -> None:
    async with ScriptedServer(TWICE) as server:
        async with working(tmp_path, server) as (client, session, folder):
            await client.prompt(session)
            if not again:
                await _go_back_and_forth(client, session, folder)
        if again:
            async with editor(tmp_path / "home", *model(server)) as client:
                await client.initialize()
                await _go_back_and_forth(client, session, folder)


async def test_an_undo_is_answered_when_the_files_are_back_with_what_was_restored(tmp_path: Path) -> None:
    async with ScriptedServer(TWICE) as server, working(tmp_path, server) as (client, session, folder):
        await client.prompt(session)
        assert (folder / "a.txt").exists()
        await client.prompt(session, "/undo")
        is_there = (folder / "a.txt").exists()
        said = [one["content"]["text"] for one in client.of("agent_message_chunk")]
    assert (is_there, said[-1]) == (False, "Checkpoint 1: 1 file deleted.")


@pytest.mark.parametrize("command", ["/undo", "/rewind {n} files", "/rewind {n}"])
async def test_what_a_command_restored_is_said_once_and_each_time(tmp_path: Path, command: str) -> None:
    twice = Script(turns=TWICE.turns * 2)
    async with ScriptedServer(twice) as server, working(tmp_path, server) as (client, session, _):
        for n in (1, 2):
            await client.prompt(session)
            await client.prompt(session, command.format(n=n))
        await client.call("session/set_mode", sessionId=session, modeId="plan")  # what came before was shown
        chunks = (*client.of("agent_message_chunk"), *client.of("agent_thought_chunk"))
    said = [one["content"]["text"] for one in chunks]
    assert [one.count("1 file deleted.") for one in said if "deleted" in one] == [1, 1]


async def _go_back_and_forth(client: Any, session: str, folder: Path) -> None:
    file = folder / "a.txt"
    listed = (await client.call("_treadle/checkpoints", sessionId=session))["checkpoints"]
    assert [(one["why"], one["added"], one["removed"]) for one in listed] == [
        ("before changes", 0, 0),
        ("after changes", 1, 0),
    ]
    first = listed[0]["number"]
    since = await client.call("_treadle/checkpoints", sessionId=session, since=first)
    assert since["changes"] == [{"path": str(file), "change": "added"}]
    assert "+one" in since["diff"]
    shown = await client.call("_treadle/restore", sessionId=session, checkpoint=first, preview=True)
    assert [(one["what"], one["path"]) for one in shown["paths"]] == [("delete", str(file))]
    assert file.read_text() == "one\n"
    went = await client.call("_treadle/restore", sessionId=session, checkpoint=first)
    assert (went["removed"], went["error"], went["conflicts"], file.exists()) == ([str(file)], "", [], False)
    undo = {"sessionId": session, "checkpoint": went["undo"], "seen": went["seen"]}
    back = await client.call("_treadle/restore", **undo)
    assert (back["written"], file.read_text()) == ([str(file)], "one\n")
    with pytest.raises(RefusedByAgentError, match="newer work"):
        await client.call("_treadle/restore", **undo)
    with pytest.raises(RefusedByAgentError, match="newer work"):
        await client.call("_treadle/restore", sessionId=session, checkpoint=first, seen=shown["seen"])


async def test_requests_about_no_session_are_refused(tmp_path: Path) -> None:
    async with editor(tmp_path / "home") as client:
        await client.initialize()
        for method, more in (("_treadle/checkpoints", {}), ("_treadle/restore", {"checkpoint": 1})):
            with pytest.raises(RefusedByAgentError, match="no session"):
                await client.call(method, sessionId="none", **more)
