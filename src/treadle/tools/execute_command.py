"""execute_command: a shell line in the workspace."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.declare import number, parameters, prompt, text
from treadle.tools.running import Patience, access, prepared_run, preview, run_line
from treadle.workspace.workspace import Workspace

_PATIENCE = Patience(120, keep=True)
_BACKGROUND = Patience(1, keep=True, background=True)
_MOST_SECONDS = 600

_SPEC = ToolSpec(
    name="execute_command",
    description=prompt(__file__),
    parameters=parameters(
        {
            "command": text("The shell line."),
            "timeout": number(
                "Seconds after which it is stopped. If not given, it continues in the background after 120.",
                low=1,
                high=_MOST_SECONDS,
            ),
            "background": {
                "type": "boolean",
                "description": (
                    "For servers and watchers: returns the first output and a number for read_command_output."
                ),
            },
        },
        optional=("timeout", "background"),
    ),
    traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    risk=Risk.EXECUTE,
)


class ExecuteCommand(Struct, frozen=True):
    """Runs commands in the workspace's root."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

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
