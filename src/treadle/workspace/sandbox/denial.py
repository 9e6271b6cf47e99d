"""Recognising in what a command printed that the sandbox stopped it, and which right it lacked."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treadle.workspace.sandbox.backend import Backend
from treadle.workspace.sandbox.profile import Profile, Right, RightKind, is_within

_NETWORK = re.compile(
    r"network is unreachable|temporary failure in name resolution|could not resolve host|name or service not known"
    r"|failed to resolve|no address associated with hostname|nodename nor servname|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)"
    r"|ENETUNREACH|couldn't connect to server"
    r"|dial tcp.*(?:unreachable|no such host|server misbehaving|connection refused)",
    re.IGNORECASE,
)
_READ_ONLY = re.compile(r"read-only file system|EROFS|\[Errno 30\]|os error 30", re.IGNORECASE)
_FORBIDDEN = re.compile(r"permission denied|EACCES|\[Errno 13\]|os error 13", re.IGNORECASE)
_NOT_PERMITTED = re.compile(r"operation not permitted|EPERM\b|\[Errno 1\]", re.IGNORECASE)
_QUOTED = re.compile(r"""['"‘“`]([^'"’”`]+)['"’”`]""")
_WORD = re.compile(r"[^\s:'\"‘’“”`]+")
_LONGEST_LINE = 2000
_LINES = 400


@dataclass(frozen=True, slots=True)
class Denial:
    """What the sandbox stopped, in a sentence, and the right that would let it pass; None where none can be given."""

    text: str
    right: Right | None


def find_denial(output: str, profile: Profile, backend: Backend) -> Denial | None:
    """Look for a denial in the output of a command that failed, from its end; None when something else went wrong."""
    refused = _READ_ONLY if backend is Backend.BUBBLEWRAP else _FORBIDDEN
    for line in reversed(output.splitlines()[-_LINES:]):
        denial = _judge(line[:_LONGEST_LINE], profile, refused)
        if denial is not None:
            return denial
    return None


def _judge(line: str, profile: Profile, refused: re.Pattern[str]) -> Denial | None:
    """Judge one line; `refused` is how this sandbox says that something must not be changed."""
    if _NETWORK.search(line) and not profile.network:
        return Denial("The sandbox has no network.", Right(RightKind.NETWORK))
    if _READ_ONLY.search(line) or _FORBIDDEN.search(line):
        return _judge_path(line, profile, unchanged=refused.search(line) is not None)
    if _NOT_PERMITTED.search(line):
        return Denial("The sandbox may have stopped a system call that it never permits.", None)
    return None


def _judge_path(line: str, profile: Profile, *, unchanged: bool) -> Denial | None:
    for path in _paths(line, profile.root):
        masked = next((mask for mask in profile.masked if is_within(path, mask)), None)
        if masked is not None:
            return Denial(f"The sandbox keeps {masked} from being read.", Right(RightKind.READ, masked))
        right = _writing(path, profile)
        if right is not None and unchanged and not _is_closed(path):
            return Denial(f"The sandbox keeps {right.path} from being changed.", right)
    return None


def _writing(path: str, profile: Profile) -> Right | None:
    """Name the right to change a path: the protected entry it falls under, the workspace, or its nearest folder."""
    if any(is_within(path, other) for other in profile.writable):
        return None
    protected = (entry for entry in profile.protected if is_within(path, entry.rstrip("/")))
    if entry := next(protected, ""):
        return Right(RightKind.WRITE, entry)
    if is_within(path, profile.root):
        return None if profile.change_root else Right(RightKind.WRITE, profile.root)
    return Right(RightKind.WRITE, _folder(path))


def _is_closed(path: str) -> bool:
    """Whether no right opens a path: interfaces of the kernel, and devices."""
    return any(is_within(path, folder) for folder in ("/proc", "/sys", "/dev"))


def _folder(path: str) -> str:
    """Give the folder to open: a file that is replaced by renaming needs its folder."""
    here = Path(path)
    return str(next((each for each in (here, *here.parents) if each.is_dir()), here))


def _paths(line: str, root: str) -> Iterator[str]:
    """Find what may be a path in a message: quoted text, and words that look like one."""
    words = (word for word in _WORD.findall(line) if "/" in word or (Path(root) / word).exists())
    for text in (*_QUOTED.findall(line), *words):
        yield os.path.normpath(Path(root) / text)
