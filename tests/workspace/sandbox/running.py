"""Running a line in a sandbox, and the profile that most tests start from."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from tests.needed import require

from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.commands.wrapping import TIMES_AGAIN, Wrapping
from treadle.workspace.namespaces.session_space import SessionNamespaces
from treadle.workspace.sandbox import Profile, SandboxState, prepare, probe
from treadle.workspace.sandbox.backend import Backend

LANDLOCK = SandboxState(backend=Backend.LANDLOCK)


@functools.cache
def bubblewrap() -> SandboxState:
    """Give bubblewrap's state, or skip."""
    require("bwrap")
    return probe()


def landlock() -> SandboxState:
    """Give Landlock's state, or skip."""
    require("landlock")
    return LANDLOCK


_opened: dict[Path, SessionNamespaces] = {}


def namespaces_of(box: "Box") -> SessionNamespaces:
    """Give what the commands of a workspace share; `close_namespaces` ends it."""
    return _opened.setdefault(box.folder, SessionNamespaces())


def close_namespaces() -> None:
    """End what the commands of this test shared."""
    while _opened:
        _opened.popitem()[1].close()


@dataclass(frozen=True)
class Box:
    """A workspace with a profile, and everything private of Treadle beside it."""

    folder: Path
    state: SandboxState
    shared: bool = True
    """Whether its commands share namespaces, as those of a session do where bubblewrap works."""

    @property
    def root(self) -> Path:
        return self.folder / "work"

    def profile(self, *protected: str, masked: tuple[str, ...] = ()) -> Profile:
        """Give a profile; the paths are relative to the workspace."""
        root = os.path.realpath(self.root)
        return Profile(
            root=root,
            protected=tuple(f"{root}/{name}" for name in protected),
            masked=tuple(f"{root}/{name}" for name in masked),
            tmp=str(self.folder / "tmp"),
            private=str(self.folder / "private"),
        )

    def start(self, line: str, profile: Profile) -> CommandProcess:
        """Start a line."""
        return self._start(line, profile)[0]

    def _start(self, line: str, profile: Profile) -> tuple[CommandProcess, Wrapping]:
        launcher = Launcher(
            shell="/bin/bash",
            directory=profile.root,
            variables=child_variables(os.environ),
            spool=self.folder / "spool",
        )
        holder = namespaces_of(self).holder() if self.shared and self.state.backend is Backend.BUBBLEWRAP else None
        wrapping = prepare(profile, self.state, holder)
        command = launcher.start(line, setup=Setup(wrapping))
        launcher.close()
        return command, wrapping

    async def run(
        self, line: str, profile: Profile | None = None, seconds: float = 60, *, again: int = TIMES_AGAIN
    ) -> tuple[int | None, str]:
        """Run a line to its end and give its status and output; as the tools do, once more where it did not begin."""
        command, wrapping = self._start(line, profile or self.profile())
        await command.finish(seconds)
        output = command.take_output()
        await command.close()
        if again and wrapping.lacks_place(output):
            return await self.run(line, profile, seconds, again=again - 1)
        return command.status, output

    def tree(self) -> list[str]:
        """List what the workspace holds."""
        found = [Path(folder, name) for folder, *names in os.walk(self.root) for name in (*names[0], *names[1])]
        return sorted(str(path.relative_to(self.root)) for path in found)
