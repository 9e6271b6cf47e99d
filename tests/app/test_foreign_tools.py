"""Calls as hosts and hooks for Claude Code see them, and what they give back."""

from typing import Any

import pytest

from treadle.app.config.foreign_tools import ClaudeCall, amended_arguments, claude_call, claude_calls, own_tools_of

ROOT = "/work"
DIFF = "------- SEARCH\na = 1\n=======\na = 2\n+++++++ REPLACE\n"
PATCH = """*** Begin Patch
*** Update File: a.py
@@
-one
+two
*** Add File: b.py
+new
*** Delete File: c.py
*** End Patch
"""


def one(name: str, **given: Any) -> ClaudeCall:
    return ClaudeCall(name=name, input=given)


@pytest.mark.parametrize(
    ("own", "arguments", "seen"),
    [
        ("execute_command", {"command": "ls", "timeout": 5}, [one("Bash", command="ls", timeout=5000)]),
        (
            "execute_command",
            {"command": "ls", "background": True},
            [one("Bash", command="ls", run_in_background=True)],
        ),
        (
            "attempt_completion",
            {"result": "Done.", "command": "open x.html"},
            [one("Bash", command="open x.html")],
        ),
        (
            "attempt_completion",
            {"result": "Done."},
            [one("attempt_completion", result="Done.")],
        ),
        (
            "read_file",
            {"path": "a.py", "start_line": 3, "end_line": 7, "other_paths": ["../b.py"]},
            [one("Read", file_path="/work/a.py", offset=3, limit=5), one("Read", file_path="/b.py")],
        ),
        ("write_to_file", {"path": "a.py", "content": "x"}, [one("Write", file_path="/work/a.py", content="x")]),
        (
            "replace_in_file",
            {"path": "a.py", "diff": DIFF},
            [one("Edit", file_path="/work/a.py", old_string="a = 1", new_string="a = 2")],
        ),
        (
            "replace_in_file",
            {"path": "a.py", "diff": DIFF + DIFF.replace("a", "b")},
            [
                one(
                    "MultiEdit",
                    file_path="/work/a.py",
                    edits=[
                        {"old_string": "a = 1", "new_string": "a = 2"},
                        {"old_string": "b = 1", "new_string": "b = 2"},
                    ],
                )
            ],
        ),
        (
            "replace_in_file",
            {"path": "a.py", "diff": "what?"},
            [one("Edit", path="a.py", diff="what?", file_path="/work/a.py")],
        ),
        (
            "apply_patch",
            {"patch": PATCH},
            [
                one("MultiEdit", file_path="/work/a.py", edits=[{"old_string": "one", "new_string": "two"}]),
                one("Write", file_path="/work/b.py", content="new\n"),
                one("Edit", file_path="/work/c.py", delete=True),
            ],
        ),
        ("apply_patch", {"patch": "?"}, [one("Edit", patch="?")]),
        (
            "edit_notebook",
            {"path": "a.ipynb", "action": "insert", "cell": "ab", "content": "x"},
            [one("NotebookEdit", notebook_path="/work/a.ipynb", cell_id="ab", new_source="x", edit_mode="insert")],
        ),
        (
            "search_files",
            {"path": ".", "regex": "x+", "file_pattern": "*.py", "context_lines": 2},
            [one("Grep", pattern="x+", path="/work", glob="*.py", **{"-C": 2})],
        ),
        ("list_files", {"path": "src"}, [one("LS", path="/work/src")]),
        ("web_fetch", {"url": "https://a.example/"}, [one("WebFetch", url="https://a.example/")]),
        (
            "ask_followup_question",
            {"question": "Which?", "options": ["A", "B"]},
            [
                one(
                    "AskUserQuestion",
                    questions=[
                        {
                            "question": "Which?",
                            "header": "",
                            "options": [{"label": "A", "description": ""}, {"label": "B", "description": ""}],
                            "multiSelect": False,
                        }
                    ],
                )
            ],
        ),
        (
            "use_mcp_tool",
            {"server_name": "math", "tool_name": "add", "arguments": '{"a": 1}'},
            [one("mcp__math__add", a=1)],
        ),
        (
            "use_mcp_tool",
            {"server_name": "my math", "tool_name": "mcp__my_math__add", "arguments": "{}"},
            [one("mcp__my_math__add")],
        ),
        ("use_mcp_tool", {"server_name": "my math", "tool_name": "add.all"}, [one("mcp__my_math__add_all")]),
        ("use_mcp_tool", {"server_name": "a", "tool_name": "mcp__b__c"}, [one("mcp__a__mcp__b__c")]),
        ("mcp__math__add", {"a": 1}, [one("mcp__math__add", a=1)]),
        ("execute_command", {"cmd": "ls"}, [one("execute_command", cmd="ls")]),
    ],
)
def test_a_call_is_seen_under_the_names_that_hosts_match(
    own: str, arguments: dict[str, Any], seen: list[ClaudeCall]
) -> None:
    assert list(claude_calls(own, arguments, ROOT)) == seen
    single = seen[0] if len(seen) == 1 else ClaudeCall(name=own, input=arguments)
    assert claude_call(own, arguments, ROOT) == single


