"""The person's own editor, in a window of its own: found, and opened on a file of a session."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath

from msgspec import Struct

from treadle.protocol.errors import ConfigError
from treadle.workspace.commands.variables import path_outside

_WINDOWED = {
    "code": ("VS Code", ()),
    "code-insiders": ("VS Code", ()),
    "codium": ("VSCodium", ()),
    "cursor": ("Cursor", ()),
    "windsurf": ("Windsurf", ()),
    "zed": ("Zed", ()),
    "subl": ("Sublime Text", ()),
    "idea": ("IntelliJ IDEA", ()),
    "pycharm": ("PyCharm", ()),
    "webstorm": ("WebStorm", ()),
    "goland": ("GoLand", ()),
    "mate": ("TextMate", ()),
    "kate": ("Kate", ()),
    "gnome-text-editor": ("Text Editor", ()),
    "gedit": ("gedit", ()),
    "gvim": ("gVim", ()),
    "emacsclient": ("Emacs", ("--no-wait",)),
}
"""Editors that open a window, by their command: the name, and what has the command end at once. As of 2026-11."""

_SEEN_TO = 2.0
"""Seconds in which an editor that cannot open says so."""


class OwnEditor(Struct, frozen=True):
    """An editor: its name, and the command to which the file is added."""

    name: str
    command: tuple[str, ...]

    def open(self, path: Path) -> None:
        """Open a file; raises `ConfigError` where the editor does not start, or ends with an error at once."""
        try:
            process = subprocess.Popen(
                [*self.command, str(path)],
                cwd=path.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as e:
            raise self._failed(str(e)) from e
        try:
            status = process.wait(_SEEN_TO)
        except subprocess.TimeoutExpired:
            return
        if status:
            raise self._failed(f"{shlex.join(self.command)} ended with status {status}.")

    def _failed(self, why: str) -> ConfigError:
        return ConfigError(
            "editor", f"{self.name} did not open the file.", why=why, fix="Set VISUAL to another editor."
        )


def own_editor(environ: Mapping[str, str], workspace: Path) -> OwnEditor | None:
    """Find the editor to open files in: that of VISUAL or EDITOR where it opens a window, else the first installed.

    None without a screen. Programs in the workspace are passed over: the model could have written them.
    """
    screen = sys.platform in ("darwin", "win32") or any(environ.get(one) for one in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not screen and environ.get("TERM_PROGRAM") != "vscode":  # whose `code` reaches the window from afar
        return None
    wanted = [shlex.split(environ.get(name, "")) for name in ("VISUAL", "EDITOR")]
    for command in (*wanted, *([name] for name in _WINDOWED)):
        name, more = _WINDOWED.get(PurePath(command[0]).name if command else "", ("", ()))
        found = name and shutil.which(command[0], path=path_outside(environ.get("PATH", os.defpath), str(workspace)))
        if found and not Path(found).resolve().is_relative_to(workspace):
            return OwnEditor(name, (found, *command[1:], *more))
    return None
