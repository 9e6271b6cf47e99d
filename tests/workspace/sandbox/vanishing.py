"""A sandbox that is to cover a folder of sockets, which has gone when the command is about to start."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from treadle.workspace.commands.wrapping import Wrapping
from treadle.workspace.files.owners import Owner
from treadle.workspace.sandbox import Profile, SandboxState, prepare


@dataclass
class Vanishing:
    """Prepares sandboxes; the folder of the first `times` of them goes away. `folders` are those that there were."""

    times: int
    folders: list[Path] = field(default_factory=list)

    def __call__(self, profile: Profile, state: SandboxState, holder: Owner | None = None) -> Wrapping:
        """Prepare a sandbox as `prepare` does."""
        # Outside of what a sandbox hides anyway; with the socket the folder is covered.
        folder = Path(tempfile.mkdtemp(dir=Path.home()))
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(folder / "s"))
                wrapping = prepare(profile, state, holder)
        finally:
            if len(self.folders) < self.times:
                shutil.rmtree(folder)
            else:
                (folder / "s").unlink()
        self.folders.append(folder)
        assert str(folder) in wrapping.inner
        return wrapping


@contextmanager
def vanishing(times: int) -> Iterator[Vanishing]:
    """Give one, and remove its folders."""
    found = Vanishing(times)
    try:
        yield found
    finally:
        for folder in found.folders:
            shutil.rmtree(folder, ignore_errors=True)
