"""The policy's look at files: links, facts, names and repository settings, and nothing else."""

import os
import stat
from dataclasses import dataclass

from treadle.policy.decision_context import MAX_NAMES, FileFacts, FileKind
from treadle.protocol.patterns import regex
from treadle.workspace.files.paths import NOTHING_THERE

_LARGEST_CONFIG = 64 * 1024
_LARGEST_INDEX = 32 * 1024 * 1024
_MOST_LINKS = 40
_OF_PROCESS = regex(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|exe|fd/[^/]+|map_files/[^/]+|ns/[^/]+)$")
_KINDS = {stat.S_IFLNK: FileKind.LINK, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFREG: FileKind.FILE}


@dataclass(frozen=True, slots=True)
class DiskView:
    """The file system as it is. It changes nothing and starts nothing."""

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are.

        Links of a process below /proc are not followed: they lead elsewhere for each process that opens them.
        """
        plain = os.path.normpath(path)
        try:
            real = os.path.realpath(path)
        except OSError:  # a link that may not be read
            return _through_process(path) or plain
        met_no_link = real == plain and ".." not in path.split("/")
        return real if met_no_link else _through_process(path) or real

    def facts(self, path: str) -> FileFacts | None:
        """Look at an absolute path without following a link at its end; None where there is nothing."""
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return None
        return FileFacts(
            kind=_KINDS.get(stat.S_IFMT(found.st_mode), FileKind.OTHER),
            links=found.st_nlink,
            uid=found.st_uid,
            mode=stat.S_IMODE(found.st_mode),
            inode=(found.st_dev, found.st_ino),
        )

    def names(self, path: str) -> tuple[str, ...] | None:
        """List the names in a directory, at most 10,000; nothing where there is none, None where it cannot be read."""
        found: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) >= MAX_NAMES:
                        break
        except OSError as error:
            return () if error.errno in NOTHING_THERE else None
        except ValueError:
            return None
        return tuple(found)

    def read_config(self, path: str) -> str | None:
        """Read a small configuration file of a repository; None when it is missing, unreadable or over 64 KiB."""
        try:
            raw = _read(path, _LARGEST_CONFIG)
        except (OSError, ValueError):
            return None
        return None if raw is None else raw.decode(errors="replace")

    def read_index(self, path: str) -> bytes | None:
        """Read what a repository has staged; nothing when it is missing, None when it is unreadable or over 32 MiB."""
        try:
            return _read(path, _LARGEST_INDEX)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except (OSError, ValueError):
            return None


def _through_process(path: str) -> str | None:
    """Give where a path meets a link of a process, with what comes after it; None when it meets none."""
    todo = path.split("/")[::-1]
    done = ""
    links = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        done = f"{done}/{part}"
        target = _target(done)
        if target is None:
            continue
        if _OF_PROCESS.match(done):
            return "/".join((done, *(rest for rest in reversed(todo) if rest not in ("", ".", ".."))))
        links += 1
        if links > _MOST_LINKS:
            return None
        todo += target.split("/")[::-1]
        done = "" if target.startswith("/") else done.rpartition("/")[0]
    return None


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - paths are texts here
    except (OSError, ValueError):
        return "" if _OF_PROCESS.match(path) and os.path.lexists(path) else None


def _read(path: str, most: int) -> bytes | None:
    """Read a regular file whole; None for another kind of file, or a larger one. Raises `OSError`, `ValueError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(most + 1)
    finally:
        os.close(descriptor)
    return None if len(raw) > most else raw
