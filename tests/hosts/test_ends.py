"""However the program ends, its host reads a result and an exit code."""

import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hosts import broken_program
from tests.hosts.driving import BOTH, driving
from tests.hosts.place import Host, on, run, says
from treadle.providers.scripted.script import SayText, Wait

ONE_TASK = ("-p", "-", "--output-format=stream-json", "--verbose")


def broken(host: Host, defect: str) -> Host:
    """The program with a defect."""
    cli = host.home / "broken"
    cli.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(broken_program.__file__)} "{defect}" "$@"\n')
    cli.chmod(cli.stat().st_mode | stat.S_IXUSR)
    return replace(host, cli=cli)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("defect", "flags"),
    [
        ("command line", ONE_TASK),
        ("trust", BOTH),
        ("opening", BOTH),
        ("frames", BOTH),
        ("frames", ONE_TASK),
        ("message", BOTH),
        ("control", BOTH),
    ],
)
async def test_a_defect_is_a_result_an_exit_code_and_a_line_in_the_log(
    host: Host, defect: str, flags: tuple[str, ...]
) -> None:
    async with (
        host.model(says(SayText(text="one"))) as environment,
        driving(broken(host, defect), environment, *flags) as driver,
    ):
        if flags is BOTH:
            driver.control("mcp_status")
            driver.ask("go")
        else:
            assert driver.process.stdin is not None
            driver.process.stdin.write(b"go")
        driver.close()
        code, said = await driver.end()
    result = driver.of("result")[-1]
    assert (code, result["subtype"], result["is_error"]) == (1, "error_during_execution", True)
    assert result["errors"] == ["Something went wrong inside Treadle. ValueError: the disk is upside down"]
    assert {"duration_ms", "duration_api_ms", "num_turns", "session_id", "uuid"} <= set(result)
    assert "ValueError: the disk is upside down" in said
    assert "upside down" in (host.home / "treadle.log").read_text()


async def test_a_program_that_is_ended_says_so_to_a_host_that_waits_for_a_result(host: Host) -> None:
    turn = on("sleep", SayText(text="z"), Wait(seconds=30))
    flags = (*BOTH, "--include-partial-messages")
    async with host.model(turn) as environment, driving(host, environment, *flags) as driver:
        driver.ask("sleep")
        await driver.until("stream_event")
        driver.process.send_signal(signal.SIGTERM)
        code, _ = await driver.end()
    (result,) = driver.of("result")
    assert (code, result["errors"]) == (143, ["The program was ended before the task was done."])


async def test_a_turn_that_the_program_leaves_has_its_figures_and_messages(host: Host) -> None:
    turns = (on("look", SayText(text="Seen.")), on("sleep", run("echo begun; sleep 30")))
    async with host.model(*turns) as environment, driving(host, environment, *BOTH, "--permission-mode=auto") as driver:
        driver.ask("look", uuid="m1")
        await driver.until("result")
        driver.ask("sleep", uuid="m2")
        await driver.until("assistant")
        driver.process.send_signal(signal.SIGTERM)
        await driver.end()
    seen, left = driver.of("result")
    assert (left["num_turns"], left["user_message_uuids"]) == (1, ["m2"])
    assert left["total_cost_usd"] > seen["total_cost_usd"] > 0
    assert left["usage"]["output_tokens"] > 0


async def test_a_message_that_no_model_has_read_has_no_figures_of_the_turn_before(host: Host) -> None:
    async with (
        host.model(says(SayText(text="one"))) as environment,
        driving(host, environment, *BOTH) as driver,
    ):
        driver.control("initialize", hooks={"UserPromptSubmit": [{"hookCallbackIds": ["held"]}]})
        for _ in range(2):
            driver.ask("go")
            held = await driver.until("control_request")
            if not driver.of("result"):
                said = {"subtype": "success", "request_id": held["request_id"], "response": {}}
                driver.say({"type": "control_response", "response": said})
                await driver.until("result")
        driver.process.send_signal(signal.SIGTERM)
        await driver.end()
    seen, left = driver.of("result")
    assert (seen["num_turns"], left["num_turns"], left["user_message_uuids"]) == (1, 0, [])
    assert left["total_cost_usd"] == seen["total_cost_usd"]


async def test_a_program_that_is_ended_between_two_messages_owes_no_result(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *BOTH) as driver:
        driver.ask("go")
        await driver.until("result")
        driver.process.send_signal(signal.SIGTERM)
        code, _ = await driver.end()
    assert (code, len(driver.of("result"))) == (143, 1)


async def test_a_task_that_is_no_text_is_read_all_the_same(host: Host) -> None:
    async with host.model(says(SayText(text="one"))) as environment, driving(host, environment, *ONE_TASK) as driver:
        assert driver.process.stdin is not None
        driver.process.stdin.write(b"Say \xff.")
        driver.close()
        code, _ = await driver.end()
    assert (code, driver.of("result")[0]["result"]) == (0, "one")
    assert "Say \\\\xff." in str(host.servers[0].requests[0].body["messages"])
