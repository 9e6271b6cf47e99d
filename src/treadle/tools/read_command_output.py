"""read_command_output: a look at a command in the background, or its end."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.tools import CallResult, Preview, ToolSpec
from treadle.tools.declarations import READ_COMMAND_OUTPUT
from treadle.tools.running import poll_command
from treadle.workspace.workspace import Workspace


class ReadCommandOutput(Struct, frozen=True):
    """Looks after the commands that this session started and that were approved then."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return READ_COMMAND_OUTPUT

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the command."""
        which: int = arguments["command_number"]
        seconds: int = arguments.get("wait", 0)
        stop: bool = arguments.get("stop", False)

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - what it prints is in the result
            return await poll_command(self.workspace, which, seconds, stop=stop)

        return Prepared(accesses=(), preview=Preview(title=f"{'Stop' if stop else 'Look at'} command {which}"), run=run)
