"""The published Python SDK for Claude Code drives Treadle: what its documents show, against a scripted model."""

import asyncio
import os
import signal
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.place import Host, on, run, says, write
from tests.needed import require
from treadle.providers.scripted.script import MakeCall, SayText, SayThinking, Wait

require("claude_agent_sdk", module=True)
import claude_agent_sdk as sdk  # noqa: E402
from claude_agent_sdk import (  # noqa: E402
    AssistantMessage,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    UserMessage,
    query,
)

from tests.hosts.sdk_driving import asked, end, failed, options, results, texts, uses  # noqa: E402

ANSWER = MakeCall(name="attempt_completion", arguments={"result": "4"})


async def test_a_query_gives_the_answer_as_text_and_as_the_result(host: Host) -> None:
    async with host.model(says(SayText(text="Two and two."), ANSWER)) as environment:
        messages = [message async for message in query(prompt="What is 2 + 2?", options=options(host, environment))]
    assert texts(messages) == ["Two and two.", "4"]
    result = end(messages)
    assert (result.subtype, result.is_error, result.result, result.stop_reason) == ("success", False, "4", "end_turn")
    assert (result.num_turns, result.permission_denials, result.terminal_reason) == (1, [], "completed")
    assert (result.total_cost_usd or 0) > 0
    (init,) = [message.data for message in messages if isinstance(message, SystemMessage)]
    assert (init["cwd"], init["permissionMode"]) == (str(host.folder), "dontAsk")
    assert {"Bash", "Read", "Edit", "Write", "Grep", "Glob"} <= set(init["tools"])


async def test_several_messages_of_a_client_are_one_conversation(host: Host) -> None:
    async with (
        host.model(says(SayText(text="one")), says(SayText(text="two"))) as environment,
        ClaudeSDKClient(options(host, environment)) as client,
    ):
        first = await asked(client, "first")
        second = await asked(client, "second")
    assert (end(first).result, end(second).result) == ("one", "two")
    assert end(first).session_id == end(second).session_id
    assert (end(second).total_cost_usd or 0) > (end(first).total_cost_usd or 0)
    (server,) = host.servers
    assert len(server.requests) == 2
    assert server.violations == []


async def test_messages_can_be_a_stream_with_images(host: Host) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        content = [{"type": "text", "text": "Look."}, {"type": "image", "source": picture}]
        yield {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}

    async with host.model(says(SayText(text="A picture."))) as environment:
        messages = [one async for one in query(prompt=prompts(), options=options(host, environment))]
    assert end(messages).result == "A picture."
    sent = str(host.servers[0].requests[0].body["messages"])
    assert "iVBORw0KGgo=" in sent


async def test_the_host_amends_a_call_that_it_allows(host: Host) -> None:
    seen: list[Any] = []

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        seen.append((name, given, context.suggestions[0].type, context.suggestions[1].mode, bool(context.title)))
        return PermissionResultAllow(updated_input={**given, "content": "amended"})

    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    path = str(host.folder / "out.txt")
    assert seen == [("Write", {"file_path": path, "content": "hello"}, "addRules", "acceptEdits", True)]
    assert (host.folder / "out.txt").read_text() == "amended\n"
    assert uses(messages) == [("Write", {"file_path": path, "content": "hello"})]
    assert [block.is_error for block in results(messages)] == [False]
    assert (end(messages).subtype, end(messages).result) == ("success", "All done.")


