"""The lines themselves: hosts that break off, say nonsense, never answer, or only want to read."""

import asyncio
import fcntl
import json
import os
import signal
import sys
import termios
from typing import Any

import pytest

from tests.hosts.driving import ASKS, BOTH, PATIENCE, driving
from tests.hosts.place import DONE, Host, on, says, write
from treadle.cli import host_flags
from treadle.cli.host import serve_host
from treadle.cli.host_flags import HostFlags
from treadle.cli.plain import flag_names
from treadle.cli.work import configure
from treadle.headless.channel import LONGEST_FRAME, frame_line
from treadle.protocol.errors import ConfigError
from treadle.providers.scripted.script import Expectation, MakeCall, Refuse, SayText, Texts, Turn, Wait

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_a_host_that_closes_at_once_gets_the_whole_turn(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("go")
        driver.close()
        code, _ = await driver.end()
    assert code == 0
    (result,) = driver.of("result")
    assert (result["result"], result["subtype"]) == ("one", "success")
    assert all("uuid" in frame and "session_id" in frame for frame in driver.frames)


async def test_a_host_that_leaves_an_open_question_denies_it(host: Host) -> None:
    async with host.model(says(write())) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("go")
        asked = await driver.until("control_request")
        assert asked["request"]["subtype"] == "can_use_tool"
        driver.close()
        code, _ = await driver.end()
    assert code == 55
    assert not (host.folder / "out.txt").exists()
    (result,) = driver.of("result")
    assert (result["is_error"], len(result["permission_denials"])) == (True, 1)


async def test_a_question_that_is_never_answered_can_be_interrupted(host: Host) -> None:
    async with host.model(says(write())) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.ask("go")
        asked = await driver.until("control_request")
        driver.control("interrupt")
        withdrawn = await driver.until("control_cancel_request")
        assert withdrawn["request_id"] == asked["request_id"]
        await driver.until("result", subtype="error_during_execution")
        driver.close()
        code, _ = await driver.end()
    assert code == 130
    assert driver.of("control_response")[0]["response"]["response"] == {"still_queued": []}


async def test_what_is_no_frame_is_skipped_and_named(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *BOTH) as driver:
        driver.say(b"", b"nonsense", b"[1]", {"type": "odd"}, {"type": "control_response"})
        driver.say({"type": "control_response", "response": {"subtype": "success", "request_id": "unknown"}})
        driver.say({"type": "user", "message": {"content": [{"type": "tool_result"}, 3]}})
        driver.control("list_models")
        driver.say({"type": "control_request", "request_id": "bare"})
        driver.ask("go")
        driver.close()
        code, said = await driver.end()
    assert code == 0
    errors = [frame["response"].get("error", "") for frame in driver.of("control_response")]
    assert errors == ["Treadle has no control request 'list_models'.", "Treadle has no control request None."]
    for part in ("it is not JSON (", "it is not a JSON object", "'odd'", "the type tool_result is left out"):
        assert part in said
    empty, answered = driver.of("result")
    assert (empty["is_error"], empty["errors"]) == (
        True,
        ["There is nothing to do: the message has no text, image or document."],
    )
    assert answered["result"] == "one"


async def test_the_state_goes_from_running_to_idle_and_only_hosts_that_follow_it_see_it(host: Host) -> None:
    async with host.model(says(write())) as environment:
        environment["CLAUDE_CODE_SDK_READS_SESSION_STATE"] = "1"
        async with driving(host, environment, *BOTH, *ASKS) as driver:
            driver.ask("go")
            asked = await driver.until("control_request")
            allowed = {"behavior": "allow", "updatedInput": asked["request"]["input"]}
            response = {"subtype": "success", "request_id": asked["request_id"], "response": allowed}
            driver.say({"type": "control_response", "response": response})
            await driver.until("system", subtype="session_state_changed", state="idle")
            driver.close()
            code, _ = await driver.end()
    assert code == 0
    states = [one["state"] for one in driver.of("system") if one["subtype"] == "session_state_changed"]
    assert states == ["running", "requires_action", "running", "idle"]
    kinds = [frame["type"] for frame in driver.frames]
    assert kinds.index("result") < len(kinds) - 1
    order = [one["type"] for one in driver.frames if one["type"] in ("assistant", "control_request", "user")]
    assert order == ["assistant", "control_request", "user", "assistant"]


async def test_messages_that_come_during_a_turn_are_turns_of_their_own_or_steer_it(host: Host) -> None:
    turns = (on("first", Wait(seconds=0.5), SayText(text="one")), on("second", SayText(text="two")))
    async with host.model(*turns) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("first", uuid="11111111-1111-4111-8111-111111111111")
        driver.ask("second")
        driver.close()
        code, _ = await driver.end()
    assert code == 0
    assert [frame["result"] for frame in driver.of("result")] == ["one", "two"]


async def test_a_command_is_done_with_what_comes_along_or_says_that_it_was_left_out(host: Host) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    async with (
        host.model(says(SayText(text="A plan."))) as environment,
        driving(host, environment, *BOTH, "--permission-mode", "acceptEdits") as driver,
    ):
        said = []
        for text in ("/status", "/status now", "/plan Look at it."):
            driver.say({"type": "user", "message": {"content": [image, {"type": "text", "text": text}]}})
            said.append(str((await driver.until("result"))["result"]))
        driver.close()
        await driver.end()
    (request,) = host.servers[0].requests
    assert said[0].endswith("Nothing that came along with the command was sent.")
    assert said[1] == "/status takes no text behind it. Nothing was done."
    assert said[2] == "A plan."
    assert "/plan" not in str(request.body["messages"])
    assert "Look at it." in str(request.body["messages"])
    assert PIXEL in str(request.body["messages"])
    assert "plan mode" in str(request.body).lower()


async def test_no_line_is_longer_than_hosts_take(host: Host) -> None:
    (host.folder / "long.txt").write_text(f"{'x' * 1_000}\n" * 3_000)
    big = write("big.txt", "y" * 1_500_000)
    read = MakeCall(name="read_file", arguments={"path": "long.txt"})
    async with host.model(says(big), says(read)) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.ask("go")
        await driver.until("result")
        driver.close()
        await driver.end()
    assert all(len(json.dumps(frame, ensure_ascii=False)) <= LONGEST_FRAME for frame in driver.frames)
    assert not (host.folder / "big.txt").exists()
    assert "too large to be shown to whoever decides" in json.dumps(driver.of("user"))
    assert "more characters are left out" in json.dumps(driver.of("assistant"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", ["x" * 1_500_000, "\udc80" * 500_000, "\\" * 700_000, '"' * 700_000])
def test_a_frame_is_cut_until_it_fits(text: str) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}}
    line = frame_line({"type": "user", "message": {"content": [{"type": "text", "text": text}, image]}})
    assert len(line.encode()) <= LONGEST_FRAME
    assert json.loads(line)["type"] == "user"


def test_a_line_is_one_for_hosts_that_end_lines_at_other_signs_too() -> None:
    text = "one\u2028two\u2029three\x85\udc80"
    line = frame_line({"type": "user", "text": text})
    assert (len(line.splitlines()), json.loads(line)["text"]) == (1, text)


def test_a_frame_that_is_nested_too_deep_is_named_as_left_out() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert json.loads(frame_line({"type": "user", "message": deep}))["type"] == "user"


def test_a_frame_of_countless_short_texts_is_named_as_left_out() -> None:
    line = frame_line({"type": "user", "uuid": "1", "session_id": "2", "message": ["x" * 100] * 20_000})
    frame = json.loads(line)
    assert (frame["type"], frame["uuid"], frame["session_id"]) == ("user", "1", "2")
    assert "more characters than a line may have" in frame["left_out"]


async def test_one_task_is_written_as_frames_with_p_and_verbose(host: Host) -> None:
    flags = ("-p", "go", "--output-format", "stream-json", "--verbose")
    async with host.model(says(write())) as environment, driving(host, environment, *flags) as driver:
        code, _ = await driver.end()
    assert code == 55
    assert [frame["type"] for frame in driver.frames] == [
        *("system", "assistant", "system", "user", "assistant", "result"),
    ]
    assert not (host.folder / "out.txt").exists()


async def test_a_failure_of_the_model_is_an_error_with_its_status(host: Host) -> None:
    turn = says(Refuse(status=401, message="bad key"))
    async with host.model(turn) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("go", uuid="11111111-1111-4111-8111-111111111111")
        driver.close()
        code, _ = await driver.end()
    (result,) = driver.of("result")
    assert (code, result["is_error"], result["api_error_status"]) == (78, True, 401)
    assert "bad key" in result["errors"][0]
    assert result["user_message_uuids"] == ["11111111-1111-4111-8111-111111111111"]


async def test_sigterm_ends_the_program_and_keeps_the_session(host: Host) -> None:
    turn = on("sleep", SayText(text="z"), Wait(seconds=30))
    flags = (*BOTH, "--include-partial-messages")
    async with host.model(turn) as environment, driving(host, environment, *flags) as driver:
        driver.ask("sleep")
        await driver.until("stream_event")
        driver.process.send_signal(signal.SIGTERM)
        code, said = await driver.end()
    assert (code, said) == (143, "")


async def test_unknown_flags_are_named_and_nothing_more(host: Host) -> None:
    flags = (*BOTH, "--betas", "x", "--task-budget", "5", "--odd", "--another=1", "--effort", "high")
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *flags) as driver:
        driver.ask("go")
        driver.close()
        code, said = await driver.end()
    assert code == 0
    assert [line for line in said.splitlines() if "not used" in line] == [
        f"treadle: The flag {flag} is not used: hosts have no such flag."
        for flag in ("--betas", "--task-budget", "--odd", "--another")
    ]


