"""The published TypeScript SDK for Claude Code drives Treadle, against a scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.place import Host, on, run, says, write
from tests.mcp.hubs import NODE, PEERS, peer
from tests.needed import needs
from treadle.providers.scripted.script import MakeCall, SayText, Wait

MODULES = PEERS.parent / "claude-sdk" / "node_modules"
pytestmark = needs("peers")
DRIVER = Path(__file__).with_name("typescript_host.mjs")


async def drive(host: Host, environment: dict[str, str], scenario: str, **said: Any) -> list[tuple[str, Any]]:
    """Run a scenario of the driver; gives what it told, in order."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(host.home), **environment}
    given = {"cli": str(host.cli), "folder": str(host.folder), "environment": variables, "more": {}, **said}
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        "--no-warnings",
        str(DRIVER),
        str(MODULES),
        scenario,
        json.dumps(given),
        env={"PATH": "/usr/bin:/bin", "HOME": str(host.home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(90):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, err.decode()) == (0, "")
    return [(one["kind"], one["value"]) for one in map(json.loads, out.splitlines())]


def messages(told: list[tuple[str, Any]], kind: str) -> list[Any]:
    return [value for what, value in told if what == "message" and value["type"] == kind]


def values(told: list[tuple[str, Any]], kind: str) -> list[Any]:
    return [value for what, value in told if what == kind]


def end(told: list[tuple[str, Any]]) -> Any:
    assert not values(told, "error"), values(told, "error")
    (found,) = messages(told, "result")
    return found


def results(told: list[tuple[str, Any]]) -> list[Any]:
    """The results of calls, as the host reads them."""
    contents = [message["message"]["content"] for message in messages(told, "user")]
    return [block for content in contents if isinstance(content, list) for block in content]


async def test_a_query_gives_the_answer(host: Host) -> None:
    async with host.model(says(SayText(text="Four."))) as environment:
        told = await drive(host, environment, "query", prompt="What is 2 + 2?")
    result = end(told)
    assert (result["subtype"], result["is_error"], result["result"]) == ("success", False, "Four.")
    (init,) = [one for one in messages(told, "system") if one["subtype"] == "init"]
    assert (init["cwd"], init["permissionMode"]) == (str(host.folder), "dontAsk")


async def test_the_prompt_of_the_host_reaches_the_model(host: Host) -> None:
    async with host.model(says(SayText(text="Ahoy."))) as environment:
        appended = {"type": "preset", "preset": "claude_code", "append": "Speak like a pirate."}
        end(await drive(host, environment, "query", prompt="go", more={"systemPrompt": appended}))
        end(await drive(host, environment, "query", prompt="go", more={"systemPrompt": "You are a cook."}))
    first, second = (str(request.body["system"]) for request in host.servers[0].requests)
    assert ("You work on the user's task" in first, "Speak like a pirate." in first) == (True, True)
    assert ("You work on the user's task" in second, "You are a cook." in second) == (False, True)


async def test_the_host_amends_a_call_that_it_allows(host: Host) -> None:
    async with host.model(says(write())) as environment:
        told = await drive(host, environment, "amend", prompt="go")
    path = str(host.folder / "out.txt")
    asked = ["Write", {"file_path": path, "content": "hello"}, ["addRules", "setMode"], True]
    assert (values(told, "asked"), end(told)["result"]) == ([asked], "All done.")
    assert (host.folder / "out.txt").read_text() == "amended\n"


async def test_what_the_host_denies_does_not_run_and_the_model_reads_why(host: Host) -> None:
    async with host.model(says(run("touch made"))) as environment:
        told = await drive(host, environment, "deny", prompt="go")
    assert not (host.folder / "made").exists()
    assert "Not on a Friday." in str(results(told)[0]["content"])
    assert [one["tool_name"] for one in end(told)["permission_denials"]] == ["Bash"]


async def test_a_hook_denies_the_calls_that_it_matches(host: Host) -> None:
    turns = (says(run("touch made")), says(run("mkdir other")), says(write()))
    async with host.model(*turns) as environment:
        told = await drive(host, environment, "hooks", prompt="go", more={"permissionMode": "acceptEdits"})
    assert values(told, "hook") == [
        ["PreToolUse", "Bash", {"command": "touch made"}, True],
        ["PreToolUse", "Bash", {"command": "mkdir other"}, True],
    ]
    assert sorted(path.name for path in host.folder.iterdir()) == ["other", "out.txt"]
    assert "No touching." in str(results(told)[0]["content"])


async def test_a_server_in_the_program_of_the_host_is_called(host: Host) -> None:
    call = MakeCall(name="mcp__calc__add", arguments={"a": 2, "b": 3})
    async with host.model(says(call)) as environment:
        told = await drive(host, environment, "server", prompt="go")
    assert end(told)["result"] == "All done."
    assert "sum: 5" in str(results(told)[0]["content"])
    (init,) = [one for one in messages(told, "system") if one["subtype"] == "init"]
    assert [one["name"] for one in init["mcp_servers"]] == ["calc"]


async def test_the_host_fills_the_form_of_a_server(host: Host) -> None:
    server = peer("everything")
    more = {"mcpServers": {"every": {"type": "stdio", "command": server.command, "args": list(server.args)}}}
    call = MakeCall(name="mcp__every__trigger-elicitation-request", arguments={})
    async with host.model(says(call)) as environment:
        told = await drive(host, environment, "form", prompt="go", more=more)
    assert (values(told, "form"), end(told)["result"]) == ([["every", "form", "name"]], "All done.")
    assert "Ada" in str(results(told)[0]["content"])


async def test_an_interrupt_ends_the_turn_and_the_next_message_is_answered(host: Host) -> None:
    turns = (on("first", SayText(text="z"), Wait(seconds=60)), on("second", SayText(text="two")))
    more = {"includePartialMessages": True}
    async with host.model(*turns) as environment:
        told = await drive(host, environment, "interrupt", more=more)
    ends = [(one["subtype"], one["terminal_reason"], one.get("result")) for one in messages(told, "result")]
    assert ends == [
        ("error_during_execution", "aborted_streaming", None),
        ("success", "completed", "two"),
    ]
    assert values(told, "interrupt") == [{"still_queued": []}]


async def test_what_the_host_asks_of_the_program_is_answered(host: Host) -> None:
    async with host.model(says(write())) as environment:
        told = await drive(host, environment, "control", prompt="go")
    assert "compact" in values(told, "commands")[0]
    assert (values(told, "models"), values(told, "servers")) == ([["anthropic-compatible/scripted"]], [[]])
    assert end(told)["result"] == "All done."
    assert (host.folder / "out.txt").read_text() == "hello\n"


@pytest.mark.parametrize("fork", [False, True])
async def test_a_session_is_resumed_or_copied(host: Host, fork: bool) -> None:
    turns = (on("second", SayText(text="two")), on("first", SayText(text="one")))
    async with host.model(*turns) as environment:
        session = end(await drive(host, environment, "query", prompt="first"))["session_id"]
        more = {"resume": session, "forkSession": fork}
        again = end(await drive(host, environment, "query", prompt="second", more=more))
    assert (again["result"], again["session_id"] == session) == ("two", not fork)
    assert "first" in str(host.servers[0].requests[1].body["messages"])


async def test_the_answer_has_the_form_that_the_host_wants(host: Host) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    turns = (says(SayText(text="Four.")), says(MakeCall(name="StructuredOutput", arguments={"sum": 4})))
    more = {"outputFormat": {"type": "json_schema", "schema": schema}}
    async with host.model(*turns) as environment:
        told = await drive(host, environment, "query", prompt="2 + 2", more=more)
    assert end(told)["structured_output"] == {"sum": 4}


async def test_what_keeps_a_session_from_opening_is_an_error_of_the_host(host: Host) -> None:
    async with host.model() as environment:
        told = await drive(host, environment, "query", prompt="go", more={"resume": "20200101-000000-nothere"})
    assert "nothere" in str(messages(told, "result")[0]["errors"])
    assert values(told, "error") != []
