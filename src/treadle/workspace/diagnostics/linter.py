"""A linter: a command whose output names problems as `path:line:column: message`."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.checks import SECONDS, covered
from treadle.workspace.diagnostics.problems import Problem, read_output
from treadle.workspace.process import Bounds, Command

FILES = "{files}"
_BOUNDS = Bounds(kept=512 * 1024)
_NOT_FOUND = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linter:
    """Runs a shell line in the workspace's root; `{files}` in it stands for the files that were edited.

    `patterns` are globs of file names. `start` starts a shell line with bounds on its output.
    """

    name: str
    line: str
    patterns: Sequence[str]
    root: str
    start: Callable[[str, Bounds | None], Command]

    def covers(self, path: str) -> bool:
        """Whether it is meant for files of this kind."""
        return covered(path, self.patterns)

    async def check(self, paths: Sequence[str]) -> list[Problem]:
        """Run the linter over files. Raises `ToolError` when it cannot be run."""
        command = self.start(self.line.replace(FILES, " ".join(map(shlex.quote, paths))), _BOUNDS)
        try:
            await command.finish(SECONDS)
        finally:
            await command.close()
        output = command.take_output()
        if command.status in _NOT_FOUND or command.why_stopped:
            raise ToolError(f"{self.name} did not work: {command.describe()} {output.strip()[:200]}")
        return read_output(output, self.root, self.name)

    async def close(self) -> None:
        """Nothing runs between checks."""
