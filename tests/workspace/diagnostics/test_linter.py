"""Linters: any command that names problems."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.needed import needs, ruff
from tests.workspace.diagnostics.starting import starting

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.linter import Linter
from treadle.workspace.diagnostics.problems import Diagnostic, Severity
from treadle.workspace.workspace import Workspace

RUFF = ruff()


def linter(workspace: Workspace, line: str, **more: Any) -> Linter:
    return Linter(name="lint", line=line, patterns=("*.py",), root=workspace.root, start=starting(workspace), **more)


@needs("ruff")
async def test_a_real_linter_is_run_on_the_files(workspace: Workspace) -> None:
    file = Path(workspace.root) / "it's a.py"
    file.write_text("print(x)\n")
    line = f"{RUFF} check --isolated --no-cache --output-format concise {{files}}"
    assert await linter(workspace, line).check([str(file)]) == [
        Diagnostic(path=str(file), line=1, column=7, message="F821 Undefined name `x`", source="lint")
    ]


async def test_a_linter_that_cannot_be_run_says_so(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"lint did not work: Exit status 127\. .*no-such-linter"):
        await linter(workspace, "no-such-linter {files}").check([__file__])


async def test_a_linter_that_ends_in_an_unusual_way_without_a_problem_did_not_work(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"^lint did not work: Exit status 2\. the config is broken$"):
        await linter(workspace, "echo on; echo the config is broken; exit 2; : {files}").check([__file__])
    found = await linter(workspace, "echo a.py:3: odd; exit 2; : {files}").check([__file__])
    assert found == [Diagnostic(path=f"{workspace.root}/a.py", line=3, message="odd", source="lint")]


async def test_files_that_are_not_there_are_not_checked(workspace: Workspace) -> None:
    assert await linter(workspace, "echo a.py:1: ran").check([f"{workspace.root}/gone.py"]) == []


async def test_a_pattern_of_its_own_tells_which_lines_are_problems(workspace: Workspace) -> None:
    pattern = re.compile(
        r"::(?P<severity>\w+) file=(?P<path>[^,]+),line=(?P<line>\d+),col=(?P<column>\d+)::(?P<message>.*)"
    )
    line = "echo ::warning file=a.py,line=4,col=2::odd; echo a.py:3: no problem of this kind; : {files}"
    found = await linter(workspace, line, pattern=pattern).check([__file__])
    path = f"{workspace.root}/a.py"
    assert found == [Diagnostic(path=path, line=4, column=2, severity=Severity.WARNING, message="odd", source="lint")]


def test_files_are_covered_by_their_name(workspace: Workspace) -> None:
    assert linter(workspace, "x").covers("/w/a.py")
    assert not linter(workspace, "x").covers("/w/a.py/b.txt")
