"""Starting the shell lines of linters."""

from collections.abc import Awaitable, Callable

from treadle.workspace.commands.confinement import OPEN, Setup
from treadle.workspace.commands.process import Bounds, CommandProcess
from treadle.workspace.workspace import Workspace


def starting(workspace: Workspace, *, confined: bool = False) -> Callable[[str, Bounds], Awaitable[CommandProcess]]:
    """Start them as commands of the workspace."""

    async def start(line: str, bounds: Bounds) -> CommandProcess:
        return workspace.launcher.start(line, bounds, workspace.confine(line, OPEN) if confined else Setup())

    return start