async def test_what_the_host_denies_does_not_run_and_the_model_reads_why(host: Host) -> None:
    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="Not on a Friday.")

    async with (
        host.model(says(run("touch made"))) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert not (host.folder / "made").exists()
    (block,) = results(messages)
    assert block.is_error
    assert "Not on a Friday." in str(block.content)
    denied = end(messages).permission_denials
    assert [(one["tool_name"], one["tool_input"]) for one in denied or ()] == [("Bash", {"command": "touch made"})]
    assert end(messages).subtype == "success"


async def test_a_denial_with_interrupt_ends_the_turn(host: Host) -> None:
    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultDeny:
        return PermissionResultDeny(message="Stop!", interrupt=True)

    async with (
        host.model(says(run("touch made"))) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert (end(messages).subtype, len(host.servers[0].requests)) == ("error_during_execution", 1)


async def test_a_callback_that_fails_denies(host: Host) -> None:
    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        raise ValueError("broken callback")

    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert not (host.folder / "out.txt").exists()
    assert "broken callback" in str(results(messages)[0].content)


async def test_an_amended_input_that_cannot_run_is_a_denial(host: Host) -> None:
    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input={"nonsense": 1})

    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert not (host.folder / "out.txt").exists()
    assert "cannot run" in str(results(messages)[0].content)


async def test_a_rule_that_the_host_adds_is_asked_about_no_more(host: Host) -> None:
    seen: list[str] = []

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        seen.append(given["content"])
        return PermissionResultAllow(updated_permissions=context.suggestions[:1])

    turns = (says(write(content="1")), says(write(content="2")))
    async with (
        host.model(*turns) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        await asked(client, "go")
    assert seen == ["1"]
    assert (host.folder / "out.txt").read_text() == "2\n"


async def test_the_host_changes_the_mode_with_its_answer(host: Host) -> None:
    seen: list[str] = []

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        seen.append(given["file_path"])
        update = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return PermissionResultAllow(updated_permissions=[update])

    async with (
        host.model(says(write("one.txt")), says(write("two.txt"))) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert seen == [str(host.folder / "one.txt")]
    assert (host.folder / "two.txt").exists()
    status = [
        message.data for message in messages if isinstance(message, SystemMessage) and message.subtype == "status"
    ]
    assert [one["permissionMode"] for one in status] == ["acceptEdits"]


async def test_the_model_asks_the_user_a_question(host: Host) -> None:
    asks = MakeCall(name="ask_followup_question", arguments={"question": "Which?", "options": ["A", "B"]})

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        assert name == "AskUserQuestion"
        question = given["questions"][0]["question"]
        return PermissionResultAllow(updated_input={**given, "answers": {question: "B"}})

    async with (
        host.model(says(asks)) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        messages = await asked(client, "go")
    assert "B" in str(results(messages)[0].content)


@pytest.mark.parametrize("mode", [None, "dontAsk"])
async def test_a_host_that_answers_no_questions_reads_what_was_denied_in_the_result(host: Host, mode: Any) -> None:
    async with host.model(says(write())) as environment:
        said = options(host, environment, permission_mode=mode)
        messages = [one async for one in query(prompt="go", options=said)]
    assert not (host.folder / "out.txt").exists()
    assert (end(messages).is_error, end(messages).subtype, end(messages).result) == (False, "success", "All done.")
    assert [one["tool_name"] for one in end(messages).permission_denials or ()] == ["Write"]


async def test_an_interrupt_stops_the_turn_and_the_conversation_goes_on(host: Host) -> None:
    async with (
        host.model(on("sleep", SayText(text="zzz"), Wait(seconds=30)), on("again", SayText(text="here"))) as env,
        ClaudeSDKClient(options(host, env, include_partial_messages=True)) as client,
    ):
        await client.query("sleep")
        first: list[Any] = []
        async for message in client.receive_response():
            first.append(message)
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                await client.interrupt()
        second = await asked(client, "again")
    assert (end(first).subtype, end(first).terminal_reason) == ("error_during_execution", "aborted_streaming")
    assert end(second).result == "here"


async def test_an_interrupt_takes_an_open_question_back(host: Host) -> None:
    put, withdrawn = asyncio.Event(), asyncio.Event()

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        put.set()
        try:
            await asyncio.sleep(60)
        finally:
            withdrawn.set()
        return PermissionResultAllow()

    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
    ):
        await client.query("go")
        await put.wait()
        await client.interrupt()
        messages = [message async for message in client.receive_response()]
        await withdrawn.wait()
    assert end(messages).terminal_reason in ("aborted_tools", "aborted_streaming")
    assert not (host.folder / "out.txt").exists()


async def test_mode_and_model_change_in_the_middle(host: Host) -> None:
    async with (
        host.model(says(SayText(text="one")), says(write()), says(SayText(text="two"))) as environment,
        ClaudeSDKClient(options(host, environment)) as client,
    ):
        await asked(client, "first")
        await client.set_permission_mode("acceptEdits")
        await client.set_model("other")
        messages = await asked(client, "second")
        with pytest.raises(Exception, match="no permission mode 'odd'"):
            await client.set_permission_mode("odd")
    assert (host.folder / "out.txt").exists()
    init = next(one.data for one in messages if isinstance(one, SystemMessage) and one.subtype == "init")
    assert (init["permissionMode"], init["model"]) == ("acceptEdits", "anthropic-compatible/other")
    assert host.servers[0].requests[-1].body["model"] == "other"


async def test_a_session_is_resumed_continued_and_forked(host: Host) -> None:
    async with host.model(*(says(SayText(text=text)) for text in ("one", "two", "three", "four"))) as environment:
        ids: list[str] = []
        for said in ({}, {"resume": ""}, {"continue_conversation": True}, {"resume": "", "fork_session": True}):
            known = {name: (ids[0] if value == "" else value) for name, value in said.items()}
            messages = [one async for one in query(prompt="go", options=options(host, environment, **known))]
            ids.append(end(messages).session_id)
    assert ids[0] == ids[1] == ids[2]
    assert ids[3] != ids[0]
    requests = host.servers[0].requests
    assert [len(one.body["messages"]) for one in requests] == [1, 3, 5, 7]


async def test_a_new_session_has_the_id_that_the_host_wants(host: Host) -> None:
    wanted = "0f0e0d0c-0b0a-4908-8706-050403020100"
    async with host.model(says(SayText(text="one"))) as environment:
        said = options(host, environment, session_id=wanted)
        messages = [one async for one in query(prompt="go", options=said)]
        assert end(messages).session_id == wanted
        with pytest.raises(sdk.ResultError, match="session with this id already"):
            _ = [one async for one in query(prompt="go", options=said)]


SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}, "words": {"type": "array", "items": {"type": "string"}}},
    "required": ["sum", "words"],
    "additionalProperties": False,
}


