"""Running a line on a throw-away copy, and everything that is asked of a copy afterwards."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.needed import IN_CI
from tests.workspace.sandbox.running import bubblewrap

from treadle.protocol.tools import CopyChanges
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.copies import Copy, Hold, make_copy, nothing_is_held, read_changes, why_no_copy
from treadle.workspace.sandbox import Profile


def skip_without_copies(folder: Path) -> None:
    """Skip where no copy of a folder can be made, trying it out in a new one in `folder`."""
    bench = Bench(folder.resolve() / "tried")
    bench.root.mkdir(parents=True)
    bench.needs_copies()


@dataclass(frozen=True)
class Ran:
    """A command that has ended, with its copy."""

    copy: Copy
    status: int | None
    output: str

    def changes(self, hold: Hold = nothing_is_held) -> CopyChanges:
        """Read what it changed."""
        failed = self.status != 0
        return read_changes(self.copy, hold, output=self.output, failed=failed)


@dataclass(frozen=True)
class Bench:
    """A workspace, and beside it everything private of Treadle."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "work"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def profile(self, *masked: str, roots: tuple[str, ...] = ()) -> Profile:
        """Give a profile; what is masked is named from the workspace."""
        root = str(self.root)
        return Profile(
            root=root,
            roots=roots,
            masked=(str(self.data), *(f"{root}/{name}" for name in masked)),
            tmp=str(self.data / "tmp"),
            private=str(self.data / "private"),
        )

    def needs_copies(self) -> None:
        """Skip where none can be made; in CI that is a failure, since a fault in making them would look the same."""
        if trouble := why_no_copy(self.profile(), bubblewrap(), self.data):
            (pytest.fail if IN_CI else pytest.skip)(trouble)

    def start(self, line: str, copy: Copy) -> CommandProcess:
        launcher = Launcher(
            shell="/bin/bash",
            directory=str(self.root),
            variables=child_variables(os.environ),
            spool=self.data / "spool",
        )
        command = launcher.start(line, setup=Setup(copy.wrapping))
        launcher.close()
        return command

    async def run(self, line: str, profile: Profile | None = None, *, size: int = 0) -> Ran:
        """Run a line to its end."""
        copy = make_copy(profile or self.profile(), bubblewrap(), self.data, size=size)
        command = self.start(line, copy)
        await command.finish(100)
        output = command.take_output()
        await command.close()
        return Ran(copy, command.status, output)


def snapshot(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Describe a tree to the bit: kinds, modes, contents, targets; as root also of what nobody may read."""
    found: dict[bytes, tuple[object, ...]] = {}

    def look(path: bytes, name: bytes) -> None:
        status = os.lstat(path)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", os.readlink(path))
            return
        needed = 0o500 if stat.S_ISDIR(status.st_mode) else 0o400 if stat.S_ISREG(status.st_mode) else 0
        closed = os.geteuid() != 0 and mode & needed != needed
        if closed:
            os.chmod(path, mode | needed)
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file:
                found[name] = ("file", mode, hashlib.file_digest(file, "sha256").hexdigest())
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder", mode)
            for each in sorted(os.listdir(path)):
                look(path + b"/" + each, name + b"/" + each)
        else:
            found[name] = ("special", mode)
        if closed:
            os.chmod(path, mode)

    look(os.fsencode(root), b"")
    return found
