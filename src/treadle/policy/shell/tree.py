"""The files below a directory as they are now, as far as a few thousand of them show it."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from treadle.policy.context import MAX_NAMES, FileKind
from treadle.policy.gitindex import tracked_names
from treadle.policy.operations import PathOp
from treadle.policy.paths import all_inside
from treadle.policy.shell.scene import Scene

MAX_ENTRIES = 3000
"""As many files are looked at; where there are more, nothing is said about any."""

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+,-]*")


MAX_READ = 800
"""As many files may be read by one command; each is looked up."""

_PLAIN_BEFORE_NUL = re.compile(r"[A-Za-z0-9_./][^=]*", re.DOTALL)


class TreeTooLargeError(Exception):
    """There are more files than are looked at."""


def files_below(start: str, scene: Scene, leaves_out: Callable[[str], bool]) -> Iterator[str]:
    """Give what is below `start` as it would be printed, folders too; `.git` and what is left out are not entered.

    Links are not followed, but for `start` itself. Raises `TreeTooLargeError`.
    """
    files = scene.context.files
    pending = [start]
    while pending:
        shown = pending.pop()
        path = posixpath.join(scene.cwd, shown)
        is_left_out = shown != start and leaves_out(shown)
        facts = None if is_left_out else files.facts(files.resolve(path) if shown == start else path)
        if facts is not None and facts.kind is FileKind.DIRECTORY:
            names = files.names(path)
            _spend(scene, len(names))
            if len(names) >= MAX_NAMES:
                raise TreeTooLargeError
            pending.extend(posixpath.join(shown, name) for name in names if name != ".git")
        yield shown


def _spend(scene: Scene, count: int) -> None:
    scene.effort.files -= count
    if count > MAX_ENTRIES or scene.effort.files < 0:
        raise TreeTooLargeError


def tracked_below(scene: Scene) -> list[str] | None:
    """List what is tracked below the directory, as paths from there; None where that cannot be told."""
    folder, cwd, files = scene.cwd, scene.cwd, scene.context.files
    while files.facts(posixpath.join(folder, ".git")) is None:
        if folder == posixpath.dirname(folder):
            return []
        folder = posixpath.dirname(folder)
    git = posixpath.join(folder, ".git")
    facts = files.facts(git)
    index = files.read_index(posixpath.join(git, "index"))
    if facts is None or facts.kind is not FileKind.DIRECTORY or index is None:
        return None
    names = tracked_names(index, MAX_ENTRIES)
    _spend(scene, len(names or ()))
    inner = "" if folder == cwd else posixpath.relpath(cwd, folder) + "/"
    return None if names is None else [name[len(inner) :] for name in names if name.startswith(inner)]


def are_plain(names: Sequence[str], *, ends_in_nul: bool = False) -> bool:
    """Whether no name falls apart, is quoted, or could be taken for an option or anything else but a file."""
    plain = _PLAIN_BEFORE_NUL if ends_in_nul else _PLAIN
    return all(plain.fullmatch(name) for name in names)


def may_be_read(names: Sequence[str], scene: Scene) -> bool:
    """Whether every name leads to a file of the workspace that is not protected."""
    scene.effort.files -= len(names)
    return len(names) <= MAX_READ and all_inside(names, PathOp.READ, scene.cwd, scene.context)