async def test_the_answer_has_the_form_that_the_host_wants(host: Host) -> None:
    turns = (
        says(MakeCall(name="StructuredOutput", arguments={"sum": "four"})),
        says(SayText(text="It is four.")),
        says(MakeCall(name="StructuredOutput", arguments={"sum": 4, "words": ["four"]})),
    )
    async with host.model(*turns) as environment:
        said = options(host, environment, output_format={"type": "json_schema", "schema": SCHEMA})
        messages = [one async for one in query(prompt="What is 2 + 2?", options=said)]
    assert end(messages).structured_output == {"sum": 4, "words": ["four"]}
    assert (end(messages).subtype, end(messages).num_turns) == ("success", 3)


async def test_an_answer_that_never_has_the_form_is_an_error(host: Host) -> None:
    async with host.model() as environment:
        said = options(host, environment, output_format={"type": "json_schema", "schema": SCHEMA})
        messages, error = await failed(said)
        assert "JSON Schema" in str(error)
    assert end(messages).subtype == "error_max_structured_output_retries"
    assert end(messages).structured_output is None


async def test_partial_messages_are_the_events_of_the_api(host: Host) -> None:
    turn = says(SayThinking(text="Hm."), SayText(text="Hello."), run("echo hi"))
    async with host.model(turn, says(ANSWER)) as environment:
        said = options(host, environment, include_partial_messages=True, permission_mode="acceptEdits")
        messages = [one async for one in query(prompt="go", options=said)]
    events = [one.event for one in messages if isinstance(one, StreamEvent)]
    last = [one["type"] for one in events].index("message_stop") + 1
    first = events[:last]
    assert [one["type"] for one in first if one["type"] != "content_block_delta"] == [
        "message_start",
        *["content_block_start", "content_block_stop"] * 3,
        "message_delta",
        "message_stop",
    ]
    deltas = [one["delta"] for one in first if one["type"] == "content_block_delta"]
    assert "".join(one.get("thinking", "") for one in deltas) == "Hm."
    assert "".join(one.get("text", "") for one in deltas) == "Hello."
    assert "".join(one.get("partial_json", "") for one in deltas) == '{"command": "echo hi"}'
    assert [one["index"] for one in first if one["type"] == "content_block_start"] == [0, 1, 2]


async def test_the_limit_of_steps_is_an_error_that_says_so(host: Host) -> None:
    look = MakeCall(name="list_files", arguments={"path": "."})
    async with host.model(says(look), says(look)) as environment:
        messages, error = await failed(options(host, environment, max_turns=1))
        assert "limit of steps" in str(error)
    assert (end(messages).subtype, end(messages).terminal_reason) == ("error_max_turns", "max_turns")
    assert error.exit_code == 53


