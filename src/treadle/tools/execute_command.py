"""execute_command: a shell line in the workspace."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.declare import number, parameters, prompt, text
from treadle.tools.running import access, preview, run_line
from treadle.workspace.workspace import Workspace

_SECONDS = 120
_MOST_SECONDS = 600

_SPEC = ToolSpec(
    name="execute_command",
    description=prompt(__file__),
    parameters=parameters(
        {
            "command": text("The shell line."),
            "timeout": number("Seconds until it is ended.", low=1, high=_MOST_SECONDS),
        },
        optional=("timeout",),
    ),
    traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    risk=Risk.EXECUTE,
)


@dataclass(frozen=True, slots=True)
class ExecuteCommand:
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
            raise ToolError("The command is empty.", invalid=True)
        return Prepared(
            accesses=(access(self.workspace, line),),
            preview=preview(line),
            run=partial(run_line, self.workspace, line, arguments.get("timeout", _SECONDS)),
        )
