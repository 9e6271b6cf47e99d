"""What models that learned other tools send, for each tool of the catalogue and in both notations."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.context.focus import with_progress
from treadle.context.xml_protocol import as_xml_message, render_call
from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.parsing import validate_arguments
from treadle.protocol.events import CallProposed
from treadle.protocol.messages import Message, Text, ToolUse
from treadle.protocol.models import (
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.tools import ToolCall, ToolSpec
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ToolSpec]:
    root = tmp_path_factory.mktemp("root")
    specs = (tool.spec for tool in builtin_tools(open_workspace(root, spool=Path(f"{root}-spool"))))
    return {spec.name: with_progress(spec) for spec in specs}


def native(
    tools: Mapping[str, ToolSpec], name: str, arguments: object, refused: Mapping[str, str] = MappingProxyType({})
) -> tuple[ToolCall, Message]:
    reader = ReplyReader(tools, ToolProtocol.NATIVE, step=1, attempt=1, refused=refused)
    found = [*reader.feed(StreamCallStart(index=0, name=name, wire_id="w"))]
    found += reader.feed(StreamCallArguments(index=0, text=json.dumps(arguments)))
    found += [*reader.feed(StreamCallDone(index=0)), *reader.finish()]
    (call,) = (one.call for one in found if isinstance(one, CallProposed))
    return call, reader.message()


def written(tools: Mapping[str, ToolSpec], text: str, size: int = 10**6) -> tuple[list[ToolCall], Message]:
    reader = ReplyReader(tools, ToolProtocol.XML, step=1, attempt=1)
    found = [one for at in range(0, len(text), size) for one in reader.feed(StreamText(text=text[at : at + size]))]
    found += reader.finish()
    return [one.call for one in found if isinstance(one, CallProposed)], reader.message()


DIFF = "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE"
PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
HUNK = "@@\n-old\n+new"
UNIFIED = f"--- a/a\n+++ b/a\n{HUNK}"
NEW_FILE = "------- SEARCH\n=======\nx\n+++++++ REPLACE"
PATCHED = f"*** Begin Patch\n*** Update File: a\n{DIFF}\n*** End Patch"
ADDED = "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch"
EDITS_BY = {
    "replace_in_file": {"apply_patch": "this model edits with replace_in_file"},
    "apply_patch": {"replace_in_file": "this model edits with apply_patch"},
}
"""What is refused, by the edit tool that a model was given."""
OWN_TOOL = [
    ("read_file", {"file_path": "a.py", "start_line": "3"}, {"path": "a.py", "start_line": 3}),
    (
        "read_file",
        {"filePath": "a.py", "startLine": 3.0, "end_line": "9"},
        {"path": "a.py", "start_line": 3, "end_line": 9},
    ),
    ("read_file", {"path": "a.py", "end_line": None, "other_paths": "b.py"}, {"path": "a.py", "other_paths": ["b.py"]}),
    ("read_file", {"path": "a.py", "other_paths": '["b.py"]'}, {"path": "a.py", "other_paths": ["b.py"]}),
    (
        "search_files",
        {"path": ".", "pattern": "x+", "include": "*.py"},
        {"path": ".", "regex": "x+", "file_pattern": "*.py"},
    ),
    (
        "search_files",
        {"directory": "src", "query": "x", "context_lines": "2"},
        {"path": "src", "regex": "x", "context_lines": 2},
    ),
    ("list_files", {"dir_path": "src", "recursive": "true"}, {"path": "src", "recursive": True}),
    ("list_code_definition_names", {"file": "a.py"}, {"path": "a.py"}),
    ("replace_in_file", {"path": "a", "old_string": "old\n", "new_string": "new\n"}, {"path": "a", "diff": DIFF}),
    (
        "replace_in_file",
        {"path": "a", "oldText": "old", "newText": "new", "replace_all": "false"},
        {"path": "a", "replace_all": False, "diff": DIFF},
    ),
    ("apply_patch", {"input": PATCH}, {"patch": PATCH}),
    ("write_to_file", {"file_path": "a", "file_text": " x\n"}, {"path": "a", "content": " x\n"}),
    ("write_to_file", {"path": "a", "contents": "5"}, {"path": "a", "content": "5"}),
    ("execute_command", {"cmd": "ls", "requires_approval": False}, {"command": "ls"}),
    (
        "execute_command",
        {"command": "ls", "timeout": "30", "run_in_background": "False"},
        {"command": "ls", "timeout": 30, "background": False},
    ),
    ("read_command_output", {"command_number": "2", "wait": ""}, {"command_number": 2}),
    ("web_fetch", {"url": "https://example.org", "start": "0"}, {"url": "https://example.org", "start": 0}),
    (
        "browser_action",
        {"action": "Click", "coordinate": "450,300", "url": None},
        {"action": "click", "coordinate": "450,300"},
    ),
    (
        "ask_followup_question",
        {"question": "Which?", "options": '["a", "b"]'},
        {"question": "Which?", "options": ["a", "b"]},
    ),
    ("read_file", {"path": "a", "start_line": 2, "end_line": -1}, {"path": "a", "start_line": 2}),
    ("read_file", {"path": "a", "start_line": "0", "end_line": "-1"}, {"path": "a"}),
    ("search_files", {"regex": "x", "cwd": "src"}, {"regex": "x", "path": "src"}),
    ("execute_command", {"command": "ls", "timeout": 120000}, {"command": "ls", "timeout": 120}),
    (
        "execute_command",
        {"command": "ls", "timeout": "30000", "workdir": "a"},
        {"command": "ls", "timeout": 30, "cwd": "a"},
    ),
    ("replace_in_file", {"path": "a", "patch": UNIFIED}, {"path": "a", "diff": UNIFIED}),
    ("replace_in_file", {"path": "a", "old_string": "", "new_string": "x\n"}, {"path": "a", "diff": NEW_FILE}),
    ("apply_patch", {"path": "a", "diff": DIFF}, {"patch": PATCHED}),
    ("apply_patch", {"file_path": "a", "old_string": "old", "new_string": "new"}, {"patch": PATCHED}),
    ("apply_patch", {"path": "a", "old_string": "", "new_string": "x\ny"}, {"patch": ADDED}),
    (
        "apply_patch",
        {"path": "a", "patch": HUNK},
        {"patch": f"*** Begin Patch\n*** Update File: a\n{HUNK}\n*** End Patch"},
    ),
    ("apply_patch", {"path": "a", "patch": PATCH}, {"patch": PATCH}),
    ("plan_mode_respond", {"plan": "First."}, {"response": "First."}),
    ("attempt_completion", {"summary": "Done."}, {"result": "Done."}),
]
NATIVE_ONLY = [
    ("read_file", {"target_file": "a", "explanation": "to look"}, {"path": "a"}),
    ("read_file", {"path": "a", "file_path": "a"}, {"path": "a"}),
    ("browser_action", {"action": "click", "coordinate": [450, 300]}, {"action": "click", "coordinate": "450,300"}),
    ("execute_command", {"command": ["bash", "-lc", "ls | head"]}, {"command": "ls | head"}),
    ("ask_followup_question", {"question": "Go?", "options": ["yes", 2]}, {"question": "Go?", "options": ["yes", "2"]}),
    ("read_file", {"path": ["a", "b"]}, {"path": "a", "other_paths": ["b"]}),
    ("read_file", {"file_paths": ["a"]}, {"path": "a"}),
    ("read_file", {"files": [{"path": "a"}, {"path": "b"}]}, {"path": "a", "other_paths": ["b"]}),
    ("write_to_file", {"path": ["a"], "content": "x"}, {"path": "a", "content": "x"}),
    ("execute_command", {"command": "ls", "timeout_ms": 1500}, {"command": "ls", "timeout": 2}),
    ("replace_in_file", {"patch": UNIFIED}, {"path": "a", "diff": UNIFIED}),
    (
        "replace_in_file",
        {"path": "a", "edits": [{"old_string": "old", "new_string": "new"}]},
        {"path": "a", "diff": DIFF},
    ),
]
OTHER_TOOL = [
    ("Read", {"file_path": "a.py"}, "read_file", {"path": "a.py"}),
    ("readFile", {"path": "a.py"}, "read_file", {"path": "a.py"}),
    ("functions.read_file", {"path": "a.py"}, "read_file", {"path": "a.py"}),
    ("functions.read_file:0", {"path": "a.py"}, "read_file", {"path": "a.py"}),
    ("default_api.execute_command", {"command": "ls"}, "execute_command", {"command": "ls"}),
    ("Bash", {"command": "ls", "description": "List files"}, "execute_command", {"command": "ls"}),
    ("shell", {"command": ["bash", "-lc", "make"]}, "execute_command", {"command": "make"}),
    ("shell", {"command": ["apply_patch", PATCH]}, "apply_patch", {"patch": PATCH}),
    ("container.exec", {"cmd": ["ls", "-la"]}, "execute_command", {"command": "ls -la"}),
    ("run_shell_command", {"command": "ls"}, "execute_command", {"command": "ls"}),
    ("Write", {"file_path": "a", "content": "x"}, "write_to_file", {"path": "a", "content": "x"}),
    (
        "Edit",
        {"file_path": "a", "old_string": "old", "new_string": "new"},
        "replace_in_file",
        {"path": "a", "diff": DIFF},
    ),
    (
        "replace",
        {"file_path": "a", "old_string": "old", "new_string": "new"},
        "replace_in_file",
        {"path": "a", "diff": DIFF},
    ),
    (
        "replace",
        {"file_path": "a", "old_string": "old", "new_string": "new", "instruction": "b", "expected_replacements": 1},
        "replace_in_file",
        {"path": "a", "diff": DIFF},
    ),
    (
        "replace",
        {"file_path": "a", "old_string": "old", "new_string": "new", "allow_multiple": True},
        "replace_in_file",
        {"path": "a", "replace_all": True, "diff": DIFF},
    ),
    ("apply_diff", {"path": "a", "diff": DIFF}, "replace_in_file", {"path": "a", "diff": DIFF}),
    (
        "Edit",
        {"file_path": "a", "old_string": "", "new_string": "x"},
        "replace_in_file",
        {"path": "a", "diff": NEW_FILE},
    ),
    ("Bash", {"command": "make", "timeout": 5000}, "execute_command", {"command": "make", "timeout": 5}),
    ("Bash", {"command": "make", "timeout": "120000"}, "execute_command", {"command": "make", "timeout": 120}),
    (
        "shell",
        {"command": ["bash", "-lc", "ls"], "workdir": "src", "timeout_ms": 10000},
        "execute_command",
        {"command": "ls", "cwd": "src", "timeout": 10},
    ),
    ("read_many_files", {"paths": ["a", "b"]}, "read_file", {"path": "a", "other_paths": ["b"]}),
    ("Grep", {"pattern": "x", "glob": "*.py"}, "search_files", {"path": ".", "regex": "x", "file_pattern": "*.py"}),
    ("LS", {"path": "src"}, "list_files", {"path": "src"}),
    ("list_dir", {}, "list_files", {"path": "."}),
    (
        "str_replace_editor",
        {"command": "view", "path": "a", "view_range": [2, -1]},
        "read_file",
        {"path": "a", "start_line": 2},
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "a", "old_str": "old", "new_str": "new"},
        "replace_in_file",
        {"path": "a", "diff": DIFF},
    ),
    (
        "str_replace_editor",
        {"command": "create", "path": "a", "file_text": "x"},
        "write_to_file",
        {"path": "a", "content": "x"},
    ),
    ("finish", {"message": "Done."}, "attempt_completion", {"result": "Done."}),
]


@pytest.mark.parametrize(("name", "given_", "wanted"), [*OWN_TOOL, *NATIVE_ONLY])
def test_a_native_call_is_read_as_it_was_meant(
    tools: Mapping[str, ToolSpec], name: str, given_: dict[str, Any], wanted: dict[str, Any]
) -> None:
    call, message = native(tools, name, given_)
    assert (call.name, call.arguments, call.problem) == (name, wanted, "")
    assert message.content == (ToolUse(id=call.id, name=name, arguments=wanted, wire_id="w"),)


@pytest.mark.parametrize("size", [10**6, 3])
@pytest.mark.parametrize(("name", "given_", "wanted"), OWN_TOOL)
def test_a_written_call_is_read_as_it_was_meant_and_stays_as_it_was_written(
    tools: Mapping[str, ToolSpec], name: str, given_: dict[str, Any], wanted: dict[str, Any], size: int
) -> None:
    text = render_call(name, {key: value for key, value in given_.items() if value is not None})
    (call,), message = written(tools, f"I go on.\n\n{text}", size)
    assert (call.name, call.arguments, call.problem) == (name, wanted, "")
    assert as_xml_message(message).content == (Text(text=f"I go on.\n\n{text}"),)


@pytest.mark.parametrize(("name", "given_", "tool", "wanted"), OTHER_TOOL)
def test_a_call_of_a_tool_of_others_is_the_call_of_ours_that_does_the_same(
    tools: Mapping[str, ToolSpec], name: str, given_: dict[str, Any], tool: str, wanted: dict[str, Any]
) -> None:
    call, message = native(tools, name, given_)
    assert (call.name, call.arguments, call.problem) == (tool, wanted, "")
    assert message.content == (ToolUse(id=call.id, name=tool, arguments=wanted, wire_id="w"),)


@pytest.mark.parametrize(
    ("name", "given_", "problem"),
    [
        (
            "Glob",
            {"pattern": "**/*.py"},
            "There is no tool named 'Glob'. Use list_files, whose parameters are: \"path\", ",
        ),
        ("Bash", {"command": "sleep 9", "timeout": 30}, "There is no tool named 'Bash'. Use execute_command, "),
        (
            "run_command",
            {"command": "ls", "timeout": 5000},
            "There is no tool named 'run_command'. Use execute_command",
        ),
        ("Read", {"file_path": "a", "offset": 10, "limit": 5}, "There is no tool named 'Read'. Use read_file, whose "),
        ("Edit", {"file_path": "a", "old_string": " ", "new_string": "x"}, "There is no tool named 'Edit'. Use rep"),
        ("Edit", {"file_path": "a", "old_string": "", "new_string": ""}, "There is no tool named 'Edit'. Use rep"),
        (
            "replace",
            {"path": "a", "old_string": "a", "new_string": "b", "expected_replacements": 2},
            "There is no tool",
        ),
        ("write_to_file", {"path": ["a", "b"], "content": "x"}, 'Parameter "path" must be string, not ["a","b"].'),
        ("read_file", {"path": "a", "start_line": 0, "end_line": 5}, 'Parameter "start_line" must be at least 1'),
        ("read_file", {"path": "a", "end_line": -2}, 'Parameter "end_line" must be at least 1, not -2.'),
        ("read_file", {"path": ["a", 1]}, 'Parameter "path" must be string'),
        ("read_file", {"paths": ["a"], "path": "b"}, 'Parameter "paths" is not known.'),
        ("execute_command", {"command": "ls", "timeout": 5000}, 'Parameter "timeout" must be at most 600, not 5000.'),
        ("execute_command", {"command": "ls", "timeout": 3600}, 'Parameter "timeout" must be at most 600, not 3600.'),
        ("execute_command", {"command": "ls", "timeout": 18000}, 'Parameter "timeout" must be at most 600, not 18000'),
        ("execute_command", {"command": "ls", "timeout": 900000}, 'Parameter "timeout" must be at most 600, not 9'),
        ("apply_patch", {"path": "b", "patch": PATCH}, 'Parameter "path" is not known.'),
        ("apply_patch", {"path": "a", "diff": DIFF, "replace_all": True}, 'Parameter "patch" is missing.'),
        ("replace_in_file", {"patch": f"{UNIFIED}\n--- a/b\n+++ b/b\n{HUNK}"}, 'Parameter "path" is missing.'),
        ("replace_in_file", {"patch": "--- a/a\n+++ /dev/null\n@@\n-old"}, 'Parameter "path" is missing.'),
        (
            "str_replace_editor",
            {"command": "insert", "path": "a"},
            "There is no tool named 'str_replace_editor'. Use rep",
        ),
        ("serch_files", {"path": "."}, "There is no tool named 'serch_files'. Did you mean search_files"),
        ("TodoWrite", {"todos": []}, "There is no tool named 'TodoWrite'. "),
        ("read_file", {"path": "a", "offset": 3}, 'Parameter "offset" is not known. Use only: "path", "start_line", '),
        ("read_file", {"file": "a", "filename": "b"}, 'Parameter "path" is missing.'),
        ("read_file", {"path": "a", "file_path": "b"}, 'Parameter "file_path" is not known.'),
        ("read_file", {"path": "a", "start_line": 10**30}, 'Parameter "start_line" is too large a number: 1'),
        (
            "write_to_file",
            {"path": "a.json", "content": {"a": 1}},
            'Parameter "content" must be string, not {"a":1}. G',
        ),
        ("write_to_file", {"path": "a", "content": 5}, 'Parameter "content" must be string, not 5.'),
        ("replace_in_file", {"path": "a", "old_string": "a\n", "new_string": "b"}, 'Parameter "diff" is missing.'),
        ("replace_in_file", {"path": "a", "old_string": "=======", "new_string": "b"}, 'Parameter "diff" is missing.'),
        ("browser_action", {"action": "click", "text": "hello", "content": "x"}, 'Parameter "content" is not known.'),
    ],
)
def test_what_is_not_exactly_the_same_is_refused_with_the_way_on(
    tools: Mapping[str, ToolSpec], name: str, given_: dict[str, Any], problem: str
) -> None:
    call, _ = native(tools, name, given_)
    assert call.problem.startswith(problem)


@pytest.mark.parametrize(
    ("own", "name", "given_", "wanted"),
    [
        ("apply_patch", "replace_in_file", {"path": "a", "diff": DIFF}, {"patch": PATCHED}),
        ("apply_patch", "Edit", {"file_path": "a", "old_string": "old", "new_string": "new"}, {"patch": PATCHED}),
        ("apply_patch", "apply_diff", {"path": "a", "diff": DIFF}, {"patch": PATCHED}),
        ("apply_patch", "str_replace", {"path": "a", "old_str": "", "new_str": "x\ny"}, {"patch": ADDED}),
        ("apply_patch", "replace_in_file", {"path": "a", "diff": UNIFIED}, {"patch": UNIFIED}),
        ("replace_in_file", "apply_patch", {"patch": UNIFIED}, {"path": "a", "diff": UNIFIED}),
        ("replace_in_file", "apply_patch", {"input": PATCHED}, {"path": "a", "diff": PATCHED}),
    ],
)
def test_an_edit_for_the_other_edit_tool_is_one_for_the_tool_that_the_model_has(
    tools: Mapping[str, ToolSpec], own: str, name: str, given_: dict[str, Any], wanted: dict[str, Any]
) -> None:
    call, message = native(tools, name, given_, EDITS_BY[own])
    assert (call.name, call.arguments, call.problem) == (own, wanted, "")
    assert message.content == (ToolUse(id=call.id, name=own, arguments=wanted, wire_id="w"),)


@pytest.mark.parametrize(
    ("own", "name", "given_", "problem"),
    [
        (
            "replace_in_file",
            "apply_patch",
            {"patch": f"{UNIFIED}\n--- a/b\n+++ b/b\n{HUNK}"},
            "apply_patch cannot be used",
        ),
        ("apply_patch", "replace_in_file", {"path": "a", "diff": DIFF, "replace_all": True}, "replace_in_file cannot"),
        (
            "apply_patch",
            "Edit",
            {"file_path": "a", "old_string": "a", "new_string": "b", "replace_all": True},
            "There is no tool named 'Edit'. Use apply_patch, ",
        ),
    ],
)
def test_an_edit_that_the_tool_of_the_model_cannot_say_is_refused(
    tools: Mapping[str, ToolSpec], own: str, name: str, given_: dict[str, Any], problem: str
) -> None:
    call, _ = native(tools, name, given_, EDITS_BY[own])
    assert call.problem.startswith(problem)


def test_a_name_that_the_tool_has_itself_is_never_taken_for_another_one(tools: Mapping[str, ToolSpec]) -> None:
    call, _ = native(tools, "browser_action", {"action": "type", "text": "hello"})
    assert (call.arguments, call.problem) == ({"action": "type", "text": "hello"}, "")


def test_a_tool_that_takes_any_parameter_gets_the_names_as_they_are(tools: Mapping[str, ToolSpec]) -> None:
    spec = tools["read_file"]
    free = ToolSpec(
        name="free",
        description="",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}},
        traits=spec.traits,
        risk=spec.risk,
    )
    call, _ = native({"free": free}, "free", {"file_path": "a", "description": "b"})
    assert call.arguments == {"file_path": "a", "description": "b"}


@pytest.mark.parametrize(
    "page", ["<content>a</content>\n<text>b</text>", "<entry><content>a</content>\n<file>b</file></entry>"]
)
def test_tags_in_a_file_are_no_parameters_whatever_others_call_them(tools: Mapping[str, ToolSpec], page: str) -> None:
    (call,), _ = written(tools, f"<write_to_file>\n<path>a.xml</path>\n<content>\n{page}\n</content>\n</write_to_file>")
    assert (call.arguments, call.problem) == ({"path": "a.xml", "content": page}, "")


@settings(max_examples=150)
@given(data=st.data())
def test_a_valid_call_keeps_its_name_and_arguments(tools: Mapping[str, ToolSpec], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(tools)))
    values: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(),
        "integer": st.integers(1, 10),
        "boolean": st.booleans(),
        "array": st.lists(st.text(), max_size=3),
    }
    task = st.fixed_dictionaries({"prompt": st.text()}, optional={"agent": st.text()})
    values_of_tasks = {"tasks": st.lists(task, min_size=1, max_size=5)}
    properties = tools[name].parameters["properties"]
    arguments = {
        key: data.draw(
            st.sampled_from(about["enum"]) if "enum" in about else values_of_tasks.get(key, values[about["type"]])
        )
        for key, about in properties.items()
        if key != "task_progress"
    }
    assert not validate_arguments(tools[name].parameters, arguments)
    call, _ = native(tools, name, arguments)
    assert (call.name, call.arguments, call.problem) == (name, arguments, "")
