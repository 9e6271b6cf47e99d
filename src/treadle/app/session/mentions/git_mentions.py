"""The changes of a working tree, and a commit, as git tells them: only of files that may be read without asking."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from treadle.app.session.mentions.enclosing import NotEnclosedError, head_and_tail
from treadle.app.session.mentions.repository_state import ask_git
from treadle.protocol.patterns import regex
from treadle.workspace.commands.variables import EMPTY_TREE
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.text import visible

_SECONDS = 10.0
_MOST_FILES = 200
_MOST_LINES = 5_000
"""Changed lines of one file: of one that has more only the counts are shown, such as a lock file."""

_MOST_LISTED = 50
_HASH = regex(r"[0-9a-fA-F]{7,64}")
PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--relative")
"""With these git shows a diff without running a program of the repository."""

_NO_GIT = "git does not run here: there is no repository, or its settings could run a program."

Readable = Callable[[str], str]
"""Says why a path (absolute) may not be read without asking; empty where it may."""


def last_commit(ask: Callable[..., str | None]) -> str | None:
    """Name what changes that are not committed are since: HEAD, or the empty tree before the first commit.

    None where git does not say.
    """
    head = ask("rev-parse", "--revs-only", "HEAD")
    return None if head is None else "HEAD" if head.strip() else EMPTY_TREE


class Repository(Struct, frozen=True, kw_only=True):
    """The repository around a workspace. All of it takes some seconds at most, and is to be called in a thread."""

    root: str
    why_not: Readable

    def changes(self, room: int, *, renames: bool = False) -> str:
        """Show what is not committed, in at most `room` bytes, files with another name as such if `renames`.

        Raises `NotEnclosedError`.
        """
        base = last_commit(self._ask)
        if base is None:
            raise NotEnclosedError(_NO_GIT)
        counted = self._ask("diff", *PLAIN_DIFF, "--numstat", "-z", base, "--", ".")
        new = self._ask("ls-files", "-z", "--others", "--exclude-standard", "--", ".")
        if counted is None or new is None:
            raise NotEnclosedError(_NO_GIT)
        files = list(counted_changes(counted))
        untracked = [path for path in new.split("\0") if path]
        if not files and not untracked:
            return "There is nothing to commit: the working tree has no changes."
        listed = [f"new: {shown_name(path)}" for path in untracked[:_MOST_LISTED]]
        if len(untracked) > _MOST_LISTED:
            listed.append(f"new: {len(untracked) - _MOST_LISTED:,} more files")
        how = (*PLAIN_DIFF, *(("--find-renames",) if renames else ()))
        text = self._told(files, ("diff", *how, base, "--"))
        return head_and_tail("\n".join(filter(None, [*listed, text])), room, "`git diff` shows all of it")

    def commit(self, name: str, room: int) -> str:
        """Show a commit; empty for what is no hash of one. Raises `NotEnclosedError`."""
        if not _HASH.fullmatch(name):
            return ""
        found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if not found:
            return ""
        commit = found.strip()
        head = self._ask("show", "--no-patch", "--format=commit %H%nAuthor: %an%nDate: %aI%n%n%B", commit)
        of_first = ("show", "--format=", "--first-parent", *PLAIN_DIFF)
        counted = self._ask(*of_first, "--numstat", "-z", commit, "--", ".")
        if head is None or counted is None:
            raise NotEnclosedError(_NO_GIT)
        text = self._told(list(counted_changes(counted)), (*of_first, commit, "--"))
        return head_and_tail(f"{visible(head.strip())}\n\n{text}", room, f"`git show {commit[:12]}` shows all of it")

    def _told(self, files: Sequence[tuple[str, int, str]], show: Sequence[str]) -> str:
        """List the files, then show the changes of those that may be read."""
        rows, wanted = [], []
        for path, lines, counts in files[:_MOST_FILES]:
            why = self.why_not(f"{self.root}/{path}")
            if not why and lines <= _MOST_LINES:
                wanted.append(f":(literal){path}")
            note = f" [not shown: {why}]" if why else " [too long to show]" if lines > _MOST_LINES else ""
            rows.append(f"{shown_name(path)} ({counts}){note}")
        if len(files) > _MOST_FILES:
            rows.append(f"[{len(files) - _MOST_FILES:,} more files]")
        diff = self._ask(*show, *wanted) if wanted else ""
        return "\n".join([*rows, "", visible(diff or "").rstrip()]).rstrip()

    def _ask(self, *arguments: str) -> str | None:
        said = ask_git(self.root, arguments, seconds=_SECONDS)
        return None if said is None else said.decode(errors="surrogateescape")


def counted_changes(numstat: str) -> Iterator[tuple[str, int, str]]:
    """Read `git diff --numstat -z`: the path, how many lines changed, and that in words."""
    for entry in numstat.split("\0"):
        added, _, rest = entry.strip("\n").partition("\t")
        removed, _, path = rest.partition("\t")
        if not path:
            continue
        if added.isdigit() and removed.isdigit():
            yield path, int(added) + int(removed), f"+{added} -{removed}"
        else:
            yield path, 0, "binary"
