"""read_command_output: a look at a command in the background, or its end."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.protocol.messages import Text
from treadle.protocol.tools import CallResult, Preview, ToolSpec
from treadle.tools.declarations import READ_COMMAND_OUTPUT
from treadle.tools.running import poll_command, watch_command
from treadle.workspace.commands.watchers import line_pattern
from treadle.workspace.workspace import Workspace


class ReadCommandOutput(Struct, frozen=True):
    """Looks after the commands that this session started and that were approved then."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return READ_COMMAND_OUTPUT

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the command. Raises `ToolError` for an expression that may take long."""
        which: int = arguments["command_number"]
        seconds: int = arguments.get("wait", 0)
        stop: bool = arguments.get("stop", False)
        wake_on: str | None = arguments.get("wake_on")
        if wake_on:
            line_pattern(wake_on)

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - what it prints is in the result
            if stop:
                self.workspace.unwatch(which)
            said = "" if wake_on is None or stop else watch_command(self.workspace, which, wake_on)
            result = await poll_command(self.workspace, which, seconds, stop=stop)
            return replace(result, content=(*result.content, Text(text=said))) if said and result.running else result

        what = "Stop" if stop else "Look at" if wake_on is None else "Watch"
        return Prepared(accesses=(), preview=Preview(title=f"{what} command {which}", text=wake_on or ""), run=run)
