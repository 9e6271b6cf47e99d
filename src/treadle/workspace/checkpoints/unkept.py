"""What may be lost for good if a path is deleted: checkpoints hold what git ignores up to a bound, no repository."""

import os
import stat
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from treadle.workspace.checkpoints.trees import LARGEST_KEPT
from treadle.workspace.copies.caches import CACHES, git_ignores, in_output
from treadle.workspace.files.paths import Listed, list_folder

_MOST = 5_000
"""Entries that are looked at; beyond them it is not known what there is."""
_GIT = b".git"


class Unkept:
    """Looks at the disk for what the checkpoints of some folders would not bring back."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._named = roots
        self._ignores: dict[str, Callable[[bytes, bool], bool]] = {}

    @cached_property
    def _roots(self) -> list[str]:
        return [os.path.realpath(root) for root in self._named]

    def __call__(self, path: str) -> bool:
        """Whether something at a path, or below it, would be lost; also where that cannot be told."""
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return True
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))  # noqa: PTH118, PTH119, PTH120
        root = next((root for root in self._roots if place.startswith(f"{root}/")), "")
        if not root:
            return True
        if root not in self._ignores:
            self._ignores[root] = git_ignores(root)
        return self._loses(root, place, is_folder=stat.S_ISDIR(found.st_mode))

    def by_overwriting(self, path: str) -> bool:
        """Whether what a file holds would be lost if it were written anew: it is too large, and no build makes it."""
        place = os.path.realpath(path)
        root = next((root for root in self._roots if place.startswith(f"{root}/")), "")
        try:
            found = Path(place).stat()
        except (OSError, ValueError):
            return False
        if not root or not stat.S_ISREG(found.st_mode) or found.st_size <= LARGEST_KEPT:
            return False
        name = os.fsencode(place[len(root) + 1 :])
        return not in_output(name + b"/") and _CACHE_NAMES.isdisjoint(name.split(b"/"))

    def _loses(self, root: str, place: str, *, is_folder: bool) -> bool:
        ignores = self._ignores[root]
        todo, looked = [(place, is_folder)], 0
        while todo:
            path, is_folder = todo.pop()
            name = os.fsencode(path[len(root) + 1 :])
            parts = name.split(b"/")
            if _GIT in parts:
                return True
            if in_output(name + b"/") or not _CACHE_NAMES.isdisjoint(parts):
                continue
            if not is_folder:
                if ignores(name, False) or _is_large(path):
                    return True
                continue
            listed = list_folder(path)
            if not isinstance(listed, Listed):
                return True
            looked += len(listed.entries)
            if looked > _MOST:
                return True
            todo += [(f"{path}/{entry.name}", entry.is_folder) for entry in listed.entries]
        return False


def _is_large(path: str) -> bool:
    try:
        return os.lstat(path).st_size > LARGEST_KEPT
    except OSError:
        return True


_CACHE_NAMES = frozenset(map(os.fsencode, CACHES))