def _own_flags() -> list[str]:
    """Every flag of a task that a host does not have."""
    return sorted(name for name in flag_names(configure) if HostFlags([name, "x"]).unknown)


@pytest.mark.parametrize("flag", [*_own_flags(), "-wcopy", "--copy=c"])
def test_a_flag_of_treadle_s_own_that_hosts_do_not_have_is_refused(flag: str) -> None:
    with pytest.raises(ConfigError, match="does not go with --verbose or --input-format"):
        serve_host(["-p", "go", "--output-format", "stream-json", "--verbose", flag])


@pytest.mark.parametrize(
    "flags",
    [
        ("--output-format=stream-json", "--verbose", "--input-format=stream-json"),
        ("--output-format=stream-json", "--input-format=stream-json"),
        ("--output-format", "stream-json", "--input-format=stream-json"),
    ],
)
async def test_a_host_may_write_a_flag_and_its_value_in_one_word(host: Host, flags: tuple[str, ...]) -> None:
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *flags) as driver:
        driver.ask("go")
        driver.close()
        code, _ = await driver.end()
    assert (code, [frame["result"] for frame in driver.of("result")]) == (0, ["one"])


def test_each_flag_of_a_host_is_read_with_its_value_behind_it_or_in_the_same_word() -> None:
    for name in sorted(host_flags._VALUES):
        flag = f"--{name.replace('_', '-')}"
        apart, together = HostFlags((flag, "a=b")), HostFlags((f"{flag}=a=b",))
        assert (apart.said, apart.notes) == (together.said, together.notes) == (apart.said, [])
        assert apart.said[name] in ("a=b", ["a=b"])


