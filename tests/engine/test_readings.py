"""What is read for the model: each reading names itself in the log, and a call that needed none has none."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.context.focus import with_progress
from treadle.context.xml_protocol import render_call
from treadle.engine.replay.recorded_replies import RecordedReply, read_again
from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.parsing.aliases import _PARAMETERS, _TOOLS
from treadle.parsing.readings import SENTENCES, Reading
from treadle.protocol.codec import decode_data, encode
from treadle.protocol.events import CallProposed, OfferChanged, ReplyFinished
from treadle.protocol.messages import Message
from treadle.protocol.models import (
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import Risk, ToolSpec, ToolTraits
from treadle.protocol.usage import Usage
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace

NONE: Mapping[str, str] = MappingProxyType({})
NO_PATCH = {"apply_patch": "this model edits with replace_in_file"}
SERVER_TOOL = ToolSpec(
    name="use_mcp_tool",
    description="",
    parameters={
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("server_name", "tool_name", "arguments")},
        "required": ["server_name", "tool_name"],
        "additionalProperties": False,
    },
    traits=ToolTraits(),
    risk=Risk.READ,
)

OF_SERVERS = [
    msgspec.structs.replace(
        SERVER_TOOL,
        name=name,
        parameters={
            "type": "object",
            "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
        },
    )
    for name in ("mcp__files__look", "mcp__files__count", "mcp__web__count")
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ToolSpec]:
    root = tmp_path_factory.mktemp("root")
    specs = (tool.spec for tool in builtin_tools(open_workspace(root, spool=Path(f"{root}-spool"))))
    return {spec.name: with_progress(spec) for spec in (*specs, SERVER_TOOL)}


def native(
    tools: Mapping[str, ToolSpec], name: str, source: str, refused: Mapping[str, str] = NONE
) -> tuple[CallProposed, Message]:
    reader = ReplyReader(tools, ToolProtocol.NATIVE, step=1, attempt=1, refused=refused)
    found = [*reader.feed(StreamCallStart(index=0, name=name, wire_id="w"))]
    found += reader.feed(StreamCallArguments(index=0, text=source))
    found += [*reader.feed(StreamCallDone(index=0)), *reader.finish()]
    (call,) = (one for one in found if isinstance(one, CallProposed))
    return call, reader.message()


def from_text(tools: Mapping[str, ToolSpec], text: str, protocol: ToolProtocol) -> tuple[CallProposed, Message]:
    reader = ReplyReader(tools, protocol, step=1, attempt=1)
    found = [*reader.feed(StreamText(text=text)), *reader.finish()]
    (call,) = (one for one in found if isinstance(one, CallProposed))
    return call, reader.message()


NATIVE: list[tuple[tuple[Reading, ...], str, str]] = [
    ((Reading.EMPTY_OBJECTS,), "read_file", '{}{"path": "a"}'),
    ((Reading.REPEATED_OBJECT,), "read_file", '{"path": "a"}{"path": "a"}'),
    ((Reading.RAW_CHARACTERS,), "execute_command", '{"command": "a\nb"}'),
    ((Reading.TOOL_SPELLING,), "functions.readFile", '{"path": "a"}'),
    ((Reading.TOOL_NAME,), "Read", '{"path": "a"}'),
    ((Reading.TOOL_COMMAND,), "str_replace_editor", '{"command": "view", "path": "a"}'),
    (
        (Reading.TOOL_COMMAND, Reading.LINE_PAIR),
        "str_replace_editor",
        '{"command":"view","path":"a","view_range":[1,2]}',
    ),
    ((Reading.OTHER_EDIT_TOOL, Reading.PARAMETER_NAME), "apply_patch", '{"path": "a", "patch": "@@\\n-x\\n+y"}'),
    ((Reading.SERVER_TOOL,), "mcp__files__look", "{}"),
    ((Reading.PARAMETER_NAME,), "execute_command", '{"command": "ls", "working_dir": "a"}'),
    ((Reading.PARAMETER_NAME,), "search_files", '{"regex": "x", "cwd": "a"}'),
    ((Reading.EXPLANATION,), "read_file", '{"path": "a", "explanation": "why"}'),
    ((Reading.EDIT_NOTATION,), "replace_in_file", '{"path": "a", "old_string": "x", "new_string": "y"}'),
    ((Reading.EDIT_NOTATION,), "replace_in_file", '{"path": "a", "old_string": "", "new_string": "y"}'),
    (
        (Reading.PARAMETER_NAME, Reading.PATH_OF_PATCH),
        "replace_in_file",
        '{"patch": "--- a/a\\n+++ b/a\\n@@\\n-x\\n+y"}',
    ),
    ((Reading.PATH_LIST,), "read_file", '{"path": ["a", "b"]}'),
    ((Reading.TOOL_NAME, Reading.ROOT_PATH), "ls", "{}"),
    ((Reading.LINE_BOUNDS,), "read_file", '{"path": "a", "end_line": -1}'),
    ((Reading.MILLISECONDS,), "execute_command", '{"command": "ls", "timeout": 120000}'),
    ((Reading.MILLISECONDS,), "execute_command", '{"command": "ls", "timeout_ms": 1500}'),
    ((Reading.TOOL_NAME, Reading.MILLISECONDS), "Bash", '{"command": "ls", "timeout": 5000}'),
    ((Reading.NOT_GIVEN,), "read_file", '{"path": "a", "start_line": null}'),
    ((Reading.TEXT_VALUE,), "read_file", '{"path": "a", "start_line": "3"}'),
    ((Reading.JSON_TEXT,), "read_file", '{"path": "a", "other_paths": "[\\"b\\"]"}'),
    ((Reading.ONE_ITEM,), "read_file", '{"path": "a", "other_paths": "b"}'),
    ((Reading.NUMBER_FOR_TEXT,), "read_file", '{"path": 5}'),
    ((Reading.WHOLE_NUMBER,), "read_file", '{"path": "a", "start_line": 3.0}'),
    ((Reading.WORD_CASE,), "browser_action", '{"action": "Click", "coordinate": "1,2"}'),
    ((Reading.COORDINATE,), "browser_action", '{"action": "click", "coordinate": [1, 2]}'),
    ((Reading.COMMAND_WORDS,), "execute_command", '{"command": ["ls", "-la"]}'),
    (
        (Reading.PARAMETER_NAME, Reading.OBJECT_FOR_TEXT),
        "use_mcp_tool",
        '{"server": "files", "tool": "look", "args": {"n": 1}}',
    ),
]
LOOK = '{"name": "read_file", "arguments": {"path": "a"}}'
TEXTS: list[tuple[tuple[Reading, ...], str]] = [
    ((Reading.JSON_CALL,), f"```json\n{LOOK}\n```"),
    ((Reading.JSON_CALL, Reading.EMPTY_OBJECTS), f"{{}}{LOOK}"),
    ((Reading.MARKED_CALL,), f"So:\n<tool_call>\n{LOOK}\n</tool_call>"),
    ((Reading.MARKED_CALL, Reading.RAW_CHARACTERS), '[TOOL_CALLS]execute_command[ARGS]{"command": "a\nb"}'),
    (
        (Reading.MARKED_CALL, Reading.RAW_CHARACTERS),
        '[TOOL_CALLS][{"name": "execute_command", "arguments": {"command": "a\nb"}}]',
    ),
    (
        (Reading.MARKED_CALL, Reading.TEXT_VALUE),
        LOOK.replace('"a"', '"a", "start_line": "3"').join(("[TOOL_CALLS]", "")),
    ),
    ((Reading.TAGGED_CALL,), "<tool_call><function=read_file><parameter=path>a</parameter></function></tool_call>"),
    ((Reading.TAGGED_CALL, Reading.TOOL_NAME), "<bash>ls</bash>"),
]


def test_each_reading_stands_in_the_tables_and_has_a_sentence() -> None:
    named = {reading for readings, *_ in (*NATIVE, *TEXTS) for reading in readings}
    assert (named, set(SENTENCES)) == (set(Reading), set(Reading))


@pytest.mark.parametrize(("readings", "name", "source"), NATIVE)
def test_a_native_call_names_what_was_read_for_it(
    tools: Mapping[str, ToolSpec], readings: tuple[Reading, ...], name: str, source: str
) -> None:
    proposed, _ = native(tools, name, source, NO_PATCH)
    assert (proposed.readings, proposed.call.problem) == (readings, "")
    assert decode_data(encode(proposed)) == proposed


@pytest.mark.parametrize("protocol", ToolProtocol)
@pytest.mark.parametrize(("readings", "text"), TEXTS)
def test_a_call_in_a_text_names_what_was_read_for_it(
    tools: Mapping[str, ToolSpec], readings: tuple[Reading, ...], text: str, protocol: ToolProtocol
) -> None:
    proposed, _ = from_text(tools, text, protocol)
    assert (proposed.readings, proposed.call.problem) == (readings, "")


ODD: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.sampled_from(
            [
                None,
                "",
                "null",
                "true",
                "3",
                " 5.0",
                "x",
                '["a"]',
                "[]",
                "Click",
                "120000",
                "--- a/a\n+++ b/a\n@@\n-x\n+y",
            ]
        )
        | st.sampled_from(
            [0, 1, -1, 3.0, 2.5, 120000, True, ["a"], ["a", 2], [1, 2], [], {"x": 1, "y": 2}, {"path": "a"}]
        )
    )
)
NAMES = st.sampled_from(
    sorted({"view_range", "timeout_ms", "paths", *(one for own in _PARAMETERS.values() for one in own)})
)
OTHERS = st.sampled_from(
    sorted({"str_replace_editor", "mcp__a__b", "ReadFile", *(n for o in _TOOLS.values() for n in o)})
)


@settings(max_examples=150)
@given(data=st.data())
def test_a_native_call_has_a_reading_exactly_where_it_is_not_what_was_sent(
    tools: Mapping[str, ToolSpec], data: st.DataObject
) -> None:
    own = data.draw(st.sampled_from(sorted(tools)))
    names = st.sampled_from(sorted(tools[own].parameters["properties"]))
    sent = {key: data.draw(ODD) for key in data.draw(st.lists(names | NAMES, max_size=5, unique=True))}
    sent.pop("task_progress", None)
    name = data.draw(st.just(own) | OTHERS)
    proposed, _ = native(tools, name, json.dumps(sent), data.draw(st.sampled_from([NONE, NO_PATCH])))
    is_as_sent = proposed.call.name == name and msgspec.json.encode(proposed.call.arguments) == msgspec.json.encode(
        sent
    )
    assert (proposed.readings == ()) == is_as_sent
    assert set(proposed.readings) <= set(Reading)


@settings(max_examples=50)
@given(data=st.data())
def test_a_call_as_it_should_be_has_no_reading(tools: Mapping[str, ToolSpec], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tools)))
    values: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text("abc <>&\n"),
        "integer": st.integers(1, 10),
        "boolean": st.booleans(),
        "array": st.lists(st.text("abc"), max_size=3),
    }
    about = {key: one for key, one in tools[name].parameters["properties"].items() if key != "task_progress"}
    sent = {
        key: data.draw(st.sampled_from(one["enum"]) if "enum" in one else values[one["type"]])
        for key, one in about.items()
    }
    assert native(tools, name, json.dumps(sent))[0].readings == ()
    written = {key: value.replace("<", "") if isinstance(value, str) else value for key, value in sent.items()}
    assert from_text(tools, render_call(name, written), ToolProtocol.XML)[0].readings == ()


def again(
    tools: Mapping[str, ToolSpec], proposed: CallProposed, message: Message, protocol: ToolProtocol
) -> CallProposed:
    """Read a recorded reply of one call again."""
    finished = ReplyFinished(step=1, attempt=1, message=message, stop=ReplyStop.TOOL_USE, usage=Usage())
    words = "".join(f"<{name}>" for name in tools) if protocol is ToolProtocol.XML else ""
    declared = () if words else tuple(tools.values())
    offer = OfferChanged(step=1, system=(PromptPart(name="tools", text=words),), tools=declared)
    reply = RecordedReply(step=1, attempt=1, calls=(proposed,), finished=finished)
    (found,) = read_again(reply, offer, protocol, tools).calls
    return found


@pytest.mark.parametrize(("readings", "name", "source"), NATIVE)
def test_a_recorded_native_call_keeps_its_readings_and_lacks_those_of_an_older_log(
    tools: Mapping[str, ToolSpec], readings: tuple[Reading, ...], name: str, source: str
) -> None:
    proposed, message = native(tools, name, source, NO_PATCH)
    assert again(tools, proposed, message, ToolProtocol.NATIVE).readings == readings
    older = msgspec.structs.replace(proposed, readings=())
    assert again(tools, older, message, ToolProtocol.NATIVE).readings == ()


def test_a_recorded_call_of_a_server_that_offered_nothing_is_read_again_as_it_was(
    tools: Mapping[str, ToolSpec],
) -> None:
    proposed, message = native(tools, "mcp__files__look", "{}")
    assert (proposed.call.name, proposed.readings) == ("use_mcp_tool", ("server_tool",))
    without = {name: spec for name, spec in tools.items() if name != "use_mcp_tool"}
    assert again(without, proposed, message, ToolProtocol.NATIVE) == proposed
    renamed = msgspec.structs.replace(proposed, call=msgspec.structs.replace(proposed.call, name="read_files"))
    assert again(without, renamed, message, ToolProtocol.NATIVE) != renamed


HANDED_ON: list[tuple[tuple[str, ...], str, str]] = [
    ((), "files look", '{"n": 1}'),
    ((), "files look", ""),
    (("empty_objects",), "files look", '{}{"n": 1}'),
    (("repeated_object", "text_value"), "files look", '{"n": "1"}{"n": "1"}'),
    (("raw_characters",), "files look", '{"tags": ["a\nb"]}'),
    (("text_value", "one_item"), "files mcp__files__look", '{"n": "1", "tags": "a"}'),
    (("text_value",), "Files count", '{"n": "1"}'),
    ((), "nobody count", '{"n": "1"}'),
    ((), "files nothing", '{"n": "1"}'),
    ((), "files look", '{"n": 1}{"n": 2}'),
]
"""What is read, the server and the tool, and the arguments that the call hands on."""


@pytest.mark.parametrize(("readings", "meant", "given"), HANDED_ON)
def test_what_is_read_of_arguments_for_a_server_is_named_and_kept_where_its_tools_are_not_known_again(
    tools: Mapping[str, ToolSpec], readings: tuple[str, ...], meant: str, given: str
) -> None:
    every = {**tools, **{spec.name: spec for spec in OF_SERVERS}}
    server, tool = meant.split()
    call = {"server_name": server, "tool_name": tool, "arguments": given}
    proposed, message = from_text(every, render_call("use_mcp_tool", call), ToolProtocol.XML)
    assert (proposed.readings, proposed.call.arguments, proposed.call.problem) == (readings, call, "")
    assert again(tools, proposed, message, ToolProtocol.XML) == proposed


@pytest.mark.parametrize(("readings", "text"), TEXTS)
def test_a_recorded_call_in_a_text_is_read_anew_with_its_readings(
    tools: Mapping[str, ToolSpec], readings: tuple[Reading, ...], text: str
) -> None:
    proposed, message = from_text(tools, text, ToolProtocol.XML)
    forged = msgspec.structs.replace(proposed, readings=("word_case",))
    assert again(tools, forged, message, ToolProtocol.XML).readings == readings
