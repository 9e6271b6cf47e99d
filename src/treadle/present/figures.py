"""How many lines are added and removed: by a diff, and by a turn."""

import posixpath
from collections.abc import Iterable, Sequence

from treadle.present.escape import exact_line
from treadle.present.words import counted
from treadle.protocol.checkpoints import MOST_NAMED
from treadle.protocol.notifications import TurnOutcome
from treadle.protocol.tools import FileChange

_NAMED = 3
"""Files that no checkpoint holds which a line names."""


def diff_figures(diff: str) -> tuple[int, int]:
    """Count the lines that a diff adds and removes."""
    lines = [line for line in diff.split("\n") if not line.startswith(("+++ ", "--- "))]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def shown_figures(added: int, removed: int) -> str:
    """Show how many lines are added and removed: `+3 -1`."""
    return f"+{added} -{removed}"


def turn_figures(outcome: TurnOutcome) -> tuple[str, tuple[int, int]]:
    """Count the files that a turn changed, and the lines added and removed. What may not be all is `at least`."""
    files = f"{'' if outcome.exact else 'at least '}{counted(len(outcome.changes), 'file')}"
    return files, (sum(one.added for one in outcome.changes), sum(one.removed for one in outcome.changes))


def path_order(path: str) -> list[str]:
    """Give what each list of files is sorted by: by name, folder by folder, as the trees of checkpoints are."""
    return path.split("/")


def by_name(changes: Iterable[FileChange]) -> list[FileChange]:
    """Put changed files in the order in which each list has them."""
    return sorted(changes, key=lambda change: path_order(change.path))


def unlisted_words(outcome: TurnOutcome) -> str:
    """Say why a turn may have changed more files than are listed; empty where these are all."""
    if outcome.exact or not outcome.changes:
        return ""
    if len(outcome.changes) >= MOST_NAMED:
        return f"a turn lists {MOST_NAMED:,} files at most, and `treadle checkpoint list` counts all of them"
    return "no checkpoint shows what else commands changed"


def restored_since(files: int, in_part: int) -> str:
    """Say of how many files nothing is left that a turn changed, and of how many only a part; empty for none."""
    if not files:
        return f"{counted(in_part, 'file')} restored in part since" if in_part else ""
    return f"{counted(files, 'file')} restored since{f', and {in_part:,} in part' if in_part else ''}"


def unseen_words(unseen: Sequence[str]) -> str:
    """Say which files changed that no checkpoint holds; empty for none."""
    if not unseen:
        return ""
    names = [exact_line(posixpath.basename(one)) for one in unseen[:_NAMED]]
    more = f" and {counted(len(unseen) - _NAMED, 'other file')}" if len(unseen) > _NAMED else ""
    return f"no checkpoint holds {', '.join(names)}{more}, which changed"


def changed_lines(outcome: TurnOutcome) -> str:
    """Sum up the files that a turn changed: `2 files +12 -3`; empty for none."""
    if not outcome.changes:
        return ""
    files, figures = turn_figures(outcome)
    return f"{files} {shown_figures(*figures)}"
