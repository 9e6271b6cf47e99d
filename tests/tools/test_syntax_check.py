"""What is said of a file that no longer parses after an edit."""

from pathlib import Path

import pytest
from tests.tools.calls import call, text
from tests.tools.test_diagnosed import FakeChecker

from treadle.protocol.messages import Text
from treadle.tools.diagnosed import with_diagnostics
from treadle.tools.replace_in_file import ReplaceInFile
from treadle.tools.syntax_check import broken_syntax
from treadle.workspace.diagnostics.checks import Findings
from treadle.workspace.diagnostics.problems import Diagnostic, Severity
from treadle.workspace.workspace import Workspace

FIX = "Fix it now, unless a later step will"
UNSURE = " or the grammar does not know what is written there"
ROWS = [
    ("a.py", "x = 1\n", "x = 1\ny = (\n", "2: no longer parses as Python 3.", "'(' was never closed"),
    ("a.pyi", "x: int\n", "x: int\n  y: int\n", "2: no longer parses as Python 3.", "unexpected indent"),
    ("a.json", '{"a": 1}\n', '{"a": 1,\n}\n', "2: no longer parses as JSON: ", "Expecting property name"),
    ("a.toml", "a = 1\n", "a = 1\nb = \n", "2: no longer parses as TOML: ", "Invalid value"),
    ("a.ts", "f(() => {\n});\ng();\n", "f(() => {\n\ng();\n", "2: no longer parses as TypeScript: ", ""),
    ("a.js", "f();\n", "f();\n}\n", "2: no longer parses as JavaScript: ", "unexpected `}`"),
    ("a.rb", "a = 1\ndef f\nend\n", "a = 1\ndef f\n1\n", "3: no longer parses as Ruby: ", "not closed or not complete"),
    (
        "a.c",
        "int f(void) { return 1; }\n",
        "int f(void) { return 1 }\n",
        "1: no longer parses as C: ",
        "`;` is missing",
    ),
]


@pytest.mark.parametrize(("name", "before", "after", "place", "why"), ROWS)
def test_a_file_that_no_longer_parses_is_told_with_its_line(
    name: str, before: str, after: str, place: str, why: str
) -> None:
    said = broken_syntax(name, before, after)
    assert said.startswith(f"\n\n[{name}:{place}")
    assert why in said
    assert said.endswith((f"{FIX}.]", f"{FIX}{UNSURE}.]"))
    assert "\n" not in said.strip()
    assert broken_syntax(name, after, after + " ") == "", "it did not parse before"
    assert broken_syntax(name, before, before + "\n") == ""
    assert broken_syntax(name, "", after) == "", "a new file has no before"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.txt", "x", "("),
        ("a.html", "{% if x %}", "{% if"),
        ("a.json", '{"a": {{ x }} }', '{"a": '),
        ("a.py", "x = 1\n", "x = " + "-" * 100_000 + "1\n"),
        ("a.py", "x = 1\n" + "#" * 300_000, "x = (\n"),
        ("a.c", "int f(void) { return 1; }\n", "MACRO(x)\nint f(void) BEGIN return 1; }\n"),
        ("a.go", "package a\n", "package a\n" + "[{" * 100_000),
    ],
)
def test_nothing_is_said_where_nothing_is_known(name: str, before: str, after: str) -> None:
    assert broken_syntax(name, before, after) == ""


def diff(old: str, new: str) -> str:
    return f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE"


async def test_every_edit_tool_tells_it(workspace: Workspace) -> None:
    for name in ("a.py", "b.py"):
        Path(workspace.root, name).write_text("x = 1\n")
    told = await text(workspace, "replace_in_file", path="a.py", diff=diff("x = 1", "x = (1"))
    assert told.count("[a.py:1: no longer parses as Python") == 1
    again = await text(workspace, "replace_in_file", path="a.py", diff=diff("x = (1", "x = ((1"))
    assert "no longer parses" not in again
    await call(workspace, "replace_in_file", path="a.py", diff=diff("x = ((1", "x = 1"))
    patch = "*** Begin Patch\n" + "".join(
        f"*** Update File: {name}\n@@\n-x = 1\n+x = 1)\n" for name in ("a.py", "b.py")
    )
    told = await text(workspace, "apply_patch", patch=f"{patch}*** End Patch")
    assert [f"[{name}:1: no longer parses" in told for name in ("a.py", "b.py")] == [True, True]
    await call(workspace, "write_to_file", path="b.py", content="x = 1\n")
    assert "[b.py:1: no longer parses" in await text(workspace, "write_to_file", path="b.py", content="x = [\n")


@pytest.mark.parametrize(("severity", "times"), [(Severity.ERROR, 0), (Severity.WARNING, 1)])
async def test_what_a_checker_tells_as_an_error_is_not_told_twice(
    workspace: Workspace, severity: Severity, times: int
) -> None:
    path = Path(workspace.root, "a.py")
    path.write_text("x = 1\n")
    problem = Diagnostic(path=str(path), line=1, severity=severity, message="odd", source="lint")
    tool = with_diagnostics(
        ReplaceInFile(workspace), FakeChecker(Findings(problems=(problem,))), workspace.paths.display
    )
    result = await (await tool.prepare({"path": "a.py", "diff": diff("x = 1", "x = (1")})).run(lambda _: None)
    told = "".join(block.text for block in result.content if isinstance(block, Text))
    assert (told.count("no longer parses"), told.count("odd (lint)")) == (times, 1)
