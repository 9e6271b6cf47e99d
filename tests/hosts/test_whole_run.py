"""What a task in a script reports is that of all of its run, for whatever reason its work goes on."""

import json

import pytest

from tests.e2e.process import Program
from tests.hosts.place import Host, says, write
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Texts, Turn, Wait

SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
GIVEN = says(MakeCall(name="StructuredOutput", arguments={"n": 3}))
TEXT = says(SayText(text="It is three."))
CHILD = Turn(
    when=Expectation(last_user=Texts(contains=("SUBTASK",)), system=Texts(contains=("You are a subagent",))),
    items=(Wait(seconds=0.5), SayText(text="Done below.")),
)
BEGUN = says(MakeCall(name="use_subagents", arguments={"tasks": [{"prompt": "SUBTASK"}], "wait": False}))
FURTHER: dict[str, tuple[tuple[str, ...], tuple[Turn, ...]]] = {
    "alone": ((), (TEXT,)),
    "an answer of the form": (("--json-schema", SCHEMA), (GIVEN,)),
    "a reminder": (("--json-schema", SCHEMA), (TEXT, GIVEN)),
    "reminders": (("--json-schema", SCHEMA), (TEXT, TEXT, TEXT, GIVEN)),
    "a subagent": ((), (BEGUN, TEXT, TEXT)),
    "a subagent and a reminder": (("--json-schema", SCHEMA), (BEGUN, TEXT, TEXT, GIVEN)),
    "a goal": (("--goal", "two", "--check", "test -e never"), (TEXT, TEXT, TEXT)),
}


async def ran(
    host: Host, *turns: Turn, flags: tuple[str, ...]
) -> tuple[int, dict[str, object], str, dict[str, object]]:
    """Work a task off; gives the exit code, its record, standard error and the row of the session."""
    async with host.model(CHILD, *turns) as environment:
        program = Program(host.home, environment)
        ended = await program.run("-p", "go", "-C", str(host.folder), "--output-format", "json", *flags)
        rows = await program.run("sessions", "--json", "--all")
    return ended.code, json.loads(ended.out), ended.err, json.loads(rows.out.splitlines()[0])


@pytest.mark.parametrize("further", FURTHER)
@pytest.mark.parametrize("mode", ["ask", "edits"])
async def test_changes_money_steps_and_denials_are_those_of_the_whole_run(host: Host, further: str, mode: str) -> None:
    flags, turns = FURTHER[further]
    code, record, err, row = await ran(host, says(write()), *turns, flags=("--mode", mode, *flags))
    changed, denied = (["out.txt"], 0) if mode == "edits" else ([], 1)
    changes = record["changes"]
    assert isinstance(changes, list)
    assert [one["path"].rpartition("/")[2] for one in changes] == changed
    assert (record["denied"], record["steps"]) == (denied, 1 + len(turns))
    assert (record["cost"], record["steps"]) == (pytest.approx(row["tree_cost"]), row["steps"])
    assert code == record["exit_code"] == (58 if "--goal" in flags else 55 if denied else 0)
    assert ("no file was changed" in err) is (not changes)
    assert ("1 call was denied" in err) is bool(denied)


@pytest.mark.parametrize("further", ["reminders", "a subagent", "a subagent and a reminder", "a goal"])
@pytest.mark.parametrize("most", [1, 3, 5])
async def test_the_limit_of_steps_bounds_the_whole_run(host: Host, further: str, most: int) -> None:
    flags, turns = FURTHER[further]
    code, record, _, row = await ran(host, *turns, flags=("--max-turns", str(most), *flags))
    assert record["steps"] == row["steps"] == min(most, len(turns))
    assert code == (58 if "--goal" in flags else 0 if most >= len(turns) else 53)


@pytest.mark.parametrize("agent", ["worker", "fork"])
async def test_a_subagent_does_not_give_the_answer_of_the_task(host: Host, agent: str) -> None:
    gives = Turn(
        when=Expectation(last_user=Texts(contains=("SUBTASK",)), conversation=Texts(not_contains=("is over",))),
        items=(MakeCall(name="StructuredOutput", arguments={"n": 99}),),
    )
    begun = says(MakeCall(name="use_subagents", arguments={"tasks": [{"prompt": "SUBTASK", "agent": agent}]}))
    async with host.model(gives, begun, says(SayText(text="It is over.")), GIVEN) as environment:
        flags = ("--json-schema", SCHEMA, "--output-format", "json")
        ended = await Program(host.home, environment).run("-p", "go", "-C", str(host.folder), *flags)
    assert (ended.code, json.loads(ended.out)["structured_output"]) == (0, {"n": 3}), ended.err


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_why_a_task_has_no_answer_of_its_form_is_said(host: Host, output: str) -> None:
    async with host.model(*[TEXT] * 9) as environment:
        program = Program(host.home, environment)
        flags = ("--json-schema", SCHEMA, "--output-format", output)
        ended = await program.run("-p", "go", "-C", str(host.folder), *flags)
    assert (ended.code, "answer that fits the JSON Schema" in ended.err) == (1, True)
    if output != "text":
        record = json.loads(ended.out.splitlines()[-1])
        assert (record["why"], record["steps"]) == ("The model did not give an answer that fits the JSON Schema.", 6)
