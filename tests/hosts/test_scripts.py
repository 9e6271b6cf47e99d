"""One task in a script: what it may use, what the prompt says, and the form of its answer."""

import json
from importlib import import_module

import pytest

from tests.e2e.process import Program
from tests.hosts.place import Host, run, says, write
from tests.needed import require
from treadle.commit import version_words
from treadle.providers.scripted.script import MakeCall, SayText

SCHEMA = json.dumps({"type": "array", "items": {"type": "integer"}, "minItems": 1})


async def test_the_answer_of_a_task_has_the_form_that_is_wanted(host: Host) -> None:
    turns = (
        says(SayText(text="One and two.")),
        says(MakeCall(name="StructuredOutput", arguments={"value": []})),
        says(MakeCall(name="StructuredOutput", arguments={"value": [1, 2]})),
    )
    async with host.model(*turns) as environment:
        flags = ("-p", "count", "--directory", str(host.folder), "--json-schema", SCHEMA)
        ended = await Program(host.home, environment).run(*flags, "--output-format", "json")
    record = json.loads(ended.out)
    assert (ended.code, record["structured_output"], record["text"]) == (0, [1, 2], "[1, 2]")


async def test_a_task_without_such_an_answer_fails(host: Host) -> None:
    async with host.model() as environment:
        flags = ("-p", "count", "--directory", str(host.folder), "--json-schema", SCHEMA)
        ended = await Program(host.home, environment).run(*flags, "--output-format", "json")
    assert (ended.code, json.loads(ended.out)["structured_output"]) == (1, None)


async def test_a_task_uses_what_it_may(host: Host) -> None:
    turns = (says(write()), says(run("mkdir -p made")), says(run("rm -rf out.txt")))
    async with host.model(*turns) as environment:
        flags = ("--allowed-tools", "Write,Bash(mkdir -p made)", "--disallowedTools", "WebFetch Bash(git push:*)")
        prompt = ("--append-system-prompt", "Speak like a pirate.", "--system-prompt", "You are a cook.")
        program = Program(host.home, environment)
        ended = await program.run("-p", "go", "--directory", str(host.folder), *flags, *prompt)
    assert ended.code == 55, ended.err
    assert sorted(path.name for path in host.folder.iterdir()) == ["made", "out.txt"]
    body = host.servers[0].requests[0].body
    assert "web_fetch" not in {tool["name"] for tool in body["tools"]}
    system = str(body["system"])
    assert ("You are a cook." in system, "Speak like a pirate." in system) == (True, True)
    assert "You work on the user's task" not in system


async def test_a_rule_that_denies_is_stronger_than_the_mode(host: Host) -> None:
    async with host.model(says(run("mkdir made")), says(run("mkdir other"))) as environment:
        flags = ("--mode", "full", "--disallowed-tools", "Bash(mkdir made)")
        ended = await Program(host.home, environment).run("-p", "go", "--directory", str(host.folder), *flags)
    assert ended.code == 0
    assert [path.name for path in host.folder.iterdir()] == ["other"]


@pytest.mark.parametrize("flag", ["--allowed-tools", "--json-schema", "--append-system-prompt"])
async def test_a_flag_for_scripts_needs_a_task(host: Host, flag: str) -> None:
    ended = await Program(host.home).run(flag, "x")
    assert (ended.code, "needs -p" in ended.err) == (78, True)


@pytest.mark.parametrize("words", [("--version",), ("-v",), ("-V",), ("--version", "--trust")])
async def test_the_version_begins_with_its_number(host: Host, words: tuple[str, ...]) -> None:
    ended = await Program(host.home).run(*words)
    assert (ended.code, ended.out) == (0, f"{version_words()}\n")


async def test_a_form_that_refers_to_itself_is_whole_for_the_model_too(host: Host) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    schema = json.dumps({"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}], "$defs": {"node": node}})
    turns = (
        says(MakeCall(name="StructuredOutput", arguments={"value": {"next": {"odd": 1}}})),
        says(MakeCall(name="StructuredOutput", arguments={"value": {"next": {"next": {}}}})),
    )
    async with host.model(*turns) as environment:
        flags = ("-p", "nest", "--directory", str(host.folder), "--json-schema", schema)
        ended = await Program(host.home, environment).run(*flags, "--output-format", "json")
    assert json.loads(ended.out)["structured_output"] == {"next": {"next": {}}}
    (sent,) = [one for one in host.servers[0].requests[0].body["tools"] if one["name"] == "StructuredOutput"]
    require("jsonschema")
    validator = import_module("jsonschema").Draft202012Validator(sent["input_schema"])
    assert validator.is_valid({"value": {"next": {"next": {}}}})
    assert not validator.is_valid({"value": {"next": {"odd": 1}}})
