"""An edit tool whose result also tells which problems the edit brought."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from treadle.engine.ports import Output, Prepared, Tool
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult, Outcome, ToolSpec, WritePath
from treadle.tools.syntax_check import is_about
from treadle.workspace.diagnostics.checks import Findings
from treadle.workspace.diagnostics.problems import Severity, report
from treadle.workspace.files.text import visible


class Checker(Protocol):
    """Finds what an edit brought."""

    def covers(self, path: str) -> bool:
        """Whether files of this kind are checked."""
        ...

    async def before(self, paths: Sequence[str]) -> None:
        """Take stock before an edit of these files."""
        ...

    async def after(self, paths: Sequence[str]) -> Findings:
        """Find what is new since then."""
        ...


class DiagnosedTool(msgspec.Struct, frozen=True):
    """A tool that changes files, with a check around each run. Made by `with_diagnostics`."""

    tool: Tool
    checker: Checker
    display: Callable[[str], str]

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool itself."""
        return self.tool.spec

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Prepare the call; the check is a part of its run."""
        prepared = await self.tool.prepare(arguments)
        writes = [access.path for access in prepared.accesses if isinstance(access, WritePath)]
        paths = [path for path in writes if self.checker.covers(path)]
        if not paths:
            return prepared

        async def run(output: Output) -> CallResult:
            await self.checker.before(paths)
            result = await prepared.run(output)
            if result.outcome is not Outcome.OK:
                return result
            findings = await self.checker.after(paths)
            return _with(result, findings, self.display)

        return msgspec.structs.replace(prepared, run=run)


def with_diagnostics(tool: Tool, checker: Checker, display: Callable[[str], str]) -> Tool:
    """Let the results of an edit tool tell new problems; `display` shortens an absolute path."""
    return DiagnosedTool(tool, checker, display)


def _with(result: CallResult, findings: Findings, display: Callable[[str], str]) -> CallResult:
    notes = []
    if findings.problems:
        listed = report(findings.problems, display)
        notes.append(f"\n\nThis edit brought new problems. Fix them now, unless a later step will:\n{listed}")
    if findings.faults:
        faults = "; ".join(visible(fault) for fault in findings.faults)
        notes.append(f"\n\n[Diagnostics could not run: {faults}.]")
    if not notes:
        return result
    told = {display(problem.path) for problem in findings.problems if problem.severity is Severity.ERROR}
    # What a checker says of a file that no longer parses says more than that.
    kept = (
        block
        for block in result.content
        if not (isinstance(block, Text) and any(is_about(block.text, name) for name in told))
    )
    return msgspec.structs.replace(result, content=(*kept, Text(text="".join(notes))))