@pytest.mark.parametrize(
    ("line", "said", "words", "notes"),
    [
        (("-C/tmp",), {"directory": "/tmp"}, [], 0),
        (
            ("--disallowedTools", "Bash", "WebFetch", "-c"),
            {"disallowed_tools": ["Bash", "WebFetch"], "continue": True},
            [],
            0,
        ),
        (("--add-dir=a", "b", "--verbose"), {"add_dir": ["a", "b"], "verbose": True}, [], 0),
        (("--print", "--verbose", "--", "--odd task"), {"print": "", "verbose": True}, ["--odd task"], 0),
        (("-p", "go", "surplus"), {"print": "go"}, ["surplus"], 1),
        (("--trust=false", "--verbose=0"), {}, [], 2),
    ],
)
def test_a_line_of_a_host_means_what_it_means_elsewhere(
    line: tuple[str, ...], said: dict[str, Any], words: list[str], notes: int
) -> None:
    flags = HostFlags(line)
    assert (flags.said, flags.words, len(flags.notes)) == (said, words, notes)


@pytest.mark.parametrize(
    ("flags", "code", "word"),
    [
        (("--input-format", "stream-json", "--output-format", "json"), 2, "do not go together"),
        ((*BOTH, "--max-turns", "x"), 78, "--max-turns"),
        ((*BOTH, "--permission-mode", "odd"), 78, "--permission-mode"),
        ((*BOTH, "--json-schema", "{"), 78, "JSON Schema"),
        ((*BOTH, "--json-schema", '{"type": 3}'), 78, "JSON Schema"),
        ((*BOTH, "--session-id", "x"), 78, "UUID"),
        ((*BOTH, "--settings", "{"), 78, "--settings"),
    ],
)
async def test_a_wrong_flag_is_named(host: Host, flags: tuple[str, ...], code: int, word: str) -> None:
    async with driving(host, host.environment("http://127.0.0.1:1"), *flags) as driver:
        driver.control("initialize")
        driver.close()
        ended, said = await driver.end()
    assert (ended, word in said) == (code, True)
    if code == 78:
        (result,) = driver.of("result")
        assert word in result["errors"][0]


