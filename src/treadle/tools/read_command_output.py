"""read_command_output: a look at a command in the background, or its end."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.tools import CallResult, Preview, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.tools.declare import number, parameters, prompt
from treadle.tools.running import look_at
from treadle.workspace.workspace import Workspace

_MOST_SECONDS = 600

_SPEC = ToolSpec(
    name="read_command_output",
    description=prompt(__file__),
    parameters=parameters(
        {
            "command_number": number("The number that execute_command gave.", low=1),
            "wait": number(
                "Seconds to wait for its end. If not given, you get the output so far.", low=0, high=_MOST_SECONDS
            ),
            "stop": {
                "type": "boolean",
                "description": "Stop it and everything it started. Stop servers that you no longer need.",
            },
        },
        optional=("wait", "stop"),
    ),
    # Output is given once, so a second call is not the same again.
    traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    risk=Risk.NONE,
)


class ReadCommandOutput(Struct, frozen=True):
    """Looks after the commands that this session started and that were approved then."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the command."""
        which: int = arguments["command_number"]
        seconds: int = arguments.get("wait", 0)
        stop: bool = arguments.get("stop", False)

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - what it prints is in the result
            return await look_at(self.workspace, which, seconds, stop=stop)

        return Prepared(accesses=(), preview=Preview(title=f"{'Stop' if stop else 'Look at'} command {which}"), run=run)
