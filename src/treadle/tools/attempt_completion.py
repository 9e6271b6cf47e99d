"""attempt_completion: the result of the task, which ends the turn, and a command that shows it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Text
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    Rights,
    ToolSpec,
    result_text,
)
from treadle.tools.declarations import ATTEMPT_COMPLETION
from treadle.tools.running import Patience, access, prepared_run, run_line
from treadle.workspace.workspace import Workspace

_PATIENCE = Patience(120)
_FAILED = Text(text="\nThe user has seen the result, but this command failed. Fix it, or finish without the command.")


class AttemptCompletion(Struct, frozen=True):
    """Hands the result on, after running the command if there is one."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return ATTEMPT_COMPLETION

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the result; a command is judged like any other."""
        result: str = arguments["result"]
        line: str = arguments.get("command", "").strip()
        if not result.strip():
            raise ToolError("The result is empty. Say what you did and found.", invalid=True)
        if not line:
            return Prepared(accesses=(), preview=Preview(title="Result", text=result), run=partial(_finish, result))
        shown = Preview(title="Run to show the result", text=line, result=result)
        return prepared_run(access(self.workspace, line, _PATIENCE), shown, partial(self._show, result, line))

    async def _show(self, result: str, line: str, output: Output, *, rights: Rights) -> CallResult:
        shown = await run_line(self.workspace, line, _PATIENCE, output, rights=rights)
        done = shown.outcome is Outcome.OK
        heading, ending = (f"{result}\n\n", ()) if done else ("", (_FAILED,))
        content = (Text(text=f"{heading}$ {line}\n"), *shown.content, *ending)
        return replace(shown, content=content, denial=None)


async def _finish(result: str, output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    return result_text(Outcome.OK, result)
