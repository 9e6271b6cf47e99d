"""One workspace: where it is, what its programs get, and what is running in it."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from treadle.workspace.confinement import Confine, unconfined
from treadle.workspace.conversation import Conversation
from treadle.workspace.file_access import DiskFiles, FileAccess
from treadle.workspace.hiding import Hide, as_it_is
from treadle.workspace.jobs import JobBook
from treadle.workspace.launcher import Launcher
from treadle.workspace.paths import Paths
from treadle.workspace.search import Search, find_ripgrep, no_secrets
from treadle.workspace.seen import SeenFiles
from treadle.workspace.variables import child_variables, path_outside

if TYPE_CHECKING:
    from treadle.workspace.process import CommandProcess


class OpenCommands:
    """The commands of a session that still run, or whose output was not read to its end, by number."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self._commands: dict[int, CommandProcess] = {}

    def add(self, command: "CommandProcess") -> int:
        """Give a command its number."""
        number = self._next
        self._next += 1
        self._commands[number] = command
        return number

    def had(self, number: int) -> bool:
        """Whether this number was given out."""
        return 0 < number < self._next

    def get(self, number: int) -> "CommandProcess | None":
        """Find a command."""
        return self._commands.get(number)

    def remove(self, number: int) -> None:
        """Forget a command that has ended."""
        self._commands.pop(number, None)

    def all(self) -> "tuple[tuple[int, CommandProcess], ...]":
        """Give the commands with their numbers, oldest first."""
        return tuple(self._commands.items())

    async def close(self) -> None:
        """End every command and what it started, within about a second."""
        await asyncio.gather(*(command.close() for command in self._commands.values()))
        self._commands.clear()


_ON_DISK = DiskFiles()
_NO_CONVERSATION = Conversation()


class Workspace(Struct, frozen=True, kw_only=True):
    """A directory that is worked in, with further `roots` that belong to it; all are absolute and resolved.

    `confine` says how a command is run; it may look at the disk for some milliseconds.
    """

    root: str
    shell: str
    paths: Paths
    search: Search
    launcher: Launcher
    confine: Confine = unconfined
    seen: SeenFiles = field(default_factory=SeenFiles)
    commands: OpenCommands = field(default_factory=OpenCommands)
    files: FileAccess = _ON_DISK
    jobs: JobBook | None = None
    conversation: Conversation = _NO_CONVERSATION
    roots: tuple[str, ...] = ()

    async def close(self) -> None:
        """End everything that runs."""
        self.launcher.close()
        await self.commands.close()


def open_workspace(  # noqa: PLR0913 - what a workspace is opened with
    root: str | Path,
    *,
    roots: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
    pass_on: Sequence[str] = (),
    spool: Path | None = None,
    files: FileAccess = _ON_DISK,
    jobs: JobBook | None = None,
    is_secret: Callable[[str], bool] = no_secrets,
    confine: Confine = unconfined,
    hide: Hide = as_it_is,
    conversation: Conversation = _NO_CONVERSATION,
) -> Workspace:
    """Describe the workspace at `root`.

    `roots` are further folders of it, resolved. `variables` is the environment to choose from, `pass_on` names
    variables of it that children get besides the harmless ones; `spool` is a private directory, made when needed;
    nothing is found in files whose path `is_secret`. `jobs` notes commands that other processes should know of. `hide`
    begins to take the secrets out of what a command prints.
    """
    variables = os.environ if variables is None else variables
    resolved = os.path.realpath(root)
    search_path = path_outside(variables.get("PATH", os.defpath), resolved, *roots)
    shell = shutil.which("bash", path=search_path) or "/bin/sh"
    return Workspace(
        root=resolved,
        shell=shell,
        paths=Paths(resolved),
        confine=confine,
        files=files,
        jobs=jobs,
        conversation=conversation,
        commands=OpenCommands(1 if jobs is None else jobs.highest + 1),
        roots=roots,
        search=Search(
            ripgrep=find_ripgrep({**variables, "PATH": search_path}), is_secret=is_secret, roots=(resolved, *roots)
        ),
        launcher=Launcher(
            shell=shell,
            directory=resolved,
            variables=child_variables(variables, pass_on),
            hide=hide,
            spool=spool or Path(tempfile.gettempdir()) / f"treadle-{os.getuid()}-{os.urandom(6).hex()}",
        ),
    )