@pytest.mark.parametrize(
    ("own", "arguments", "given", "wanted"),
    [
        ("execute_command", {"command": "ls"}, {"command": "ls"}, None),
        (
            "execute_command",
            {"command": "ls"},
            {"command": "ls -l", "timeout": 1500, "description": "Lists"},
            {"command": "ls -l", "timeout": 2},
        ),
        (
            "write_to_file",
            {"path": "a.py", "content": "x"},
            {"file_path": "/work/a.py", "content": "y"},
            {"path": "/work/a.py", "content": "y"},
        ),
        (
            "replace_in_file",
            {"path": "a.py", "diff": DIFF},
            {"file_path": "/work/a.py", "old_string": "a = 1", "new_string": "a = 3"},
            {"path": "/work/a.py", "diff": DIFF.replace("2", "3").rstrip("\n")},
        ),
        (
            "edit_notebook",
            {"path": "a.ipynb", "action": "insert", "cell": "ab", "content": "x"},
            {"notebook_path": "/work/a.ipynb", "cell_id": "ab", "new_source": "y", "edit_mode": "replace"},
            {"path": "/work/a.ipynb", "action": "replace", "cell": "ab", "content": "y"},
        ),
        (
            "read_file",
            {"path": "a.py"},
            {"file_path": "/work/a.py", "offset": 11, "limit": 10},
            {"path": "/work/a.py", "start_line": 11, "end_line": 20},
        ),
        (
            "use_mcp_tool",
            {"server_name": "math", "tool_name": "add", "arguments": '{"a": 1}'},
            {"a": 2},
            {"server_name": "math", "tool_name": "add", "arguments": '{"a": 2}'},
        ),
        ("mcp__math__add", {"a": 1}, {"a": 2}, {"a": 2}),
    ],
)
def test_what_a_host_wants_instead_becomes_our_arguments(
    own: str, arguments: dict[str, Any], given: dict[str, Any], wanted: dict[str, Any] | None
) -> None:
    assert amended_arguments(own, arguments, given, ROOT) == wanted


@pytest.mark.parametrize("given", [{"command": 3}, {}, {"command": "ls", "dangerouslyDisableSandbox": True}])
def test_an_input_that_the_tool_does_not_take_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        amended_arguments("execute_command", {"command": "ls"}, given, ROOT)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("read_file", {"file_path": "a.py", "offset": "x", "limit": 2}),
        ("read_file", {"file_path": ["a.py"]}),
        ("execute_command", {"command": "ls", "timeout": float("inf")}),
        ("replace_in_file", {"file_path": "a.py", "edits": [3]}),
    ],
)
def test_values_of_the_wrong_type_are_refused(name: str, given: dict[str, Any]) -> None:
    arguments = {"path": "a.py", "command": "ls", "diff": DIFF}
    with pytest.raises(ValueError, match=r".+"):
        amended_arguments(name, arguments, given, ROOT)


def test_a_tool_that_is_named_stands_for_all_that_do_the_same() -> None:
    assert own_tools_of("NotebookEdit") == ("edit_notebook",)
    assert own_tools_of("Edit") == ("replace_in_file", "apply_patch")
    assert own_tools_of("mcp__math__add") == ("mcp__math__add",)
