"""One workspace: where it is, what its programs get, and what is running in it."""

import asyncio
import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from treadle.workspace.launcher import Launcher
from treadle.workspace.paths import Paths
from treadle.workspace.process import Command
from treadle.workspace.search import Search, find_ripgrep
from treadle.workspace.seen import Seen
from treadle.workspace.variables import child_variables, path_outside
from treadle.workspace.wrapping import PLAIN, Wrapping


class Commands:
    """The commands of a session that still run, or whose output was not read to its end, by number."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._commands: dict[int, Command] = {}

    def add(self, command: Command) -> int:
        """Give a command its number."""
        number = next(self._numbers)
        self._commands[number] = command
        return number

    def get(self, number: int) -> Command | None:
        """Find a command."""
        return self._commands.get(number)

    def remove(self, number: int) -> None:
        """Forget a command that has ended."""
        self._commands.pop(number, None)

    def all(self) -> tuple[tuple[int, Command], ...]:
        """Give the commands with their numbers, oldest first."""
        return tuple(self._commands.items())

    async def close(self) -> None:
        """End every command and what it started, within about a second."""
        await asyncio.gather(*(command.close() for command in self._commands.values()))
        self._commands.clear()


def _unconfined() -> Wrapping:
    return PLAIN


class Workspace(Struct, frozen=True, kw_only=True):
    """A directory that is worked in; `root` is absolute and resolved.

    `confine` gives what goes around the next command; it may look at the disk for some milliseconds.
    """

    root: str
    shell: str
    paths: Paths
    search: Search
    launcher: Launcher
    confine: Callable[[], Wrapping] = _unconfined
    seen: Seen = field(default_factory=Seen)
    commands: Commands = field(default_factory=Commands)

    async def close(self) -> None:
        """End everything that runs."""
        self.launcher.close()
        await self.commands.close()


def open_workspace(
    root: str | Path,
    *,
    variables: Mapping[str, str] | None = None,
    pass_on: Sequence[str] = (),
    spool: Path | None = None,
    secret_globs: Sequence[str] = (),
    confine: Callable[[], Wrapping] = _unconfined,
) -> Workspace:
    """Describe the workspace at `root`.

    `variables` is the environment to choose from, `pass_on` names variables of it that children get besides the
    harmless ones; `spool` is a private directory, made when needed; files that match `secret_globs` are not searched.
    """
    variables = os.environ if variables is None else variables
    resolved = os.path.realpath(root)
    search_path = path_outside(variables.get("PATH", os.defpath), resolved)
    shell = shutil.which("bash", path=search_path) or "/bin/sh"
    return Workspace(
        root=resolved,
        shell=shell,
        paths=Paths(resolved),
        confine=confine,
        search=Search(ripgrep=find_ripgrep({**variables, "PATH": search_path}), hidden=tuple(secret_globs)),
        launcher=Launcher(
            shell=shell,
            directory=resolved,
            variables=child_variables(variables, pass_on),
            spool=spool or Path(tempfile.gettempdir()) / f"treadle-{os.getuid()}-{secrets.token_hex(6)}",
        ),
    )
