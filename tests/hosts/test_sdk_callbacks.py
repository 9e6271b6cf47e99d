"""What a host has in its own program: hooks, and MCP servers with tools, as the SDK's documents show them."""

import asyncio
import json
import sys
from typing import Any

import pytest

from tests.hosts.place import Host, run, says, write
from tests.needed import require
from treadle.providers.scripted.script import MakeCall, SayText

require("claude_agent_sdk", module=True)
from claude_agent_sdk import (  # noqa: E402
    ClaudeSDKClient,
    HookEventMessage,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    query,
    tool,
)

from tests.hosts.sdk_driving import asked, end, failed, options, results, uses  # noqa: E402

ADD = MakeCall(name="mcp__calc__add", arguments={"a": 2, "b": 3})


def denial(reason: str) -> dict[str, Any]:
    """What a hook says that denies a call."""
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


async def test_a_hook_denies_the_calls_that_it_matches(host: Host) -> None:
    seen: list[Any] = []

    async def check(given: Any, tool_use_id: str | None, context: Any) -> Any:
        seen.append((given["hook_event_name"], given["tool_name"], given["tool_input"]["command"], bool(tool_use_id)))
        return denial("No touching.") if "touch" in given["tool_input"]["command"] else {}

    hooks: Any = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[check])]}
    turns = (says(run("touch made")), says(run("mkdir other")), says(write()))
    async with (
        host.model(*turns) as environment,
        ClaudeSDKClient(options(host, environment, hooks=hooks, permission_mode="acceptEdits")) as client,
    ):
        messages = await asked(client, "go")
    assert seen == [("PreToolUse", "Bash", "touch made", True), ("PreToolUse", "Bash", "mkdir other", True)]
    assert sorted(path.name for path in host.folder.iterdir()) == ["other", "out.txt"]
    assert "No touching." in str(results(messages)[0].content)


async def test_a_hook_amends_a_call_and_sees_what_came_of_it(host: Host) -> None:
    seen: list[str] = []

    async def amend(given: Any, tool_use_id: str | None, context: Any) -> Any:
        said = {"hookEventName": "PreToolUse", "updatedInput": {**given["tool_input"], "content": "by the hook"}}
        return {"hookSpecificOutput": said}

    async def after(given: Any, tool_use_id: str | None, context: Any) -> Any:
        seen.append(given["tool_name"])
        return {}

    hooks: Any = {
        "PreToolUse": [HookMatcher(matcher="Write|Edit", hooks=[amend])],
        "PostToolUse": [HookMatcher(hooks=[after])],
    }
    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, hooks=hooks, permission_mode="acceptEdits")) as client,
    ):
        await asked(client, "go")
    assert (host.folder / "out.txt").read_text() == "by the hook\n"
    assert "Write" in seen


async def test_a_hook_that_fails_blocks_what_it_would_judge(host: Host) -> None:
    async def broken(given: Any, tool_use_id: str | None, context: Any) -> Any:
        raise ValueError("broken hook")

    hooks: Any = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[broken], on_failure="block")]}
    async with (
        host.model(says(write())) as environment,
        ClaudeSDKClient(options(host, environment, hooks=hooks, permission_mode="acceptEdits")) as client,
    ):
        messages = await asked(client, "go")
    assert not (host.folder / "out.txt").exists()
    assert "broken hook" in str(results(messages)[0].content)


async def test_a_message_that_a_hook_keeps_back_reaches_no_model(host: Host) -> None:
    async def keep(given: Any, tool_use_id: str | None, context: Any) -> Any:
        return {"decision": "block", "reason": "Not today."} if "secret" in given["prompt"] else {}

    hooks: Any = {"UserPromptSubmit": [HookMatcher(hooks=[keep])]}
    async with (
        host.model() as environment,
        ClaudeSDKClient(options(host, environment, hooks=hooks, include_hook_events=True)) as client,
    ):
        kept = await asked(client, "a secret")
        sent = await asked(client, "hello")
    assert (end(kept).num_turns, end(kept).is_error) == (0, False)
    assert "Not today" in str(end(kept).result)
    assert end(sent).result == "All done."
    assert len(host.servers[0].requests) == 1
    events = [one.hook_event_name for one in (*kept, *sent) if isinstance(one, HookEventMessage)]
    assert events == ["UserPromptSubmit"] * 4


