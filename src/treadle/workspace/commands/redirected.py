"""Files that one run of a command reads and prints to, which no command can find."""

import os
from contextlib import suppress
from pathlib import Path

from treadle.workspace.commands.wrapping import Caps
from treadle.workspace.files.private_file import make_private_folder


class RedirectedFiles:
    """The two files of a run, in a private folder; they are there from `write` to `remove`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        name = f"run-{os.urandom(8).hex()}"
        self._input = folder / f"{name}-in"
        self._output = folder / f"{name}-out"

    @property
    def caps(self) -> Caps:
        """What leads the command to them."""
        return Caps(given=str(self._input), printed=str(self._output))

    def write(self, given: bytes) -> None:
        """Make them, the first with what the command is given; raises `OSError`."""
        make_private_folder(self._folder)
        for file, content in ((self._input, given), (self._output, b"")):
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(content)

    def printed(self, most: int) -> bytes:
        """Give at most so many bytes of what it printed; raises `OSError`."""
        with self._output.open("rb") as stream:
            return stream.read(most)

    def remove(self) -> None:
        """Remove them."""
        for file in (self._input, self._output):
            with suppress(OSError):
                file.unlink()
