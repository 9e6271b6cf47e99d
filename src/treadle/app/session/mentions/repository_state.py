"""Which branch a trusted workspace is on and what is changed in it, as git says it without running anything else."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from treadle.workspace.commands.variables import HARDENED_GIT, child_variables, find_outside
from treadle.workspace.files.text import visible
from treadle.workspace.situation import repository_line

_SECONDS = 2.0
_STATUS = (
    *("-c", "color.status=false", "-c", "status.relativePaths=true", "-c", "core.quotePath=false"),
    *("status", "--short", "--branch", "--ignore-submodules=all", "--untracked-files=normal", "--", "."),
)
_NO_COMMITS = "No commits yet on "
_HOOK = "the hook "
_SWITCHED_OFF = frozenset({"the setting core.hookspath"})
"""Hooks are switched off for git here (`HARDENED_GIT`), wherever the repository says that they are."""


def describe_repository(root: str) -> str:
    """Say in a line how the repository around `root` stands; empty where there is none, or where git is not to run.

    Only for a folder that is trusted. Git does not run where the repository's own settings could make it run something.
    Takes two seconds at most; to be called in a thread.
    """
    said = ask_git(root, _STATUS, seconds=_SECONDS)
    if said is None:
        return ""
    head, *files = said.decode(errors="replace").splitlines() or [""]
    return repository_line(_branch(head.removeprefix("## ")), [line[3:] for line in files])


def programs_of_git(root: str) -> list[str]:
    """List what could make git run a program of the repository around `root` though its hooks are switched off."""
    from treadle.app.security.file_view import DiskView
    from treadle.policy.repository import surprising_settings

    found = surprising_settings(root, DiskView())
    return [one for one in found if not one.startswith(_HOOK) and one.lower() not in _SWITCHED_OFF]


def ask_git(root: str, arguments: Sequence[str], *, seconds: float) -> bytes | None:
    """Give what git prints for the repository around `root`; None where there is none, and where git is not to run.

    Only for a folder that is trusted, and for what only reads. To be called in a thread.
    """
    try:
        status, said = git_answer(root, arguments, seconds=seconds) or (None, b"")
    except subprocess.TimeoutExpired:
        return None
    return said if status == 0 else None


def in_repository(root: str) -> bool:
    """Whether a folder, or one above it, has the data of a repository."""
    return any(os.path.lexists(folder / ".git") for folder in (Path(root), *Path(root).parents))


def git_answer(root: str, arguments: Sequence[str], *, seconds: float) -> tuple[int, bytes] | None:
    """Give the exit status of git and what it prints, as `ask_git` does; None where it is not to run.

    Raises `subprocess.TimeoutExpired`.
    """
    if not any(os.path.lexists(folder / ".git") for folder in (Path(root), *Path(root).parents)):
        return None
    git = find_outside("git", root)
    if not git or programs_of_git(root):
        return None
    try:
        shown = subprocess.run(
            (git, *arguments),
            cwd=root,
            env={**child_variables(os.environ), **HARDENED_GIT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except OSError:
        return None
    return shown.returncode, shown.stdout


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


def _branch(head: str) -> str:
    """Read the first line of git's answer, such as `main...origin/main [ahead 1]`."""
    if head.startswith("HEAD (no branch)"):
        return "no branch"
    new = head.startswith(_NO_COMMITS)
    name = visible(head.removeprefix(_NO_COMMITS).split("...")[0].split(" ")[0])
    return f"branch {name}, no commits yet" if new else f"branch {name}"
