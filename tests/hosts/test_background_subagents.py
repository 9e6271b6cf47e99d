"""A run that goes on by itself: what a subagent brings that nobody waits for is read in each format, by each host."""

import json
from typing import Any

import pytest

from tests.e2e.process import Program
from tests.hosts.driving import ASKS, BOTH, driving
from tests.hosts.place import Host
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Texts, Turn, Wait

OF_CHILD = Texts(contains=("You are a subagent",))
JSON_LINES = ("--output-format", "stream-json", "--verbose")


def begins(task: str) -> MakeCall:
    return MakeCall(name="use_subagents", arguments={"tasks": [{"prompt": f"Look at {task}."}], "wait": False})


def brings(task: str, seconds: float) -> Turn:
    when = Expectation(last_user=Texts(contains=(f"Look at {task}.",)), system=OF_CHILD)
    return Turn(when=when, items=(Wait(seconds=seconds), SayText(text=f"{task} is 1.")))


TURNS = (
    brings("a", 0.8),
    brings("c", 0.4),
    Turn(when=Expectation(last_user=Texts(contains=("c is 1.",))), items=(SayText(text="Noted c."),)),
    Turn(when=Expectation(last_user=Texts(contains=("a is 1.",))), items=(begins("c"),)),
    Turn(when=Expectation(assistant_messages=0), items=(begins("a"),)),
    Turn(when=Expectation(last_result=Texts(contains=("Look at a.",))), items=(SayText(text="Going on."),)),
    Turn(when=Expectation(last_result=Texts(contains=("Look at c.",))), items=(SayText(text="Going on, too."),)),
)
"""The end of each of two subagents wakes the session, which begins the second one then."""


@pytest.mark.parametrize("flags", [(), ("--output-format", "json"), JSON_LINES[:2], JSON_LINES], ids=str)
async def test_a_task_ends_when_its_subagents_have_in_each_format(host: Host, flags: tuple[str, ...]) -> None:
    async with host.model(*TURNS) as environment:
        program = Program(host.home, environment)
        ended = await program.run("-p", "Look.", "--directory", str(host.folder), "--mode", "plan", *flags)
        listed = json.loads((await program.run("sessions", "--json", "-C", str(host.folder))).out)
    assert ended.code == 0, ended.err
    if not flags:
        assert ended.out == "Noted c.\n"
        return
    results = [one for line in ended.out.splitlines() if (one := json.loads(line))["type"] == "result"]
    (result,) = results
    if flags == JSON_LINES:
        said = (result["result"], result["num_turns"], result["total_cost_usd"], len(result["user_message_uuids"]))
        assert said == ("Noted c.", 5, pytest.approx(listed["tree_cost"]), 1)
        assert [one["type"] for one in map(json.loads, ended.out.splitlines())][-1] == "result"
    else:
        assert (result["text"], result["steps"], result["cost"]) == ("Noted c.", 5, pytest.approx(listed["tree_cost"]))


async def test_a_host_that_says_no_more_reads_what_its_subagents_bring(host: Host) -> None:
    async with host.model(*TURNS) as environment, driving(host, environment, *BOTH, *ASKS) as driver:
        driver.ask("Look.", uuid="11111111-1111-4111-8111-111111111111")
        driver.close()
        code, said = await driver.end()
    assert code == 0, said
    results = driver.of("result")
    assert [one["result"] for one in results] == ["Going on.", "Going on, too.", "Noted c."]
    assert [one["user_message_uuids"] for one in results[1:]] == [[], []]
    ends: list[Any] = [one["status"] for one in driver.of("system") if one["subtype"] == "task_notification"]
    assert ends == ["completed", "completed"]


async def test_a_task_that_is_taken_up_waits_for_subagents_that_were_left(host: Host) -> None:
    async with host.model(*TURNS) as environment:
        flags = ("--directory", str(host.folder), "--mode", "plan", *JSON_LINES)
        program = Program(host.home, environment)
        process = await program.start("-p", "Look.", *flags)
        assert process.stdout is not None
        async for line in process.stdout:
            if json.loads(line).get("message", {}).get("content") == [{"type": "text", "text": "Going on."}]:
                break
        process.kill()
        await process.wait()
        ended = await program.run("-p", "", "--continue", *flags)
    assert ended.code == 0, ended.err
    (result,) = [one for line in ended.out.splitlines() if (one := json.loads(line))["type"] == "result"]
    assert result["result"] == "Noted c."
