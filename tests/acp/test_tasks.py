"""Whole tasks of an editor: what it is shown, what its user is asked, and how turns end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import Editor, RefusedByAgentError, choosing, diff, working
from tests.e2e.faults.driving import DONE, block, make, run, script
from treadle.door.commands import SLASH_TABLE
from treadle.providers.scripted.script import Expectation, Refuse, SayText, SayThinking, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

ASK = make("ask_followup_question", question="Which one?", options=["red", "blue"])

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def fields(client: Editor, call: str, name: str) -> list[Any]:
    """What the client was shown of a field of a call, in order."""
    calls = [one for one in client.updates if one.get("toolCallId") == call and name in one]
    return [one[name] for one in calls]


def refusing(code: int) -> Any:
    """Give the answer of a client that fails with this code instead of asking."""

    def refuse(_: dict[str, Any]) -> Any:
        raise RefusedByAgentError({"code": code, "message": "not here"})

    return refuse


async def test_a_task_is_shown_with_its_diffs_output_plan_and_answer(tmp_path: Path) -> None:
    steps = (
        make("write_to_file", path="a.txt", content="one\ntwo\n", task_progress="- [ ] write\n- [x] look"),
        make("replace_in_file", path="a.txt", diff=block("two\n", "three\n")),
        run("echo hello"),
    )
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        answer = await client.prompt(session)
        text = (folder / "a.txt").read_text()
    path = str(folder / "a.txt")
    assert answer["stopReason"] == "end_turn"
    assert text == "one\nthree\n"
    assert client.said() == "Done."
    assert fields(client, "call_1_1_1", "status") == ["pending", "in_progress", "completed"]
    assert fields(client, "call_1_1_1", "content")[0] == [diff(path, "one\ntwo\n")]
    new = diff(path, "one\nthree\n", "one\ntwo\n")
    assert fields(client, "call_2_1_1", "content")[-1] == [new]
    assert fields(client, "call_2_1_1", "locations")[-1] == [{"path": path, "line": 1}]
    output = "```console\nhello\n```"
    assert fields(client, "call_3_1_1", "content")[-1:] == [
        [{"type": "content", "content": {"type": "text", "text": output}}]
    ]
    assert fields(client, "call_3_1_1", "kind") == ["execute"]
    assert client.of("plan")[0]["entries"] == [
        {"content": "write", "priority": "medium", "status": "pending"},
        {"content": "look", "priority": "medium", "status": "completed"},
    ]
    assert client.of("session_info_update")[-1]["title"] == "Work."
    asked = [params for method, params in client.asked if method == "session/request_permission"]
    assert [one["toolCall"]["title"] for one in asked] == ["Create a.txt?", "Apply this edit to a.txt?"]
    assert [one["optionId"] for one in asked[0]["options"]] == ["allow_once", "allow_always:edits", "reject_once"]


async def test_text_and_thoughts_are_streamed_once_and_usage_follows(tmp_path: Path) -> None:
    turn = Turn(items=(SayThinking(text="Hm."), SayText(text="The **answer** is\n42.\x1b[31m")))
    home = tmp_path / "home"
    home.mkdir()
    window = (
        '[models."anthropic-compatible/scripted"]\ncontext_window = 100000\ninput_price = 1.0\noutput_price = 1.0\n'
    )
    (home / "config.toml").write_text(window)
    async with ScriptedServer(Script(turns=(turn,))) as server, working(tmp_path, server) as (client, session, _):
        answer = await client.prompt(session)
    assert client.said() == "The **answer** is\n42.\\x1b[31m"
    assert client.said("agent_thought_chunk") == "Hm."
    usage = client.of("usage_update")[-1]
    assert (usage["size"], usage["cost"]["currency"]) == (100_000, "USD")
    assert usage["cost"]["amount"] > 0
    assert answer["usage"]["totalTokens"] == answer["usage"]["inputTokens"] + answer["usage"]["outputTokens"]


async def test_what_the_user_rejects_does_not_happen(tmp_path: Path) -> None:
    steps = (make("write_to_file", path="a.txt", content="one\n"),)
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        client.answers["session/request_permission"] = choosing("reject_once")
        answer = await client.prompt(session)
        sent = json.dumps(server.requests[-1].body)
    assert answer["stopReason"] == "end_turn"
    assert not (folder / "a.txt").exists()
    assert "rejected" in sent
    assert fields(client, "call_1_1_1", "status")[-1] == "failed"


@pytest.mark.parametrize("outcome", [{"outcome": "cancelled"}, {"outcome": "selected", "optionId": "everything"}])
async def test_an_answer_that_was_not_offered_is_a_no(tmp_path: Path, outcome: dict[str, str]) -> None:
    steps = (make("write_to_file", path="a.txt", content="one\n"),)
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        client.answers["session/request_permission"] = lambda _: {"outcome": outcome}
        await client.prompt(session)
    assert not (folder / "a.txt").exists()


@pytest.mark.parametrize(("code", "asked"), [(-32601, 1), (-32603, 2)])
async def test_what_a_client_cannot_show_is_denied_as_without_anybody(tmp_path: Path, code: int, asked: int) -> None:
    steps = [make("write_to_file", path=f"{name}.txt", content="one\n") for name in "ab"]
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        client.answers["session/request_permission"] = refusing(code)
        await client.prompt(session)
        sent = [str(request.body) for request in server.requests]
    assert sorted(folder.glob("*.txt")) == []
    assert all("nobody is here" in body and "rejected" not in body for body in sent[1:])
    assert len(client.asked) == asked
    assert ("shows no questions" in client.said("agent_thought_chunk")) is (asked == 1)


async def test_what_a_client_cannot_show_waits_for_what_its_user_looks_at(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"text of {name}\n")
    both = tuple(make("read_file", path=str(tmp_path / f"{name}.txt")) for name in "ab")
    async with ScriptedServer(script(both)) as server, working(tmp_path, server) as (client, session, _):
        seen: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        client.answers["session/request_permission"] = lambda asked: (
            seen if "b.txt" in str(asked) else refusing(-32603)(asked)
        )
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: len(client.asked) == 2)
        seen.set_result({"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        await turn
        sent = str(server.requests[-1].body)
    assert "text of b" in sent
    assert "text of a" not in sent
    assert "nobody is here" in sent


async def test_a_yes_to_all_edits_asks_for_no_further_edit(tmp_path: Path) -> None:
    steps = [make("write_to_file", path=f"{name}.txt", content="one\n") for name in "ab"]
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        client.answers["session/request_permission"] = choosing("allow_always:edits")
        await client.prompt(session)
        assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]
    assert len(client.asked) == 1
    assert client.of("current_mode_update")[-1]["currentModeId"] == "edits"
    options = {one["id"]: one["currentValue"] for one in client.of("config_option_update")[-1]["configOptions"]}
    assert options["mode"] == "edits"


async def test_something_dangerous_is_named_so_and_begins_with_no(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    async with (
        ScriptedServer(script(run("git push --force"))) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        client.answers["session/request_permission"] = choosing("reject_once")
        await client.prompt(session)
    (asked,) = [params for method, params in client.asked if method == "session/request_permission"]
    assert [one["kind"] for one in asked["options"]] == ["reject_once", "allow_once"]
    assert asked["toolCall"]["title"].startswith("Dangerous: ")
    assert asked["toolCall"]["kind"] == "execute"


async def test_cancel_ends_the_turn_and_takes_the_question_back(tmp_path: Path) -> None:
    steps = (make("write_to_file", path="a.txt", content="one\n"),)
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server) as (client, session, folder):
        open_question: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        client.answers["session/request_permission"] = lambda _: open_question
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: client.asked)
        client.tell("session/cancel", sessionId=session)
        answer = await turn
        await client.until(lambda: client.asked[-1][0] == "$/cancel_request")
        again = await client.prompt(session, "Go on.")
    assert (answer["stopReason"], again["stopReason"]) == ("cancelled", "end_turn")
    assert not (folder / "a.txt").exists()


async def test_cancel_stops_a_command_that_runs(tmp_path: Path) -> None:
    async with (
        ScriptedServer(script(run("echo begun; sleep 60"))) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: "begun" in json.dumps(client.of("tool_call_update")))
        client.tell("session/cancel", sessionId=session)
        answer = await turn
    assert answer["stopReason"] == "cancelled"
    assert fields(client, "call_1_1_1", "status")[-1] == "failed"


async def test_a_turn_whose_session_is_closed_has_its_figures(tmp_path: Path) -> None:
    async with (
        ScriptedServer(script(run("echo begun; sleep 60"))) as server,
        working(tmp_path, server) as (client, session, _),
    ):
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: "begun" in json.dumps(client.of("tool_call_update")))
        waits = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Then this."}])
        await client.call("session/close", sessionId=session)
        answer, dropped = await turn, await waits
    assert answer["stopReason"] == "cancelled"
    assert answer["usage"]["inputTokens"] > 0
    assert dropped == {"stopReason": "cancelled"}


async def test_a_prompt_that_is_taken_back_stops_the_turn(tmp_path: Path) -> None:
    script_ = Script(turns=(Turn(items=(Wait(seconds=60),)), DONE))
    async with ScriptedServer(script_) as server, working(tmp_path, server) as (client, session, _):
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: server.requests)
        (number,) = client.waiting
        client.tell("$/cancel_request", requestId=number)
        with pytest.raises(RefusedByAgentError) as refused:
            await turn
    assert refused.value.code == -32800


async def test_a_question_with_options_is_a_choice(tmp_path: Path) -> None:
    async with ScriptedServer(script(ASK)) as server, working(tmp_path, server) as (client, session, _):
        client.answers["session/request_permission"] = choosing("answer:1")
        answer = await client.prompt(session)
        sent = json.dumps(server.requests[-1].body["messages"][-1])
    (asked,) = [params for method, params in client.asked]
    assert [one["name"] for one in asked["options"]] == ["red", "blue", "Answer in my own words"]
    assert answer["stopReason"] == "end_turn"
    assert "blue" in sent
    assert client.said() == "Which one?\n\nDone."
    assert client.said("user_message_chunk") == "blue"


async def test_a_question_is_answered_in_words_by_the_next_prompt(tmp_path: Path) -> None:
    async with ScriptedServer(script(ASK)) as server, working(tmp_path, server) as (client, session, _):
        client.answers["session/request_permission"] = choosing("words")
        first = await client.prompt(session)
        said = client.said()
        second = await client.prompt(session, "Green, please.")
        sent = json.dumps(server.requests[-1].body["messages"][-1])
    assert (first["stopReason"], second["stopReason"]) == ("end_turn", "end_turn")
    assert said == "Which one?\n\n1. red\n\n2. blue"
    assert "Green, please." in sent
    assert len(server.requests) == 2


async def test_a_question_is_a_form_where_the_client_shows_forms(tmp_path: Path) -> None:
    question = make("ask_followup_question", question="What is its name?")
    async with (
        ScriptedServer(script(question)) as server,
        working(tmp_path, server, elicitation={"form": {}}) as (client, session, _),
    ):
        client.answers["elicitation/create"] = lambda _: {"action": "accept", "content": {"answer": "Ada"}}
        await client.prompt(session)
        sent = json.dumps(server.requests[-1].body["messages"][-1])
    ((method, asked),) = client.asked
    assert (method, asked["message"]) == ("elicitation/create", "What is its name?")
    assert "Ada" in sent


async def test_a_message_that_steers_reaches_the_turn_that_runs(tmp_path: Path) -> None:
    turns = (Turn(items=(run("sleep 1"),)), DONE)
    async with ScriptedServer(Script(turns=turns)) as server, working(tmp_path, server) as (client, session, _):
        block = [{"type": "text", "text": "Use tabs."}]
        idle = await client.call(
            "_session/steering", sessionId=session, prompt=block, _meta={"steering": {"idleBehavior": "promptRequired"}}
        )
        turn = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Work."}])
        await client.until(lambda: client.of("tool_call"))
        steered = await client.call("_session/steering", sessionId=session, prompt=block)
        also = client.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Or not."}], _meta={"steering": True}
        )
        ends = [(await turn)["stopReason"], (await also)["stopReason"]]
        sent = json.dumps(server.requests[1].body)
    assert idle == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    assert steered == {"outcome": "injected"}
    assert ends == ["end_turn", "end_turn"]
    assert "Use tabs." in sent
    assert "Or not." in sent
    assert len(server.requests) == 2


async def test_a_prompt_that_comes_while_one_runs_waits_for_its_turn(tmp_path: Path) -> None:
    turns = (Turn(items=(run("sleep 0.5"),)), DONE, DONE)
    async with ScriptedServer(Script(turns=turns)) as server, working(tmp_path, server) as (client, session, _):
        first = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "One."}])
        await client.until(lambda: client.of("tool_call"))
        second = client.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Two."}])
        ends = [(await first)["stopReason"], (await second)["stopReason"]]
    assert ends == ["end_turn", "end_turn"]
    assert len(server.requests) == 3


async def test_a_model_that_fails_ends_the_prompt_with_what_to_do(tmp_path: Path) -> None:
    script_ = Script(turns=(Turn(items=(Refuse(status=401),)),))
    async with ScriptedServer(script_) as server, working(tmp_path, server) as (client, session, _):
        with pytest.raises(RefusedByAgentError) as refused:
            await client.prompt(session)
    assert refused.value.code == -32000
    assert "refused the API key (401)" in refused.value.message


async def test_a_limit_ends_the_turn_with_the_reason(tmp_path: Path) -> None:
    async with (
        ScriptedServer(script(run("true"), run("true"))) as server,
        working(tmp_path, server, "--max-steps", "1") as (client, session, _),
    ):
        client.answers["session/request_permission"] = choosing("reject_once")
        answer = await client.prompt(session)
    ((_, asked),) = client.asked
    assert [one["name"] for one in asked["options"]] == ["Yes, 1 more steps", "No"]
    assert answer["stopReason"] == "max_turn_requests"
    assert client.said() == "*Stopped at the limit of steps.*"
    assert fields(client, asked["toolCall"]["toolCallId"], "status") == ["completed"]


async def test_images_files_and_links_of_a_prompt_reach_the_model(tmp_path: Path) -> None:
    async with ScriptedServer(script()) as server, working(tmp_path, server) as (client, session, folder):
        (folder / "linked.txt").write_text("linked text\n")
        blocks = [
            {"type": "text", "text": "Compare"},
            {"type": "resource_link", "uri": (folder / "linked.txt").as_uri(), "name": "linked.txt"},
            {"type": "text", "text": "with"},
            {"type": "resource", "resource": {"uri": "file:///there/buffer.txt", "text": "embedded </enclosed> text"}},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        ]
        await client.call("session/prompt", sessionId=session, prompt=blocks)
        sent = json.dumps(server.requests[-1].body["messages"][-1])
        audio = [{"type": "audio", "data": "", "mimeType": "audio/wav"}]
        with pytest.raises(RefusedByAgentError) as refused:
            await client.call("session/prompt", sessionId=session, prompt=audio)
    assert "linked text" in sent
    assert "embedded &lt;/enclosed> text" in sent
    assert PIXEL in sent
    assert refused.value.code == -32602


async def test_a_command_is_done_with_what_comes_along_or_says_that_it_was_left_out(tmp_path: Path) -> None:
    buffer = {"type": "resource", "resource": {"uri": "file:///there/buffer.txt", "text": "embedded text"}}
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    answers = Script(turns=(), otherwise=DONE)
    async with ScriptedServer(answers) as server, working(tmp_path, server) as (client, session, _):
        said = []
        for words, more in (
            ("/status", image),
            ("/status", buffer),
            ("/plan Look at", buffer),
            ("/act Look at", image),
            ("/btw What is it?", image),
        ):
            client.updates.clear()
            blocks = [{"type": "text", "text": words}, more]
            await client.call("session/prompt", sessionId=session, prompt=blocks)
            said.append((client.said(), [one["currentModeId"] for one in client.of("current_mode_update")]))
    sent = [json.dumps(request.body["messages"]) for request in server.requests]
    assert all(said[number][0].endswith("Nothing that came along with the command was sent.") for number in (0, 4))
    assert said[1][0] == "/status takes no text behind it. Nothing was done."
    assert [modes for _, modes in said[2:]] == [["plan"], ["ask"], []]
    assert "Look at /there/buffer.txt" in sent[0]
    assert "embedded text" in sent[0]
    assert PIXEL in sent[1]
    assert not any(word in sent[1] for word in ("/plan", "/act"))


async def test_no_slash_command_is_an_error_of_the_protocol_before_the_first_message(tmp_path: Path) -> None:
    answers = Script(turns=(), otherwise=DONE)
    async with ScriptedServer(answers) as server, working(tmp_path, server) as (client, session, _):
        silent = []
        for row in SLASH_TABLE:
            client.updates.clear()
            await client.prompt(session, f"/{row.name}")
            if not (client.said() or server.requests):
                silent.append(row.name)
            server.requests.clear()
        client.updates.clear()
        await client.prompt(session, "/context 9")
        wrong = client.said()
    assert silent == []
    assert "9" in wrong


async def test_slash_commands_are_offered_and_done_without_the_model(tmp_path: Path) -> None:
    skill = tmp_path / "home" / "skills" / "greet"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: greet\ndescription: How to greet.\n---\nSay hello to $ARGUMENTS.\n")
    async with ScriptedServer(script()) as server, working(tmp_path, server) as (client, session, _):
        said = []
        for text in ("/status", "/nonsense", "/resume", "/compact", "/mode plan"):
            client.updates.clear()
            assert (await client.prompt(session, text))["stopReason"] == "end_turn"
            said.append(client.said())
        mode = client.of("current_mode_update")[-1]["currentModeId"]
        requests = len(server.requests)
        client.updates.clear()
        await client.call("session/resume", sessionId=session, cwd=str(tmp_path / "ws"))
        (commands,) = await client.until(lambda: client.of("available_commands_update"))
        await client.prompt(session, "/greet the world")
        sent = json.dumps(server.requests[-1].body["messages"][-1])
    offered = {one["name"]: one for one in commands["availableCommands"]}
    assert "model    anthropic-compatible/scripted" in said[0]
    assert said[1].startswith("There is no command /nonsense.")
    assert said[2].startswith("/resume does not work here.")
    assert said[3] == "/compact is not possible now: there is no message yet."
    assert (said[4], mode, requests) == ("Done.", "plan", 0)
    assert offered["greet"]["description"] == "How to greet."
    assert offered["compact"]["input"] == {"hint": "[FOCUS]"}
    assert "rewind" not in offered
    assert "Say hello to the world." in sent


def subagent_script(*steps: Turn) -> Script:
    """A turn that has a subagent write a file, and what that does."""
    tasks = [{"prompt": "Write a.", "agent": "worker"}]
    return Script(
        turns=(
            *steps,
            Turn(when=Expectation(assistant_messages=0), items=(make("use_subagents", tasks=tasks),)),
            Turn(when=Expectation(last_result=Texts(contains=("<subagent",))), items=(SayText(text="Done."),)),
        )
    )


async def test_what_a_subagent_asks_is_answered_in_the_editor_and_each_is_a_call_of_its_own(tmp_path: Path) -> None:
    of_child = Texts(contains=("You are a subagent",))
    steps = (
        Turn(
            when=Expectation(last_result=Texts(contains=("a.txt",)), system=of_child), items=(SayText(text="Written."),)
        ),
        Turn(
            when=Expectation(last_user=Texts(contains=("Write a.",)), system=of_child),
            items=(make("write_to_file", path="a.txt", content="one\n"),),
        ),
    )
    async with (
        ScriptedServer(subagent_script(*steps)) as server,
        working(tmp_path, server) as (client, session, folder),
    ):
        answer = await client.prompt(session)
        text = (folder / "a.txt").read_text()
    assert (answer["stopReason"], text) == ("end_turn", "one\n")
    asked = [params["toolCall"] for method, params in client.asked if method == "session/request_permission"]
    assert [one["title"] for one in asked] == ["Create a.txt?", "Apply what the subagent worker changed?"]
    assert all(one["toolCallId"] for one in asked)
    (child,) = [one for one in client.of("tool_call") if one.get("kind") == "think"]
    assert child["title"] == "worker: Write a."
    assert fields(client, child["toolCallId"], "status")[-1] == "completed"