async def test_the_budget_is_an_error_that_says_so(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment:
        messages, error = await failed(options(host, environment, max_budget_usd=0.000001))
        assert "budget" in str(error)
    assert end(messages).subtype == "error_max_budget_usd"


async def test_tools_and_prompt_are_as_the_host_wants(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment:
        said = options(
            host,
            environment,
            tools=["Read", "Bash", "Edit"],
            disallowed_tools=["Bash"],
            system_prompt="You are a pirate.",
        )
        _ = [one async for one in query(prompt="go", options=said)]
    body = host.servers[0].requests[0].body
    names = {tool["name"] for tool in body["tools"]}
    assert "read_file" in names
    assert names.isdisjoint({"execute_command", "write_to_file", "search_files", "web_fetch"})
    assert "You are a pirate." in str(body["system"])


async def test_an_appended_prompt_comes_after_treadles_own(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment:
        prompt = {"type": "preset", "preset": "claude_code", "append": "Speak like a pirate."}
        _ = [one async for one in query(prompt="go", options=options(host, environment, system_prompt=prompt))]
    system = str(host.servers[0].requests[0].body["system"])
    assert "Treadle" in system
    assert "Speak like a pirate." in system


async def test_allowed_tools_allow_what_they_name_and_no_more(host: Host) -> None:
    seen: list[str] = []

    async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultDeny:
        seen.append(given.get("command", name))
        return PermissionResultDeny(message="no")

    turns = (says(write()), says(run("mkdir -p made")), says(run("rm -rf out.txt")))
    async with host.model(*turns) as environment:
        said = options(
            host, environment, allowed_tools=["Write", "Bash(mkdir -p made)", "Bash"], can_use_tool=permission
        )
        warnings.simplefilter("ignore", sdk.CanUseToolShadowedWarning)
        async with ClaudeSDKClient(said) as client:
            await asked(client, "go")
    assert (host.folder / "out.txt").exists()
    assert (host.folder / "made").exists()
    assert seen == ["rm -rf out.txt"]


async def test_the_folder_is_trusted_only_when_the_host_says_so(host: Host) -> None:
    (host.folder / "AGENTS.md").write_text("Always say ahoy.")

    async def permission(name: str, given: dict[str, Any], context: Any) -> Any:
        seen.append((name, given["folder"], [one["path"] for one in given["items"]]))
        return PermissionResultAllow() if answer else PermissionResultDeny(message="no")

    for answer in (True, False):
        seen: list[Any] = []
        async with (
            host.model(says(SayText(text="one"))) as environment,
            ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client,
        ):
            assert seen == []
            await asked(client, "go")
        assert seen == [("TrustFolder", str(host.folder), ["AGENTS.md"])]
        assert ("Always say ahoy." in str(host.servers[-1].requests[0].body)) is answer
    async with host.model(says(SayText(text="one"))) as environment:
        _ = [one async for one in query(prompt="go", options=options(host, environment))]
    assert "Always say ahoy." not in str(host.servers[-1].requests[0].body)


async def test_a_slash_command_is_done(host: Host) -> None:
    async with host.model() as environment, ClaudeSDKClient(options(host, environment)) as client:
        messages = await asked(client, "/status")
        info = await client.get_server_info()
    assert "anthropic-compatible/scripted" in str(end(messages).result)
    assert host.servers[0].requests == []
    assert info is not None
    assert "compact" in [one["name"] for one in info["commands"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/complct", "There is no command /complct. Did you mean /compact?"),
        ("/clear", "/clear does not work here."),
        ("/compact", "/compact is not possible now: there is no message yet."),
    ],
)
async def test_a_slash_command_that_cannot_be_done_is_answered_without_a_model(
    host: Host, text: str, said: str
) -> None:
    async with host.model() as environment, ClaudeSDKClient(options(host, environment)) as client:
        result = end(await asked(client, text))
    assert (result.is_error, str(result.result).startswith(said)) == (True, True), result.result
    assert host.servers[0].requests == []


async def test_the_host_learns_how_full_the_window_is(host: Host) -> None:
    async with (
        host.model(says(SayText(text="one"))) as environment,
        ClaudeSDKClient(options(host, environment)) as client,
    ):
        await asked(client, "go")
        usage = await client.get_context_usage()
    assert (usage["maxTokens"], usage["totalTokens"] > 100) == (200_000, True)
    assert sum(one["tokens"] for one in usage["categories"]) > 100


async def test_files_go_back_to_before_a_message(host: Host) -> None:
    (host.folder / "out.txt").write_text("old")
    read = MakeCall(name="read_file", arguments={"path": "out.txt"})
    async with host.model(says(read, write(content="new"))) as environment:
        said = options(host, environment, permission_mode="acceptEdits", extra_args={"replay-user-messages": None})
        async with ClaudeSDKClient(said) as client:
            messages = await asked(client, "go")
            assert (host.folder / "out.txt").read_text() == "new"
            sent = next(one.uuid for one in messages if isinstance(one, UserMessage) and results([one]) == [])
            await client.rewind_files(str(sent))
    assert (host.folder / "out.txt").read_text() == "old"


async def test_a_killed_program_leaves_a_session_that_goes_on(host: Host) -> None:
    pid, code, session = 0, 0, ""
    async with host.model(says(write()), on("go on", SayText(text="back"))) as environment:

        async def permission(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
            os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(60)
            return PermissionResultAllow()

        async with ClaudeSDKClient(options(host, environment, can_use_tool=permission)) as client:
            pid = (await client.get_server_info() or {})["pid"]
            await client.query("go")
            try:
                async for message in client.receive_messages():
                    session = getattr(message, "session_id", None) or session
            except sdk.ProcessError as error:
                code = error.exit_code
        assert not (host.folder / "out.txt").exists()
        messages = [one async for one in query(prompt="go on", options=options(host, environment, resume=session))]
    assert (code, end(messages).result) == (-signal.SIGKILL, "back")


async def test_what_keeps_a_session_from_opening_is_what_the_host_reads(host: Host, tmp_path: Path) -> None:
    async with host.model() as environment:
        said = options(host, environment, resume="20200101-000000-nothere")
        with pytest.raises(sdk.ResultError, match="nothere"):
            _ = [one async for one in query(prompt="go", options=said)]


async def entries(host: Host, environment: dict[str, str]) -> tuple[str, list[Any]]:
    """Have a conversation of three turns, the second with a call; gives its session and messages."""
    async with ClaudeSDKClient(options(host, environment, permission_mode="acceptEdits")) as client:
        messages = [one for text in ("first", "second", "third") for one in await asked(client, text)]
    return messages[-1].session_id, messages


def sent(host: Host) -> str:
    """What the model was last sent, besides the system prompt."""
    return str(host.servers[0].requests[-1].body["messages"])


TALK = (
    on("again", SayText(text="Back.")),
    on("third", SayText(text="Three.")),
    on("second", SayText(text="I write."), write()),
    on("first", SayText(text="One.")),
)


@pytest.mark.parametrize("fork", [False, True])
async def test_a_conversation_goes_on_from_a_message_that_the_host_names(host: Host, fork: bool) -> None:
    async with host.model(*TALK) as environment:
        session, messages = await entries(host, environment)
        one, call = (next(m for m in messages if text in texts([m])) for text in ("One.", "I write."))
        back = options(host, environment, resume=session, resume_session_at=call.uuid, fork_session=fork)
        again = [message async for message in query(prompt="again", options=back)]
        in_call = sent(host)
        session = end(again).session_id if fork else session
        back = options(host, environment, resume=session, resume_session_at=one.uuid, fork_session=fork)
        again += [message async for message in query(prompt="once again", options=back)]
        assert host.servers[0].violations == []
    assert [end([message]).result for message in again if isinstance(message, ResultMessage)] == ["Back.", "Back."]
    assert ("I write." in in_call, "tool_result" in in_call, "Three." in in_call) == (True, True, False)
    assert ("One." in sent(host), "second" in sent(host), "Three." in sent(host)) == (True, False, False)
    assert (host.folder / "out.txt").exists()


async def test_going_back_to_a_message_drops_no_more_than_the_host_knows(host: Host) -> None:
    async def second() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "user", "uuid": "known", "message": {"role": "user", "content": "second"}}

    async with host.model(*TALK) as environment:
        messages = [one async for one in query(prompt="first", options=options(host, environment))]
        session, one = end(messages).session_id, next(m for m in messages if isinstance(m, AssistantMessage))
        _ = [one async for one in query(prompt=second(), options=options(host, environment, resume=session))]
        known = {"resume": session, "resume_session_at": one.uuid}
        for more, text in (
            ({"resume_drops_turn": "odd"}, "Resume rejected by --resume-drops-turn:"),
            ({"resume_drops_turn": ""}, "Resume rejected by --resume-drops-turn:"),
            ({"resume_session_at": "odd"}, "no message with the uuid odd"),
            ({"resume": None}, "It needs --resume or --continue"),
        ):
            with pytest.raises(sdk.ResultError, match=text):
                _ = [m async for m in query(prompt="again", options=options(host, environment, **{**known, **more}))]
        back = options(host, environment, **known, resume_drops_turn="known")
        assert end([m async for m in query(prompt="again", options=back)]).result == "Back."
    assert ("One." in sent(host), "I write." in sent(host)) == (True, False)