@pytest.mark.usefixtures("started_anew")
async def test_one_task_finishes_what_was_cut_off(host: Host) -> None:
    flags = ("--output-format", "stream-json", "--verbose", "--include-partial-messages")
    turns = (says(SayText(text="zzz"), Wait(seconds=30)), says(SayText(text="unused")))
    first = ("-p", "go", *flags)
    async with host.model(*turns) as environment, driving(host, environment, *first) as driver:
        session = (await driver.until("stream_event"))["session_id"]
        driver.process.kill()
    then = ("-p", "", "--resume", session, *flags[:3])
    async with (
        host.model(says(SayText(text="finished"))) as environment,
        driving(host, environment, *then) as driver,
    ):
        driver.close()
        code, _ = await driver.end()
    assert (code, [frame["result"] for frame in driver.of("result")]) == (0, ["finished"])


async def test_a_host_that_does_not_read_can_still_interrupt(host: Host) -> None:
    text = "much to read " * 200_000
    flags = (*BOTH, "--include-partial-messages")
    turn = says(SayText(text=text), Wait(seconds=30))
    async with host.model(turn) as environment, driving(host, environment, *flags) as driver:
        driver.ask("go")
        await driver.until("stream_event")
        await asyncio.sleep(0.5)  # the pipe is full by now
        driver.control("interrupt")
        result = await driver.until("result")
        driver.close()
        code, _ = await driver.end()
    assert (code, result["subtype"]) == (130, "error_during_execution")


async def test_a_host_that_is_gone_ends_the_program(host: Host) -> None:
    turn = says(SayText(text="zzz"), Wait(seconds=1), SayText(text="y" * 100_000), Wait(seconds=30))
    flags = (*BOTH, "--include-partial-messages")
    async with host.model(turn) as environment, driving(host, environment, *flags) as driver:
        driver.ask("go")
        await driver.until("stream_event")
        driver.process.stdout._transport.close()  # type: ignore[union-attr]
        async with asyncio.timeout(PATIENCE):
            assert await driver.process.wait() == 1


