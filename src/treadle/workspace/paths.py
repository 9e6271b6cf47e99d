"""Paths of the workspace: made absolute, resolved through links, and shown short."""

import os
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.text import visible


class Paths(Struct, frozen=True):
    """The paths as seen from one workspace; `root` is absolute and resolved."""

    root: str

    def locate(self, path: str) -> str:
        """Make a requested path absolute without resolving anything; `~/` is the home directory.

        Raises `ToolError` for what cannot be a path.
        """
        if not path or "\0" in path:
            raise ToolError("The path is empty or holds a NUL byte. Give a path relative to the workspace.")
        if path == "~" or path.startswith("~/"):
            path = str(Path(path).expanduser())
        return str(Path(self.root) / path)

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are."""
        return os.path.realpath(Path(self.root) / path)

    def display(self, path: str) -> str:
        """Show a path: relative inside the workspace, control characters escaped."""
        absolute = Path(os.path.normpath(path))
        shown = absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else absolute
        return visible(shown.as_posix())
