"""What the ignore files of a workspace hide, in every directory, as nested `.gitignore` files would."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from treadle.workspace.ignore.ignore_patterns import Patterns

ACCESS_FILES = (".treadleignore", ".agentignore", ".clineignore")
"""Files whose patterns say what is not listed and not searched, and not read or changed without a yes.

In one directory they count as one, in this order.
"""

OWN_IGNORE_FILES = (*ACCESS_FILES, ".aiderignore")
"""Files of agents whose patterns say what is not listed and not searched."""

_GIT = (".gitignore",)
_LARGEST = 1024 * 1024
_REMEMBERED = 20_000
_UTF8_MARK = "\ufeff"

_Rules: TypeAlias = "tuple[tuple[str, Patterns], ...]"
"""The patterns that count in a directory, with where they stand (empty or ended by a slash); the outermost first."""


def ignore_files(base: str, *, git_is_known: bool) -> tuple[tuple[str, ...], ...]:
    """Name the ignore files that are to be read in `base`: git's too, unless the program that lists reads them.

    Such a program (`git_is_known`) reads them in a checkout only.
    """
    in_checkout = any(os.path.lexists(parent / ".git") for parent in (Path(base), *Path(base).parents))
    own = (ACCESS_FILES, (".aiderignore",))
    return own if git_is_known and in_checkout else (*own, _GIT)


def access_files(root: str) -> list[str]:
    """Name the ignore files for agents that lie directly in a folder."""
    return [name for name in ACCESS_FILES if Path(root, name).is_file()]


class Ignoring:
    """The ignore files in `base` and below, seen from the directory `shown` in it.

    `families` are names of files; of each family a path is hidden as git would by files that hold the same patterns,
    and one is enough. What lies directly on the way to `shown` is not asked about: what is named is shown. Paths are
    relative to `shown`. Memory does not grow with the tree. Looks at the disk.
    """

    def __init__(self, base: str, shown: str, families: Sequence[Sequence[str]]) -> None:
        below = os.path.relpath(shown, base)
        self.shown = shown
        self._base = base
        self._families = families
        self._above = "" if below == "." else f"{below}/"
        rules: Callable[[Callable[[str], tuple[_Rules, ...]]], Callable[[str], tuple[_Rules, ...]]]
        rules = lru_cache(_REMEMBERED)
        self._rules_in = rules(self._read_rules)
        hidden: Callable[[Callable[[str], bool]], Callable[[str], bool]] = lru_cache(_REMEMBERED)
        self._is_hidden = hidden(self._decide)
        for each in accumulate(self._above.split("/")[:-1], "{}/{}".format):
            self._rules_in(each)

    def hides_directory(self, path: str) -> bool:
        """Whether a directory is hidden, or one that it lies in; `shown` itself, by an empty path, never is."""
        if not path:
            return False
        # From the top, so that each directory finds what holds above it known, however deep it lies.
        return any(self._is_hidden(each) for each in accumulate(path.split("/"), "{}/{}".format))

    def hides_file(self, path: str) -> bool:
        """Whether a file is hidden, or a directory that it lies in."""
        return self.hides_directory(path.rpartition("/")[0]) or self._matches(path, is_directory=False)

    def shown_of(self, files: Sequence[str], directories: Iterable[str]) -> Iterable[str]:
        """Choose the files that are not hidden; `directories` are those that they lie in."""
        if not any(any(self._rules_in((self._above + each).removesuffix("/"))) for each in directories):
            return files  # nearly always, and many times as fast
        return (file for file in files if not self.hides_file(file))

    def hidden_at_top(self) -> Iterator[str]:
        """Give the names of hidden directories that lie directly in `shown`."""
        if not any(self._rules_in(self._above.removesuffix("/"))):
            return
        try:
            with os.scandir(f"{self._base}/{self._above}") as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        yield from filter(self.hides_directory, names)

    def _decide(self, directory: str) -> bool:
        return self._matches(directory, is_directory=True)

    def _matches(self, path: str, *, is_directory: bool) -> bool:
        full = self._above + path
        return any(
            _has_last_word(rules, full, is_directory=is_directory) for rules in self._rules_in(full.rpartition("/")[0])
        )

    def _read_rules(self, directory: str) -> tuple[_Rules, ...]:
        """Collect the rules of each family for a directory, by its path from the base."""
        outer = self._rules_in(directory.rpartition("/")[0]) if directory else tuple(() for _ in self._families)
        place = f"{directory}/" if directory else ""
        return tuple(
            (*rules, (place, patterns)) if (patterns := self._read(place, names)) else rules
            for rules, names in zip(outer, self._families, strict=True)
        )

    def _read(self, place: str, names: Sequence[str]) -> "Patterns | None":
        lines = [line for name in names for line in _lines(f"{self._base}/{place}{name}")]
        if not lines:
            return None
        from treadle.workspace.ignore.ignore_patterns import Patterns

        return Patterns(lines)


def _has_last_word(rules: _Rules, path: str, *, is_directory: bool) -> bool:
    for place, patterns in reversed(rules):
        found = patterns.hides(path[len(place) :].split("/"), is_directory=is_directory)
        if found is not None:
            return found
    return False


def _lines(path: str) -> list[str]:
    """Read an ignore file; one that is missing, no regular file or too large has no lines."""
    if not os.access(path, os.R_OK):
        return []
    try:
        file = Path(path)
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return []
        return file.read_bytes().decode(errors="surrogateescape").removeprefix(_UTF8_MARK).split("\n")
    except OSError:
        return []
