"""The files and folders of a workspace that a person may want to name: what changed lately first, nothing hidden."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from treadle.app.session.mentions.repository_state import ask_git
from treadle.workspace.files.names import shown_name
from treadle.workspace.ignore.access_lists import AccessLists
from treadle.workspace.ignore.ignoring import Ignoring, ignore_files

_MOST = 200_000
_SECONDS = 10.0
_NEVER = frozenset({".git", "__pycache__"})
_GIT_LIST = ("ls-files", "-z", "-t", "--cached", "--others", "--deleted", "--exclude-standard", "--", ".")
_GONE = ("R", "S")
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
    files = _unlisted(root, islice(found, _MOST))
    folders = {f"{around}/" for folder in set(map(_folder, files)) for around in _around(folder)}
    files = [path for path in files if not path.endswith("/")]
    lately = _changed_lately(root, files, end)
    rest = sorted({*files, *folders}.difference(lately), key=_depth_and_name)
    return tuple(shown_name(path) for path in (*lately, *rest))


def _of_git(said: bytes) -> Iterator[str]:
    """Read what git lists; a repository in the repository is named as a folder."""
    entries = os.fsdecode(said).split("\0")
    gone = {entry[2:] for entry in entries if entry.startswith(_GONE)}
    for path in dict.fromkeys(entry[2:] for entry in entries if entry):
        if path not in gone and not (any(name in path for name in _NEVER) and _NEVER.intersection(path.split("/"))):
            yield path


def _unlisted(root: str, paths: Iterable[str]) -> list[str]:
    """Leave out what an access list keeps from being read; in most folders nothing is listed."""
    lists = AccessLists((root,))
    silent: dict[str, bool] = {}
    kept: list[str] = []
    for path in paths:
        folder = _folder(path)
        if folder not in silent:
            silent[folder] = lists.silent_in(f"{root}/{folder}".rstrip("/"))
        if silent[folder] or not lists.reason(f"{root}/{path}"):
            kept.append(path)
    return kept


def _depth_and_name(path: str) -> str:
    """Give what to sort by: what lies higher comes first. One text is compared much quicker than a pair."""
    return chr(path.count("/", 0, -1)) + path


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


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


def _around(folder: str) -> Iterator[str]:
    """Give a folder, and those that it lies in."""
    while folder:
        yield folder
        folder = _folder(folder)


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
