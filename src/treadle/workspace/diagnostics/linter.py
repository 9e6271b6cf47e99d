"""A linter: a command whose output names problems, one to a line."""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.process import Bounds, CommandProcess
from treadle.workspace.commands.wrapping import SANDBOXES, TIMES_AGAIN
from treadle.workspace.diagnostics.checks import CHECK_SECONDS, covered
from treadle.workspace.diagnostics.problems import PATTERN, Diagnostic, read_output

FILES_PLACEHOLDER = "{files}"
_BOUNDS = Bounds(kept=512 * 1024, line=512 * 1024)
_NOT_FOUND = (126, 127)
_USUAL = (0, 1)
"""With these a linter says that it worked; others may say that, or that it could not work at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linter:
    """Runs a shell line in the workspace's root; `{files}` in it stands for the files that were edited.

    `patterns` are globs of file names, `pattern` tells which lines of the output are problems. `start` starts a shell
    line with bounds on its output.
    """

    name: str
    line: str
    patterns: Sequence[str]
    root: str
    start: Callable[[str, Bounds], Awaitable[CommandProcess]]
    seconds: float = CHECK_SECONDS
    pattern: re.Pattern[str] = PATTERN

    def covers(self, path: str) -> bool:
        """Whether it is meant for files of this kind."""
        return covered(path, self.patterns)

    async def check(self, paths: Sequence[str], *, again: int = TIMES_AGAIN) -> list[Diagnostic]:
        """Run the linter over the files that are there; `again` so often where its sandbox was not set up.

        Raises `ToolError` when it cannot be run.
        """
        there = _existing(paths)
        if not there:
            return []
        command = await self.start(self.line.replace(FILES_PLACEHOLDER, " ".join(map(shlex.quote, there))), _BOUNDS)
        try:
            await command.finish(self.seconds)
        finally:
            await command.close()
        output = command.take_output()
        problems = read_output(output, self.root, self.name, self.pattern)
        if again and command.status and await asyncio.to_thread(command.setup.wrapping.lacks_place, output):
            return await self.check(paths, again=again - 1)
        not_run = command.status in _NOT_FOUND or (command.status != 0 and output.startswith(SANDBOXES))
        broken = not_run or (command.status not in _USUAL and not problems)
        if broken or command.why_stopped:
            raise ToolError(f"{self.name} did not work: {command.describe()} {_last_line(output)}".strip())
        return problems

    async def close(self) -> None:
        """Nothing runs between checks."""


def _existing(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).is_file()]


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
