"""The steps of a rebase that is open: git goes on with them later, and some run programs."""

import re

OPEN_STEPS = "rebase-merge/git-rebase-todo"
"""Where a repository, or a linked worktree, keeps them in its own data."""

_RUNS = re.compile(r"^\s*(x|exec)\b", re.MULTILINE)


def run_programs(steps: str | None) -> bool:
    """Whether such steps run programs; those that cannot be read (None) may."""
    return steps is None or _RUNS.search(steps) is not None