async def test_what_the_host_denies_of_its_own_server_is_not_offered(host: Host) -> None:
    tools = [
        {"name": "add", "permission_policy": "always_allow"},
        {"name": "wipe", "permission_policy": "always_deny"},
        {"name": "send", "org_max_permission": "blocked"},
        {"name": "post", "permission_policy": "always_ask"},
        {"odd": 1},
    ]
    configs = {"calc": {"timeout": 5_000, "tools": tools}, "odd": 3}
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", "wipe", "send", "post")]
    info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}
    answers = {"initialize": info, "tools/list": {"tools": listed}}
    allowed = ("--allowed-tools", "mcp__calc__add,mcp__calc__post,mcp__calc__wipe,mcp__calc__send")
    async with (
        host.model(says(SayText(text="one"))) as environment,
        driving(host, environment, *BOTH, *allowed) as driver,
    ):
        driver.control("initialize", sdkMcpServers=["calc", 7], sdkMcpServerConfigs=configs)
        driver.ask("go")
        while "result" not in {frame["type"] for frame in driver.frames}:
            asked = await driver.until_any("control_request", "result")
            if asked["type"] == "control_request":
                message = asked["request"]["message"]
                known = answers.get(message["method"])
                said = {"result": known} if known else {"error": {"code": -32601, "message": "unknown"}}
                answer = {"jsonrpc": "2.0", "id": message.get("id"), **said}
                driver.say(reply(asked, {"mcp_response": answer}))
        driver.close()
        code, said_aloud = await driver.end()
    offered = {tool["name"] for tool in host.servers[0].requests[0].body["tools"] if tool["name"].startswith("mcp__")}
    assert (code, offered) == (0, {"mcp__calc__add", "mcp__calc__post"})
    assert "mcp__calc__post asks as the mode does" in said_aloud


HOOK = {"UserPromptSubmit": [{"matcher": None, "hookCallbackIds": ["look"]}]}


def reply(frame: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Answer what the program asks."""
    said = {"subtype": "success", "request_id": frame["request_id"], "response": response}
    return {"type": "control_response", "response": said}


async def test_a_message_that_a_hook_keeps_back_leaves_the_turn_that_runs_alone(host: Host) -> None:
    async with host.model(says(write())) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.control("initialize", hooks=HOOK)
        driver.ask("go", uuid="first")
        driver.say(reply(await driver.until("control_request"), {}))
        asked = await driver.until("control_request")
        driver.ask("secret", uuid="second")
        looks = await driver.until("control_request")
        driver.say(reply(looks, {"decision": "block", "reason": "Not today."}))
        driver.say(reply(asked, {"behavior": "allow"}))
        driver.ask("more", uuid="third")
        driver.say(reply(await driver.until("control_request"), {}))
        await driver.until("result", user_message_uuids=["third"])
        driver.close()
        code, _ = await driver.end()
    results = [(one["user_message_uuids"], one["result"]) for one in driver.of("result")]
    assert (code, results[0], results[2]) == (0, (["first"], "All done."), (["third"], "All done."))
    assert results[1][0] == ["second"]
    assert "Not today" in results[1][1]
    assert (host.folder / "out.txt").exists()


async def test_a_message_that_comes_twice_is_worked_on_once(host: Host) -> None:
    turns = (says(SayText(text="one"), Wait(seconds=0.5)), says(SayText(text="two")))
    async with host.model(*turns) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("go", uuid="same")
        driver.ask("go", uuid="same")
        driver.ask("on", uuid="other")
        driver.close()
        code, said = await driver.end()
    results = [(one["user_message_uuids"], one["result"]) for one in driver.of("result")]
    assert (code, results) == (0, [(["same"], "one"), (["other"], "two")])
    assert "one with its uuid, same, is being worked on" in said


async def test_an_interrupt_stops_a_message_that_a_hook_holds_up(host: Host) -> None:
    turns = (on("go", SayText(text="z"), Wait(seconds=60)),)
    async with host.model(*turns) as environment, driving(host, environment, *BOTH) as driver:
        driver.control("initialize", hooks=HOOK)
        driver.ask("go")
        looks = await driver.until("control_request")
        driver.control("interrupt")
        await driver.until("control_response")
        driver.say(reply(looks, {}))
        result = await driver.until("result")
        driver.close()
        code, _ = await driver.end()
    assert (code, result["terminal_reason"]) == (130, "aborted_streaming")


async def test_an_interrupt_is_answered_while_the_folder_is_asked_about(host: Host) -> None:
    (host.folder / "AGENTS.md").write_text("Be brief.")
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.ask("go")
        asked = await driver.until("control_request")
        assert asked["request"]["tool_name"] == "TrustFolder"
        driver.control("interrupt")
        answered = await driver.until("control_response")
        driver.say(reply(asked, {"behavior": "deny"}))
        await driver.until("result", subtype="error_during_execution")
        driver.close()
        await driver.end()
    assert answered["response"]["response"] == {"still_queued": []}


@pytest.mark.usefixtures("started_anew")
async def test_a_message_that_waited_when_the_program_was_killed_is_not_sent_by_the_next_host(host: Host) -> None:
    turns = (on("third", SayText(text="three")), on("first", SayText(text="z"), Wait(seconds=60)))
    async with host.model(*turns) as environment:
        async with driving(host, environment, *BOTH, "--include-partial-messages") as driver:
            driver.ask("first")
            session = (await driver.until("stream_event"))["session_id"]
            driver.ask("second")
            await asyncio.sleep(0.5)  # it is in the log by now
            driver.process.kill()
            await driver.process.wait()
        async with driving(host, environment, *BOTH, "--resume", session) as driver:
            driver.ask("third", uuid="third")
            driver.close()
            code, said = await driver.end()
    results = [(one["user_message_uuids"], one["result"]) for one in driver.of("result")]
    assert (code, results) == (0, [(["third"], "three")])
    assert "A message that was waiting when the session ended is not sent." in said


async def test_a_host_that_reads_nothing_does_not_keep_the_program_from_its_end(host: Host) -> None:
    turn = says(SayText(text="much to read " * 200_000), Wait(seconds=60))
    async with host.model(turn) as environment:
        read, written = os.pipe()
        process = await asyncio.create_subprocess_exec(
            str(host.cli),
            *(*BOTH, "--include-partial-messages"),
            cwd=host.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(host.home), **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=written,
            stderr=asyncio.subprocess.DEVNULL,
        )
        os.close(written)
        assert process.stdin is not None
        process.stdin.write(b'{"type": "user", "message": {"role": "user", "content": "go"}}\n')
        async with asyncio.timeout(PATIENCE):
            while unread(read) < 60_000:
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 143
        os.close(read)


def unread(pipe: int) -> int:
    """Count the bytes that wait in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_a_host_that_denied_everything_can_be_asked_again_later(host: Host) -> None:
    flags = (*BOTH, *ASKS, "--permission-mode", "dontAsk")
    turns = (says(write()), says(SayText(text="no")), says(write()))
    async with host.model(*turns) as environment, driving(host, environment, *flags) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("go")
        denied = await driver.until("result")
        driver.control("set_permission_mode", mode="default")
        driver.ask("go")
        driver.say(reply(await driver.until("control_request"), {"behavior": "allow"}))
        await driver.until("result")
        driver.control("set_permission_mode", mode="dontAsk")
        driver.ask("go")
        await driver.until("result")
        driver.close()
        code, _ = await driver.end()
    assert (code, denied["subtype"], len(denied["permission_denials"])) == (0, "success", 1)
    modes = [one["permissionMode"] for one in driver.of("system") if one["subtype"] == "init"]
    assert modes == ["dontAsk", "default", "dontAsk"]
    assert (host.folder / "out.txt").exists()


async def test_a_script_that_says_nothing_of_permissions_does_not_end_well_after_a_denial(host: Host) -> None:
    async with host.model(says(write())) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("go")
        driver.close()
        code, _ = await driver.end()
    assert (code, driver.of("result")[0]["is_error"]) == (55, True)


LIMITED = says(Refuse(status=429, message="Too many tokens", headers={"Retry-After": "5400"}))


@pytest.mark.parametrize("answer", ["Wait for 1 h 30 min", "End the turn", None])
async def test_a_host_is_asked_whether_to_wait_for_a_limit_to_reset(host: Host, answer: str | None) -> None:
    async with host.model(LIMITED) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("go")
        asked = await driver.until("control_request")
        (question,) = asked["request"]["input"]["questions"]
        assert asked["request"]["tool_name"] == "AskUserQuestion"
        assert [one["label"] for one in question["options"]] == ["Wait for 1 h 30 min", "End the turn"]
        assert question["question"].startswith("The limit of anthropic-compatible resets in 1 h 30 min. Wait for that")
        answered = {**asked["request"]["input"], "answers": {question["question"]: answer}}
        said = {"behavior": "deny", "message": "no"} if answer is None else answered_as(answered)
        done = {"subtype": "success", "request_id": asked["request_id"], "response": said}
        driver.say({"type": "control_response", "response": done})
        if answer == "Wait for 1 h 30 min":
            waits = await driver.until("system", subtype="api_retry")
            assert waits["retry_delay_ms"] > 300_000
            driver.control("interrupt")
        result = await driver.until("result")
        driver.close()
        code, _ = await driver.end()
    if answer == "Wait for 1 h 30 min":
        assert (code, result["terminal_reason"]) == (130, "aborted_streaming")
        return
    assert (code, result["api_error_status"]) == (75, 429)
    assert "the limit was to reset in 1h 30m. Send a message then" in result["errors"][0]


@pytest.mark.parametrize("answer", [["red", "green"], "red\ngreen"])
async def test_a_host_is_told_that_several_may_be_chosen_and_answers_with_them(host: Host, answer: object) -> None:
    several = {"question": "Which?", "options": ["red", "blue", "green"], "multiple": True}
    asks = says(MakeCall(name="ask_followup_question", arguments=several))
    async with host.model(asks, DONE) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("go")
        asked = await driver.until("control_request")
        (question,) = asked["request"]["input"]["questions"]
        assert (question["multiSelect"], len(question["options"])) == (True, 3)
        said = answered_as({**asked["request"]["input"], "answers": {"Which?": answer}})
        done = {"subtype": "success", "request_id": asked["request_id"], "response": said}
        driver.say({"type": "control_response", "response": done})
        results = await driver.until("user")
        assert "red\ngreen" in str(results["message"]["content"][0]["content"])
        await driver.until("result")
        driver.close()
        await driver.end()


def answered_as(given: dict[str, Any]) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": given}


async def test_a_host_that_answers_nothing_reads_when_the_limit_resets(host: Host) -> None:
    async with (
        host.model(LIMITED) as environment,
        driving(host, {**environment, "TREADLE_MAX_RETRIES": "0"}, *BOTH) as driver,
    ):
        driver.ask("go")
        driver.close()
        code, _ = await driver.end()
    (result,) = driver.of("result")
    assert code == 75
    assert "the limit was to reset in 1h 30m. Send a message then" in result["errors"][0]


async def test_a_host_is_asked_what_a_subagent_asks_and_answers_it(host: Host) -> None:
    of_child = Texts(contains=("You are a subagent",))
    turns = (
        Turn(
            when=Expectation(last_result=Texts(contains=("out.txt",)), system=of_child),
            items=(SayText(text="Written."),),
        ),
        Turn(when=Expectation(last_user=Texts(contains=("Write it.",)), system=of_child), items=(write(),)),
        Turn(when=Expectation(last_result=Texts(contains=("<subagent",))), items=(SayText(text="All done."),)),
        on("go", MakeCall(name="use_subagents", arguments={"tasks": [{"prompt": "Write it.", "agent": "worker"}]})),
    )
    async with host.model(*turns) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.control("initialize", hooks=None)
        driver.ask("go")
        inputs, about = [], []
        for tool in ("Write", "use_subagents"):  # the call in the copy, then what the subagent changed
            asked = await driver.until("control_request")
            inputs.append(asked["request"]["input"])
            about.append(asked["request"]["tool_use_id"])
            assert asked["request"]["tool_name"] == tool
            answer = {"behavior": "allow", "updatedInput": asked["request"]["input"]}
            response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
            driver.say({"type": "control_response", "response": response})
        await driver.until("result")
        driver.close()
        code, _ = await driver.end()
    assert code == 0
    assert inputs[0]["file_path"] == str(host.folder / "out.txt")
    assert "+hello" in inputs[1]["apply"]
    assert (host.folder / "out.txt").read_text() == "hello\n"
    by_child = next(one for one in driver.of("assistant") if one["parent_tool_use_id"])
    assert about == [by_child["message"]["content"][0]["id"], by_child["parent_tool_use_id"]]


async def test_messages_and_calls_of_a_subagent_have_ids_of_their_own(host: Host) -> None:
    of_child = Texts(contains=("You are a subagent",))
    turns = (
        Turn(when=Expectation(last_user=Texts(contains=("Write it.",)), system=of_child), items=(write(),)),
        Turn(when=Expectation(system=of_child), items=(SayText(text="Denied."),)),
        Turn(when=Expectation(last_result=Texts(contains=("<subagent",))), items=(SayText(text="All done."),)),
        on("go", MakeCall(name="use_subagents", arguments={"tasks": [{"prompt": "Write it.", "agent": "worker"}]})),
    )
    async with host.model(*turns) as environment:
        async with driving(host, environment, *BOTH) as driver:
            driver.ask("go")
            result = await driver.until("result")
            driver.close()
            await driver.end()
        said = [*driver.of("assistant"), *driver.of("user")]
        uuids = [one["uuid"] for one in said]
        assert len(uuids) == len(set(uuids)) == 6
        blocks = [block for one in said if one["parent_tool_use_id"] for block in one["message"]["content"]]
        (denied,) = [one for one in driver.of("system") if one["subtype"] == "permission_denied"]
        ids = {block.get("id", block.get("tool_use_id")) for block in blocks if block["type"] != "text"}
        assert ids == {denied["tool_use_id"]} != {said[0]["message"]["content"][0]["id"]}
        assert [one["tool_use_id"] for one in result["permission_denials"]] == [denied["tool_use_id"]]
        child = next(one for one in said if one["parent_tool_use_id"])
        flags = (f"--resume={child['session_id']}", f"--resume-session-at={child['uuid']}")
        async with driving(host, environment, *BOTH, *flags) as driver:
            driver.ask("go on")
            result = await driver.until("result")
        assert f"has no message with the uuid {child['uuid']}" in result["errors"][0]


async def test_a_host_says_agents_of_its_own_in_a_file_as_json_or_at_the_beginning(host: Host) -> None:
    of_child = Texts(contains=("You check things.",))
    begins = MakeCall(
        name="use_subagents", arguments={"tasks": [{"prompt": "Check.", "agent": name} for name in ("a", "b", "c")]}
    )
    turns = (
        Turn(when=Expectation(system=of_child), items=(SayText(text="Checked."),)),
        Turn(when=Expectation(last_result=Texts(contains=("<subagent",))), items=(SayText(text="All done."),)),
        on("go", begins),
    )
    said = {"description": "Checks.", "prompt": "You check things.\n", "tools": ["Read"], "maxTurns": 3}
    file = host.folder / "a.md"
    file.write_text("---\nname: a\ndescription: Checks.\ncolor: red\n---\nYou check things.\n")
    flags = (*BOTH, "--agents", str(file), json.dumps({"b": said}))
    async with host.model(*turns) as environment, driving(host, environment, *flags) as driver:
        driver.control("initialize", hooks=None, agents={"c": said})
        told = await driver.until("control_response")
        driver.ask("go")
        begins_with = await driver.until("system", subtype="init")
        ended = [(await driver.until("system", subtype="task_notification"))["status"] for _ in range(3)]
        await driver.until("result")
        driver.close()
        code, errors = await driver.end()
    assert (code, ended) == (0, ["completed"] * 3)
    assert "fields that mean nothing here: color" in errors
    offered = {one["name"]: one["description"] for one in told["response"]["response"]["agents"]}
    assert {name: offered.get(name) for name in "abc"} == dict.fromkeys("abc", "Checks.")
    assert set(begins_with["agents"]) == set(offered) > {"explore"}
