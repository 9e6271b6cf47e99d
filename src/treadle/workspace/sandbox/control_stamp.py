"""What a control file is by its content: a folder with all that it holds, a repository with what git runs in it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from treadle.workspace.files.paths import Listed, list_folder
from treadle.workspace.sandbox.usual import repository_parts

_LARGEST = 4 * 1024 * 1024  # bytes; what is larger is known by its number and its times
_MOST = 10_000


def control_stamp(path: str) -> str:
    """Give a text that changes with what a path is; empty where that cannot be told, and equal to nothing then."""
    seen = hashlib.sha256()
    count = 0
    for each in _parts(path):
        count += 1
        try:
            seen.update(_of_one(each))
        except OSError:
            return ""
        if count > _MOST:
            return ""
    return seen.hexdigest() if count else ""


def _parts(path: str) -> Iterator[str]:
    """Give the files and folders of a path that count, those above first."""
    if os.path.basename(path) == ".git" and isinstance(list_folder(path), Listed):  # noqa: PTH119 - paths are texts
        yield path
        for part in sorted(repository_parts((path,))):
            yield from _below(part)
        return
    yield from _below(path)


def _below(path: str) -> Iterator[str]:
    yield path
    found = list_folder(path)
    if isinstance(found, Listed):
        for entry in sorted(found.entries, key=lambda entry: entry.name):
            yield from _below(f"{path}/{entry.name}")


def _of_one(path: str) -> bytes:
    facts = os.lstat(path)
    what = f"{len(os.fsencode(path))} {facts.st_mode} ".encode() + os.fsencode(path)
    if stat.S_ISLNK(facts.st_mode):
        return what + b" " + os.fsencode(Path(path).readlink())
    if not stat.S_ISREG(facts.st_mode):
        return what
    if facts.st_size > _LARGEST:
        return what + f" {facts.st_ino} {facts.st_size} {facts.st_ctime_ns}".encode()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return what + hashlib.sha256(file.read(_LARGEST + 1)).digest()
