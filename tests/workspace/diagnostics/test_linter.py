"""Linters: any command that names problems."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.linter import Linter
from treadle.workspace.diagnostics.problems import Problem
from treadle.workspace.workspace import Workspace

RUFF = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")


def linter(workspace: Workspace, line: str) -> Linter:
    return Linter(name="lint", line=line, patterns=("*.py",), root=workspace.root, start=workspace.launcher.start)


@pytest.mark.skipif(RUFF is None, reason="needs ruff")
async def test_a_real_linter_is_run_on_the_files(workspace: Workspace) -> None:
    file = Path(workspace.root) / "it's a.py"
    file.write_text("print(x)\n")
    line = f"{RUFF} check --isolated --no-cache --output-format concise {{files}}"
    assert await linter(workspace, line).check([str(file)]) == [
        Problem(path=str(file), line=1, column=7, message="F821 Undefined name `x`", source="lint")
    ]


async def test_a_linter_that_cannot_be_run_says_so(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"lint did not work: Exit status 127\. .*no-such-linter"):
        await linter(workspace, "no-such-linter {files}").check(["/a.py"])


def test_files_are_covered_by_their_name(workspace: Workspace) -> None:
    assert linter(workspace, "x").covers("/w/a.py")
    assert not linter(workspace, "x").covers("/w/a.py/b.txt")