def calculator() -> Any:
    @tool("add", "Add two numbers", {"a": float, "b": float})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"sum: {arguments['a'] + arguments['b']:g}"}]}

    @tool("fail", "Always fails", {})
    async def fail(arguments: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("broken tool")

    return create_sdk_mcp_server(name="calc", version="1.0.0", tools=[add, fail])


async def test_a_tool_in_the_hosts_own_program_runs(host: Host) -> None:
    async with host.model(says(ADD), says(MakeCall(name="mcp__calc__fail"))) as environment:
        said = options(host, environment, mcp_servers={"calc": calculator()}, allowed_tools=["mcp__calc"])
        async with ClaudeSDKClient(said) as client:
            messages = await asked(client, "go")
            status = await client.get_mcp_status()
    assert uses(messages)[0] == ("mcp__calc__add", {"a": 2, "b": 3})
    first, second = results(messages)
    assert "sum: 5" in str(first.content)
    assert (second.is_error, "broken tool" in str(second.content)) == (True, True)
    (server,) = status["mcpServers"]
    assert (server["name"], server["status"]) == ("calc", "connected")
    assert sorted(one["name"] for one in server["tools"]) == ["add", "fail"]


async def test_a_tool_of_a_server_needs_approval_unless_it_is_named(host: Host) -> None:
    seen: list[str] = []

    async def permission(name: str, given: dict[str, Any], context: Any) -> Any:
        seen.append(name)
        return PermissionResultAllow() if len(seen) == 1 else PermissionResultDeny(message="once only")

    async with host.model(says(ADD), says(MakeCall(name="mcp__calc__fail"))) as environment:
        said = options(host, environment, mcp_servers={"calc": calculator()}, can_use_tool=permission)
        async with ClaudeSDKClient(said) as client:
            messages = await asked(client, "go")
    assert seen == ["mcp__calc__add", "mcp__calc__fail"]
    assert [block.is_error for block in results(messages)] == [False, True]


async def test_a_disallowed_tool_of_a_server_is_not_offered_and_does_not_run(host: Host) -> None:
    async with host.model(says(ADD)) as environment:
        said = options(host, environment, mcp_servers={"calc": calculator()}, disallowed_tools=["mcp__calc__add"])
        messages = [one async for one in query(prompt="go", options=said)]
    assert "mcp__calc__add" not in str(host.servers[0].requests[0].body["tools"])
    assert "sum: 5" not in str(messages)


async def test_a_server_that_is_a_program_runs_for_the_host(host: Host) -> None:
    program = host.cli.parent / "server.py"
    program.write_text(
        "from mcp.server.mcpserver import MCPServer\nm = MCPServer('echo')\n"
        "@m.tool()\ndef say(text: str) -> str:\n    return text.upper()\nm.run(transport='stdio')\n"
    )
    call = MakeCall(name="mcp__echo__say", arguments={"text": "hi"})
    async with host.model(says(call)) as environment:
        servers: Any = {"echo": {"type": "stdio", "command": sys.executable, "args": [str(program)]}}
        said = options(host, environment, mcp_servers=servers, allowed_tools=["mcp__echo__say"])
        messages = [one async for one in query(prompt="go", options=said)]
    assert "HI" in str(results(messages)[0].content)


async def test_a_server_that_the_host_does_not_answer_for_fails_alone(host: Host) -> None:
    @tool("slow", "Takes its time", {})
    async def slow(arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"content": []}

    server = create_sdk_mcp_server(name="calc", tools=[slow])
    async with host.model(says(MakeCall(name="mcp__calc__slow"))) as environment:
        said = options(host, environment, mcp_servers={"calc": server}, allowed_tools=["mcp__calc__slow"])
        async with ClaudeSDKClient(said) as client:
            await client.query("go")
            async for message in client.receive_messages():
                if uses([message]):
                    break
            await asyncio.sleep(0.3)
            await client.interrupt()
            messages = [message async for message in client.receive_response()]
    assert end(messages).subtype == "error_during_execution"


async def test_a_file_of_servers_that_cannot_be_read_is_an_error(host: Host) -> None:
    async with host.model() as environment:
        _, error = await failed(options(host, environment, mcp_servers=str(host.home / "none.json")))
    assert "--mcp-config" in str(error)


async def test_a_server_is_turned_off_and_on_again(host: Host) -> None:
    turns = (says(ADD), says(SayText(text="off")), says(ADD), says(SayText(text="on")))
    async with host.model(*turns) as environment:
        said = options(host, environment, mcp_servers={"calc": calculator()}, allowed_tools=["mcp__calc"])
        async with ClaudeSDKClient(said) as client:
            await client.get_mcp_status()
            await client.toggle_mcp_server("calc", enabled=False)
            off = await client.get_mcp_status()
            without = await asked(client, "go")
            await client.toggle_mcp_server("calc", enabled=True)
            on = await client.get_mcp_status()
            messages = await asked(client, "go")
            await client.reconnect_mcp_server("calc")
            with pytest.raises(Exception, match="no MCP server 'none'"):
                await client.toggle_mcp_server("none", enabled=True)
    assert [[one["status"] for one in status["mcpServers"]] for status in (off, on)] == [["disabled"], ["connected"]]
    assert off["mcpServers"][0]["tools"] == []
    assert [block.is_error for block in (*results(without), *results(messages))] == [True, False]
    offered = ["mcp__calc__add" in str(request.body["tools"]) for request in host.servers[0].requests]
    assert offered == [False, False, True, True]


async def test_only_the_servers_of_the_host_are_used_where_it_says_so(host: Host) -> None:
    others = {"mcpServers": {"other": {"command": "does-not-exist"}}}
    (host.home / "mcp.json").write_text(json.dumps(others))
    (host.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"folder": {"command": "does-not-exist"}}}))
    names: list[list[str]] = []
    for strict in (False, True):
        async with host.model() as environment:
            environment["TREADLE_TRUST"] = "1"
            said = options(host, environment, mcp_servers={"calc": calculator()}, strict_mcp_config=strict)
            async with ClaudeSDKClient(said) as client:
                status = await client.get_mcp_status()
                names.append(sorted(one["name"] for one in status["mcpServers"]))
    assert names == [["calc", "folder", "other"], ["calc"]]


