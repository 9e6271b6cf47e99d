"""The repository of a workspace that commands do not see, since it lies elsewhere in the hidden home directory."""

import os
from collections.abc import Sequence
from pathlib import Path

from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.usual import repositories_of

_NO_REPOSITORY = "not a git repository"


def unseen_repository(root: str, hidden: Sequence[str], output: str) -> tuple[str, ...]:
    """Say why git found no repository, where the output says so and there is one; looks at the disk then."""
    if _NO_REPOSITORY not in output or any(repositories_of(root)):
        return ()
    at = next((folder for folder in (root, *map(str, Path(root).parents)) if os.path.lexists(f"{folder}/.git")), "")
    lies = at if at != root else _led_to(root)
    if not lies or not any(is_within(lies, folder) for folder in hidden):
        return ()
    where = f"in {lies}" if at != root else f"{lies}, to which {root}/.git leads"
    start = f"Tell the user to start Treadle in {at}, or ask" if at != root else "Ask"
    why = f"The repository of this folder is {where}: outside of the workspace, so commands do not see it."
    return (f'{why} {start} with needs: ["host"] for a run of git without the sandbox.',)


def _led_to(root: str) -> str:
    """Give the folder that `.git`, a link or a file, leads to; empty where it cannot be read."""
    at = Path(root, ".git")
    try:
        return str(at.resolve() if at.is_symlink() else Path(root, at.read_text().removeprefix("gitdir:").strip()))
    except (OSError, ValueError):
        return ""
