"""The files and folders of a workspace that a person may want to name: what changed lately first, nothing hidden."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from treadle.app.session.repository_state import ask_git
from treadle.workspace.access_lists import AccessLists
from treadle.workspace.ignoring import Ignoring, ignore_files
from treadle.workspace.names import shown_name

_MOST = 200_000
_SECONDS = 10.0
_NEVER = frozenset({".git", "__pycache__"})
_GIT_LIST = ("ls-files", "-z", "-t", "--cached", "--others", "--deleted", "--exclude-standard", "--", ".")
_GONE = (b"R", b"S")
"""How git marks a file that it knows and that is not there."""

_LATELY = 7 * 24 * 3600.0
_FEW = 40
"""Files that are taken for changed one by one; more of one minute came together, such as by a checkout."""


def mentionable_paths(root: str, *, trusted: bool) -> tuple[str, ...]:
    """List files and folders below `root` (resolved) by their shown names, folders with a slash.

    Git says what there is where the folder is trusted; else, and where git is not to run, the folders are looked
    through, breadth first. Left out are what an ignore file hides and what an access list keeps from being read without
    a yes. Takes some seconds at most for any folder, and gives what it found until then. To be called in a thread.
    """
    end = time.monotonic() + _SECONDS
    said = ask_git(root, _GIT_LIST, seconds=_SECONDS) if trusted else None
    found = _walked(root, end) if said is None else _without_hidden(root, _of_git(said))
    lists = AccessLists((root,))
    files = [path for path in islice(found, _MOST) if not lists.reason(f"{root}/{path}")]
    folders = {f"{folder}/" for path in files for folder in _around(path)}
    files = [path for path in files if not path.endswith("/")]
    lately = _changed_lately(root, files, end)
    rest = sorted({*files, *folders}.difference(lately), key=lambda path: (path.count("/", 0, -1), path))
    return tuple(shown_name(path) for path in (*lately, *rest))


def _of_git(said: bytes) -> Iterator[str]:
    """Read what git lists; a repository in the repository is named as a folder."""
    tagged = [(entry[:1], entry[2:]) for entry in said.split(b"\0") if entry]
    gone = {name for tag, name in tagged if tag in _GONE}
    for name in dict.fromkeys(name for _, name in tagged):
        path = os.fsdecode(name)
        if name not in gone and not _NEVER.intersection(path.split("/")):
            yield path


def _without_hidden(root: str, paths: Iterator[str]) -> Iterator[str]:
    """Leave out what the ignore files of agents hide: git knows its own."""
    ignoring = Ignoring(root, root, ignore_files(root, git_is_known=True))
    files = list(islice(paths, _MOST))
    yield from ignoring.shown_of(files, {path.rpartition("/")[0] for path in files})


def _walked(root: str, end: float) -> Iterator[str]:
    """Look through the folders, those that are near first; links are not followed."""
    ignoring = Ignoring(root, root, ignore_files(root, git_is_known=False))
    waiting = deque([""])
    while waiting and time.monotonic() < end:
        place = waiting.popleft()
        files, folders = _entries(root, place)
        waiting.extend(f"{name}/" for name in folders if not ignoring.hides_directory(name))
        yield from ignoring.shown_of(files, (place.rstrip("/"),))


def _entries(root: str, place: str) -> tuple[list[str], list[str]]:
    """Give the files and the folders directly in a place; what cannot be read has none."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(f"{root}/{place}") as entries:
            for entry in entries:
                if entry.name not in _NEVER:
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(place + entry.name)
    except OSError:
        return [], []
    return files, sorted(folders)


def _around(path: str) -> Iterator[str]:
    """Give the folders that a path lies in; a path that ends with a slash is one itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _changed_lately(root: str, files: Iterable[str], end: float) -> Sequence[str]:
    """Give the files that were changed one by one in the last days, the last one first."""
    since = time.time() - _LATELY
    times = {path: changed for path, changed in _times(root, files, end) if changed > since}
    together = Counter(int(changed // 60) for changed in times.values())
    single = [path for path, changed in times.items() if together[int(changed // 60)] <= _FEW]
    return sorted(single, key=lambda path: -times[path])[:_FEW]


def _times(root: str, files: Iterable[str], end: float) -> Iterator[tuple[str, float]]:
    look: Callable[[str], os.stat_result] = os.lstat
    for number, path in enumerate(files):
        if not number % 1_000 and time.monotonic() > end:
            return
        try:
            yield path, look(f"{root}/{path}").st_mtime
        except OSError:
            continue
