"""execute_command: a shell line in the workspace."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Prepared
from treadle.policy.urls import check_url
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ToolSpec
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.tools.running import Patience, access, prepared_run, preview, run_line
from treadle.workspace.files.text import visible
from treadle.workspace.workspace import Workspace

_LONGEST_REASON, _MOST_NEEDS = 300, 8
_PATIENCE = Patience(120, keep=True)
_BACKGROUND = Patience(1, keep=True, background=True)


class ExecuteCommand(Struct, frozen=True):
    """Runs commands in the workspace."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return EXECUTE_COMMAND

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the line; nothing is looked up before it was judged."""
        line: str = arguments["command"]
        if not line.strip():
            raise ToolError("The command is empty. Give the shell line to run.", invalid=True)
        patience = _patience(arguments)
        named = access(self.workspace, line, patience)
        named = replace(
            named,
            cwd=self._folder(arguments.get("cwd", "")),
            needs=tuple(map(_need, arguments.get("needs", ())[:_MOST_NEEDS])),
            reason=" ".join(arguments.get("reason", "").split())[:_LONGEST_REASON],
        )
        run = partial(run_line, self.workspace, line, patience, cwd=named.cwd)
        return prepared_run(named, preview(line), run)

    def _folder(self, named: str) -> str:
        """Give the folder that a line is to run in, resolved. Raises `ToolError` for none of the workspace."""
        if not named:
            return self.workspace.root
        folder = os.path.realpath(Path(self.workspace.root, named))
        inside = any(folder == root or folder.startswith(f"{root}/") for root in self.workspace.folders)
        if not inside or not Path(folder).is_dir():
            why = "is not a folder" if inside else "is outside the workspace"
            raise ToolError(
                f"cwd {visible(named)} {why}. Give a folder of the workspace, or leave cwd out.", invalid=True
            )
        return folder


def _need(text: str) -> str:
    """Read one right that the model asks for. Raises `ToolError`."""
    kind, _, what = text.strip().partition(":")
    kind, what = kind.strip().lower(), what.strip()
    if (kind in ("git", "host") and not what) or (kind == "outside" and what.startswith("/")):
        return f"{kind}:{what}" if what else kind
    if kind == "network" and (not what or (check_url(f"https://{what}/").host and "/" not in what)):
        return f"{kind}:{what}" if what else kind
    raise ToolError(
        f"needs has {visible(text)!r}. Use network:HOST, outside:/ABSOLUTE/PATH, git or host.", invalid=True
    )


def _patience(arguments: Mapping[str, Any]) -> Patience:
    if arguments.get("background", False):
        return _BACKGROUND
    return Patience(arguments["timeout"]) if "timeout" in arguments else _PATIENCE
