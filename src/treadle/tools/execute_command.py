"""execute_command: a shell line in the workspace."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ToolSpec
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.tools.running import Patience, access, prepared_run, preview, run_line
from treadle.workspace.workspace import Workspace

_PATIENCE = Patience(120, keep=True)
_BACKGROUND = Patience(1, keep=True, background=True)


class ExecuteCommand(Struct, frozen=True):
    """Runs commands in the workspace's root."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return EXECUTE_COMMAND

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the line; nothing is looked up before it was judged."""
        line: str = arguments["command"]
        if not line.strip():
            raise ToolError("The command is empty. Give the shell line to run.", invalid=True)
        patience = _patience(arguments)
        run = partial(run_line, self.workspace, line, patience)
        return prepared_run(access(self.workspace, line, patience), preview(line), run)


def _patience(arguments: Mapping[str, Any]) -> Patience:
    if arguments.get("background", False):
        return _BACKGROUND
    return Patience(arguments["timeout"]) if "timeout" in arguments else _PATIENCE
