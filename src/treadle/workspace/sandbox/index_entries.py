"""Entries of git's index under the names of control files that are no file of the workspace: taken out after a command.

Git makes a file of such an entry when somebody restores the files of the workspace, and commits it with all others.
"""

from collections.abc import Iterator
from functools import partial

from treadle.workspace.sandbox.reading_git import AskGit
from treadle.workspace.sandbox.survey import PathFilter
from treadle.workspace.sandbox.switching import staged_only


class IndexEntries:
    """Knows which there were before a command; those stay. `reset` runs a git that may change the index alone.

    `is_new` says of a file whether it may be of a command that has not ended: it does not stay.
    """

    def __init__(
        self, ask: AskGit, reset: AskGit, *, is_held: PathFilter, is_new: PathFilter = lambda _: False
    ) -> None:
        self._staged = partial(staged_only, ask, is_held, is_new)
        self._reset = reset
        self._before = frozenset(self._staged())

    def take_out(self) -> Iterator[str]:
        """Give the new ones the text of the last commit; gives a sentence for each. Raises `ToolError`."""
        new = [name for name in self._staged() if name not in self._before]
        if new:
            self._reset("--literal-pathspecs", "reset", "-q", "--", *new)
        left = self._staged() if new else ()
        for name in new:
            ending = "It is still there: `git reset` takes it out." if name in left else "It was taken out again."
            yield f"{name} came into git's index, and no file of the workspace is the same. {ending}"
