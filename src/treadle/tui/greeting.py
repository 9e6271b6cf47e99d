"""The first lines of a session: version, model, mode, folders and branch."""

from pathlib import Path

from treadle import __version__
from treadle.app.session.live import LiveSession
from treadle.tui.items import Greeting
from treadle.tui.view import View


def greeting(live: LiveSession, view: View, branch: str) -> Greeting:
    """Say what the session begins with."""
    folders = [short_path(str(folder)) for folder in (live.workspace, *live.roots)]
    return Greeting(__version__, view.model, view.mode, ", ".join(folders), branch)


def branch_of(folder: Path) -> str:
    """Read the name of the checked-out branch; empty where there is none."""
    try:
        git = folder / ".git"
        if git.is_file():
            git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
    return head.removeprefix("ref: refs/heads/")[:60] if head.startswith("ref: ") else head[:7]


def short_path(folder: str) -> str:
    """Write a path as people do: `~` for the home directory."""
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder
