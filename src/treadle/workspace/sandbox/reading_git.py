"""Asking git of a repository, so confined and hardened that it runs nothing of it, and changes only what it is to."""

import os
import subprocess
from collections.abc import Callable, Sequence

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.variables import HARDENED_GIT, child_variables, find_outside, path_outside
from treadle.workspace.commands.wrapping import SANDBOXES, TIMES_AGAIN
from treadle.workspace.sandbox.backend import probe
from treadle.workspace.sandbox.profile import Profile
from treadle.workspace.sandbox.usual import repositories_of
from treadle.workspace.sandbox.wrap import prepare

_PATIENCE = 10.0  # seconds; git answers within some ten milliseconds

_NOT_STARTED = (126, 127)

_FATAL = 128
_SAID_NO = ("no upstream", "not a git repository", "does not point to a branch", "no such branch")
"""What git answers with the status of a failure, though it is an answer about a revision."""

AskGit = Callable[..., bytes | None]
"""Takes the words of a git command that only reads. Gives what it prints; None where it fails. Raises `ToolError`."""


class GitReader:
    """Asks git of the repository around `root`; `private` is a folder for what the sandbox needs.

    One that `writes` may change what is in `root`, and the repository.
    """

    def __init__(self, root: str, private: str, *, writes: bool = False) -> None:
        self._root = root
        self._private = private
        self._writes = writes

    def __call__(self, *words: str) -> bytes | None:
        """Run git; gives None where it fails. Raises `ToolError` where it cannot be confined, or does not answer."""
        root = os.path.realpath(self._root)
        done = self._run(root, words)
        said = done.stderr.decode(errors="replace").strip()
        failed = words[0] == "rev-parse" and done.returncode == _FATAL and not any(map(said.__contains__, _SAID_NO))
        if failed or done.returncode < 0 or done.returncode in _NOT_STARTED or said.startswith(SANDBOXES):
            # Git has said nothing: that there is no such commit, say, is something else.
            raise _unanswered(root, said or f"status {done.returncode}")
        return done.stdout if done.returncode == 0 else None

    def _run(
        self, root: str, words: Sequence[str], *, again: int = TIMES_AGAIN
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run git to its end; `again` so often where its sandbox was not set up."""
        repositories = tuple(repositories_of(root))
        profile = Profile(
            root=root,
            change_root=self._writes,
            readable=() if self._writes else repositories,
            writable=repositories if self._writes else (),
            tmp=f"{self._private}/git",
            private=self._private,
        )
        environment = {**child_variables(os.environ), **HARDENED_GIT}
        environment["LC_ALL"] = "C"
        environment["PATH"] = path_outside(environment.get("PATH", os.defpath), root)
        wrapping = prepare(profile, probe())
        try:
            done = subprocess.run(
                wrapping.around((find_outside("git", root), "-C", root, *words)),
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unanswered(root, str(error)) from error
        if again and done.returncode and wrapping.lacks_place(done.stderr.decode(errors="replace")):
            return self._run(root, words, again=again - 1)
        return done


def _unanswered(root: str, why: str) -> ToolError:
    return ToolError(f"Git did not say what is in {root} ({why}). Try again, or tell the user.")
