"""Edit tools that tell which problems an edit brought."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.workspace.diagnostics.starting import starting

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult
from treadle.tools.diagnosed import with_diagnostics
from treadle.tools.read_file import ReadFile
from treadle.tools.write_to_file import WriteToFile
from treadle.workspace.diagnostics.checks import Diagnostics, Findings
from treadle.workspace.diagnostics.linter import Linter
from treadle.workspace.diagnostics.problems import Diagnostic
from treadle.workspace.workspace import Workspace


@dataclass
class FakeChecker:
    """Finds what it is told to, and keeps what it was asked."""

    findings: Findings
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def covers(self, path: str) -> bool:
        return path.endswith(".py")

    async def before(self, paths: Sequence[str]) -> None:
        self.asked.append(("before", tuple(paths)))

    async def after(self, paths: Sequence[str]) -> Findings:
        self.asked.append(("after", tuple(paths)))
        return self.findings


async def write(workspace: Workspace, checker: Any, path: str, content: str = "x\n") -> CallResult:
    tool = with_diagnostics(WriteToFile(workspace), checker, workspace.paths.display)
    return await (await tool.prepare({"path": path, "content": content})).run(lambda _: None)


def added(result: CallResult) -> list[str]:
    return [block.text for block in result.content[1:] if isinstance(block, Text)]


async def test_new_problems_and_faults_are_added_to_the_result(workspace: Workspace) -> None:
    path = f"{workspace.root}/a.py"
    checker = FakeChecker(
        Findings(problems=(Diagnostic(path=path, line=2, message="odd", source="lint"),), faults=("other has ended",))
    )
    result = await write(workspace, checker, "a.py")
    problems = "\n\nThis edit brought new problems. Fix them now, unless a later step will:\na.py:2: error: odd (lint)"
    assert added(result) == [f"{problems}\n\n[Diagnostics could not run: other has ended.]"]
    assert [change.path for change in result.changes] == [path]
    assert checker.asked == [("before", (path,)), ("after", (path,))]


async def test_without_problems_the_result_stays_as_it_is(workspace: Workspace) -> None:
    assert added(await write(workspace, FakeChecker(Findings()), "a.py")) == []


async def test_other_files_and_calls_that_change_nothing_are_not_checked(workspace: Workspace) -> None:
    checker = FakeChecker(Findings())
    await write(workspace, checker, "a.txt")
    Path(workspace.root, "a.py").write_text("x\n")
    with pytest.raises(ToolError):
        await write(workspace, checker, "a.py")
    reading = with_diagnostics(ReadFile(workspace), checker, workspace.paths.display)
    await (await reading.prepare({"path": "a.py"})).run(lambda _: None)
    assert checker.asked == []
    assert reading.spec == ReadFile(workspace).spec


async def test_a_linter_tells_only_what_the_edit_brought(workspace: Workspace) -> None:
    Path(workspace.root, "a.py").write_text("bad old\n")
    await (await ReadFile(workspace).prepare({"path": "a.py"})).run(lambda _: None)
    linter = Linter(
        name="lint",
        line="grep -n bad {files} /dev/null | sed 's/:\\([0-9]*\\):/:\\1: /'",
        patterns=("*.py",),
        root=workspace.root,
        start=starting(workspace),
    )
    result = await write(workspace, Diagnostics([linter]), "a.py", "fine\nbad old\nbad new\n")
    assert added(result) == [
        "\n\nThis edit brought new problems. Fix them now, unless a later step will:\na.py:3: error: bad new (lint)"
    ]
