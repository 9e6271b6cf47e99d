"""Paths of the workspace: made absolute, resolved through links, and shown short."""

import os
import unicodedata
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.names import existing_path, shown_name

_LONGEST = 4095
_CLOCK = regex(r" ([AP]M\b)")
"""Before it, the screenshots of macOS have a narrow blank."""


class Paths(Struct, frozen=True):
    """The paths as seen from one workspace; `root` is absolute and resolved."""

    root: str

    def locate(self, path: str) -> str:
        """Make a requested path absolute without resolving anything; `~/` is the home directory.

        Names are taken as `display` shows them, see `workspace/names.py`.
        Where there is nothing of that name, but something whose name looks the same, that is meant: models write
        letters with accents in one way, and file systems know two. Raises `ToolError` for what cannot be a path.
        """
        if not path or "\0" in path:
            raise ToolError("The path is empty or has a NUL byte. Give a path relative to the workspace.")
        if path == "~" or path.startswith("~/"):
            path = str(Path(path).expanduser())
        try:
            absolute = existing_path(self.root, path)
            length = len(os.fsencode(absolute))
        except UnicodeEncodeError:
            raise ToolError("The path has an incomplete character. Give it as list_files shows it.") from None
        if length > _LONGEST:
            raise ToolError(f"The path has {length:,} bytes, more than a path can have. Give a shorter one.")
        return absolute if absolute.isascii() and " " not in absolute else _as_it_is_named(absolute)

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are."""
        return os.path.realpath(Path(self.root) / path)

    def display(self, path: str) -> str:
        """Show a path so that `locate` finds it again: relative inside the workspace, on one line."""
        absolute = Path(os.path.normpath(path))
        shown = absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else absolute
        return shown_name(shown.as_posix())


def _as_it_is_named(path: str) -> str:
    if os.path.lexists(path):
        return path
    composed = unicodedata.normalize("NFC", path)
    others = (composed, unicodedata.normalize("NFD", path), _CLOCK.sub("\u202f\\1", composed))
    return next((other for other in others if os.path.lexists(other)), path)
