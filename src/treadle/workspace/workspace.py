"""One workspace: where it is, what its programs get, and what is running in it."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from treadle.workspace.commands.variables import child_variables, path_outside
from treadle.workspace.files.file_access import DiskFiles, FileAccess
from treadle.workspace.files.paths import Paths
from treadle.workspace.files.seen import SeenFiles
from treadle.workspace.searching.search import Search, find_ripgrep, no_secrets

if TYPE_CHECKING:
    from treadle.protocol.tools import Rights
    from treadle.workspace.commands.background_jobs import JobBook
    from treadle.workspace.commands.confinement import Confine, Setup
    from treadle.workspace.commands.hiding import Hide
    from treadle.workspace.commands.launcher import Launcher
    from treadle.workspace.commands.process import CommandProcess
    from treadle.workspace.commands.watchers import Watchers
    from treadle.workspace.namespaces.listeners import CommandServers


_NO_BOUND = 2**40


def _unbounded() -> int:
    return _NO_BOUND


def _holds_nothing(text: str) -> bool:  # noqa: ARG001 - no text is there
    return False


class Conversation(Struct, frozen=True, kw_only=True):
    """What tools know of the conversation that their results go into.

    `room` gives how many bytes of UTF-8 the model in force takes in one result. `holds` says whether the conversation,
    as it is sent now, has a result with exactly this text.
    """

    room: Callable[[], int] = _unbounded
    holds: Callable[[str], bool] = _holds_nothing


class OpenCommands:
    """The commands of a session that still run, or whose output was not read to its end, by number."""

    def __init__(self, before: Callable[[], int] = lambda: 0) -> None:
        """`before` gives the highest number that was given out before."""
        self._before = before
        self._commands: dict[int, CommandProcess] = {}

    @cached_property
    def _next(self) -> int:
        return self._before() + 1

    def add(self, command: "CommandProcess") -> int:
        """Give a command its number."""
        number = self._next
        self._next = number + 1
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


def _unconfined(
    line: str,  # noqa: ARG001 - as it comes
    rights: "Rights",  # noqa: ARG001
    *,
    background: bool = False,  # noqa: ARG001
    cwd: str = "",  # noqa: ARG001
    of_git: bool = False,  # noqa: ARG001
) -> "Setup":
    from treadle.workspace.commands.confinement import Setup

    return Setup()


class Workspace(Struct, frozen=True, kw_only=True, dict=True):
    """A directory that is worked in, with further `roots` that belong to it; all are absolute and resolved.

    `confine` says how a command is run; it may look at the disk for some milliseconds. What starts commands, and what
    notes them for other processes, is made with the first command.
    """

    root: str
    shell: str
    paths: Paths
    search: Search
    open_launcher: "Callable[[], Launcher]"
    confine: "Confine" = _unconfined
    seen: SeenFiles = field(default_factory=SeenFiles)
    commands: OpenCommands = field(default_factory=OpenCommands)
    files: FileAccess = _ON_DISK
    open_jobs: "Callable[[], JobBook] | None" = None
    open_watchers: "Callable[[], Watchers] | None" = None
    conversation: Conversation = _NO_CONVERSATION
    roots: tuple[str, ...] = ()
    open_servers: "Callable[[], CommandServers] | None" = None
    before_commands: "list[Callable[[], Awaitable[None]]]" = field(default_factory=list)
    """What is to be done before a command is started, each time."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The workspace and its further folders."""
        return (self.root, *self.roots)

    @cached_property
    def servers(self) -> "CommandServers | None":
        """The servers that commands run, where these have a network of their own."""
        return None if self.open_servers is None else self.open_servers()

    @cached_property
    def launcher(self) -> "Launcher":
        """What starts commands."""
        return self.open_launcher()

    @cached_property
    def jobs(self) -> "JobBook | None":
        """What notes the commands in the background."""
        return None if self.open_jobs is None else self.open_jobs()

    @cached_property
    def watchers(self) -> "Watchers | None":
        """What wakes the session; None where there is none."""
        return None if self.open_watchers is None else self.open_watchers()

    async def listens(self, command: "CommandProcess") -> str:
        """Say on which ports of the session what goes on of a command listens; empty for none."""
        if self.servers is None or not command.alive:
            return ""
        found = await asyncio.to_thread(self.servers.listening, command.processes)
        ports = ", ".join(f"localhost:{one.port}" for one in found)
        return f"It listens on {ports}, for this session's commands." if ports else ""

    def unwatch(self, number: int) -> None:
        """Let a command wake nobody any more."""
        if "watchers" in self.__dict__ and self.watchers is not None:
            self.watchers.disarm(number)

    def wakes(self) -> bool:
        """Whether something will wake the session, or has and was not read yet."""
        return "watchers" in self.__dict__ and self.watchers is not None and self.watchers.waits

    async def close(self) -> None:
        """End everything that runs."""
        if "watchers" in self.__dict__ and self.watchers is not None:
            await self.watchers.close()
        if "launcher" in self.__dict__:
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
    open_jobs: "Callable[[], JobBook] | None" = None,
    open_watchers: "Callable[[], Watchers] | None" = None,
    is_secret: Callable[[str], bool] = no_secrets,
    confine: "Confine" = _unconfined,
    hide: "Hide | None" = None,
    conversation: Conversation = _NO_CONVERSATION,
    open_servers: "Callable[[], CommandServers] | None" = None,
) -> Workspace:
    """Describe the workspace at `root`.

    `roots` are further folders of it, resolved. `variables` is the environment to choose from, `pass_on` names
    variables of it that children get besides the harmless ones; `spool` is a private directory, made when needed;
    nothing is found in files whose path `is_secret`. `open_jobs` makes what notes commands that other processes
    should know of, `open_watchers` what wakes the session when a command prints something. `hide` begins to take
    the secrets out of what a command prints, `open_servers` makes what finds the servers that commands run.
    """
    variables = os.environ if variables is None else variables
    resolved = os.path.realpath(root)
    search_path = path_outside(variables.get("PATH", os.defpath), resolved, *roots)
    shell = shutil.which("bash", path=search_path) or "/bin/sh"

    def open_launcher() -> "Launcher":
        from treadle.workspace.commands.hiding import as_it_is
        from treadle.workspace.commands.launcher import Launcher

        return Launcher(
            shell=shell,
            directory=resolved,
            variables=child_variables(variables, pass_on),
            hide=hide or as_it_is,
            spool=spool or Path(tempfile.gettempdir()) / f"treadle-{os.getuid()}-{os.urandom(6).hex()}",
        )

    return Workspace(
        root=resolved,
        shell=shell,
        paths=Paths(resolved),
        confine=confine,
        files=files,
        open_jobs=open_jobs,
        open_watchers=open_watchers,
        conversation=conversation,
        commands=OpenCommands(lambda: 0 if open_jobs is None else open_jobs().highest),
        roots=roots,
        search=Search(
            ripgrep=find_ripgrep({**variables, "PATH": search_path}), is_secret=is_secret, roots=(resolved, *roots)
        ),
        open_launcher=open_launcher,
        open_servers=open_servers,
    )