async def test_hooks_of_the_settings_that_the_host_gives_run_in_an_untrusted_folder(host: Host) -> None:
    (host.folder / "AGENTS.md").write_text("Always say ahoy.")
    line = "grep -q forbidden && { echo 'Not this one.' >&2; exit 2; }; exit 0"
    hooks = {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": line}]}], "Odd": []}
    turns = (says(write("no.txt", "forbidden")), says(write("yes.txt")))
    async with host.model(*turns) as environment:
        said = options(host, environment, settings=json.dumps({"hooks": hooks}), permission_mode="acceptEdits")
        async with ClaudeSDKClient(said) as client:
            messages = await asked(client, "go")
    assert [block.is_error for block in results(messages)] == [True, False]
    assert "Not this one." in str(results(messages)[0].content)
    assert not (host.folder / "no.txt").exists()
    assert (host.folder / "yes.txt").exists()
    assert "Always say ahoy." not in str(host.servers[0].requests[0].body)


async def test_hooks_that_are_no_table_keep_the_session_from_opening(host: Host) -> None:
    async with host.model() as environment:
        _, error = await failed(options(host, environment, settings=json.dumps({"hooks": 3})))
    assert "hooks in --settings cannot be used" in str(error)


@pytest.mark.parametrize("hooks", [{"PreToolUse": 3}, {"PreToolUse": [{"hooks": [{"type": "command"}]}]}])
async def test_a_wrong_hook_of_the_settings_blocks_what_it_would_judge(host: Host, hooks: Any) -> None:
    async with host.model(says(write()), says(SayText(text="Done."))) as environment:
        said = options(host, environment, settings=json.dumps({"hooks": hooks}), permission_mode="acceptEdits")
        messages = [message async for message in query(prompt="go", options=said)]
    assert "The PreToolUse hook" in str(results(messages)[0].content)
    assert not (host.folder / "out.txt").exists()
