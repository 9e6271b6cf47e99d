"""Asking git of a repository, so confined and hardened that it changes nothing and runs nothing of the repository."""

import os
import subprocess
from collections.abc import Callable

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.variables import HARDENED_GIT, child_variables, find_outside, path_outside
from treadle.workspace.sandbox.backend import probe
from treadle.workspace.sandbox.profile import Profile
from treadle.workspace.sandbox.usual import repositories_of
from treadle.workspace.sandbox.wrap import prepare

_PATIENCE = 10.0  # seconds; git answers within some ten milliseconds

AskGit = Callable[..., bytes | None]
"""Takes the words of a git command that only reads. Gives what it prints; None where it fails. Raises `ToolError`."""


class GitReader:
    """Asks git of the repository around `root`; `private` is a folder for what the sandbox needs."""

    def __init__(self, root: str, private: str) -> None:
        self._root = root
        self._private = private

    def __call__(self, *words: str) -> bytes | None:
        """Run git; gives None where it fails. Raises `ToolError` where it cannot be confined, or does not answer."""
        root = os.path.realpath(self._root)
        profile = Profile(
            root=root,
            change_root=False,
            readable=tuple(repositories_of(root)),
            tmp=f"{self._private}/git",
            private=self._private,
        )
        environment = {**child_variables(os.environ), **HARDENED_GIT}
        environment["PATH"] = path_outside(environment.get("PATH", os.defpath), root)
        try:
            done = subprocess.run(
                prepare(profile, probe()).around((find_outside("git", root), "-C", root, *words)),
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolError(f"Git did not say what is in {root} ({error}). Try again, or tell the user.") from error
        return done.stdout if done.returncode == 0 else None
