"""What a decision depends on besides the call itself."""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from treadle.policy.rules import Ruleset
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

_SCRATCH = "/tmp/"  # noqa: S108 - only its name

_DEEP = 100
MAX_NAMES = 10_000
"""As many names of a directory are seen at most; where there are so many there may be more."""


class FileKind(StrEnum):
    """What a name in a directory stands for."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class FileFacts(Struct, frozen=True, kw_only=True):
    """What `lstat` says: `links` is the number of hard links, `mode` the permission bits, `inode` device and number."""

    kind: FileKind
    links: int = 1
    uid: int = 0
    mode: int = 0
    inode: tuple[int, int] = (0, 0)


class FileView(Protocol):
    """The only look at files that a decision may take."""

    def resolve(self, path: str) -> str:
        """Give the absolute path with every link followed; parts that do not exist stay as they are."""
        ...

    def facts(self, path: str) -> FileFacts | None:
        """Look at an absolute path without following a link at its end; None where there is nothing."""
        ...

    def names(self, path: str) -> tuple[str, ...] | None:
        """List the names in a directory, at most 10,000; nothing where there is none, None where it cannot be read."""
        ...

    def read_config(self, path: str) -> str | None:
        """Read a small configuration file of a repository; None when it is missing, unreadable or over 64 KiB."""
        ...

    def read_index(self, path: str) -> bytes | None:
        """Read what a repository has staged; nothing when it is missing, None when it is unreadable or over 32 MiB."""
        ...


class RememberedFiles:
    """Files as they were when first looked at: a judgement asks the same of many a path, and goes by one answer."""

    @classmethod
    def of(cls, files: FileView) -> "RememberedFiles":
        """Remember what is seen of some files, unless they are already remembered."""
        return files if isinstance(files, cls) else cls(files)

    def __init__(self, files: FileView) -> None:
        self._resolved: dict[str, str] = {}
        self._facts: dict[str, FileFacts | None] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}
        self._files, self.read_config, self.read_index = files, files.read_config, files.read_index

    def resolve(self, path: str) -> str:
        """Resolve a path by its folder, which many share; only where a link stands is each of its parts looked at."""
        if path not in self._resolved:
            folder, name = posixpath.split(path)
            is_plain = name not in ("", ".", "..") and folder not in ("", "//") and path.count("/") < _DEEP
            place = posixpath.join(self.resolve(folder), name) if is_plain and path[:6] != "/proc/" else ""
            facts = self.facts(place) if place else None
            is_there = place and (facts is None or facts.kind is not FileKind.LINK)
            self._resolved[path] = place if is_there else self._files.resolve(path)
        return self._resolved[path]

    def facts(self, path: str) -> FileFacts | None:
        """Look at a path once."""
        if path not in self._facts:
            self._facts[path] = self._files.facts(path)
        return self._facts[path]

    def names(self, path: str) -> tuple[str, ...] | None:
        """List a directory once."""
        if path not in self._names:
            self._names[path] = self._files.names(path)
        return self._names[path]


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of some folders, or in one; by their spelling alone."""
    place = f"{path.rstrip('/')}/"
    return any(place.startswith(f"{folder.rstrip('/')}/") for folder in folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContext:
    """What a decision depends on. Paths are absolute; `roots` are the folders that belong to the workspace.

    The first root is the workspace itself: relative paths start there, and `trusted` says that the user trusts it.
    `untrusted` are further roots that they do not trust. `confines` says that this system can confine commands, and
    `hidden` names the folders that confined ones do not see, and `private` those that they have for
    themselves; `try_first` that what may change something runs in a
    throw-away copy before anything is asked. `tainted` says that text from outside was read in this turn, and `hosts`
    where from. `approved` are classes of risk that the user lets run beyond the mode. `own` names directories of
    Treadle that the user put inside a workspace, which are protected there. `state` names the directories of Treadle's
    own data and rules; `rules` are the user's and the project's. `listed` says which ignore file lists a path, with its
    line; empty where none does. `usable` are the resolved roots that may be a workspace, once they were found out.
    `unkept` says whether something at a path would be lost if it were deleted, since checkpoints may not hold it;
    without it everything would. `overwritten` says the same of a file that is written anew. `brokers`: git in the
    middle of a confined command is judged by itself, and each host that it looks up, but for `open_hosts`, which the
    user lets it reach, and `denied_hosts`, which no command is to reach. `machine_serves` says whether this machine
    listens on a port, and no command of the session.
    `hook_files` are what the hooks of a trusted folder run, wherever it lies: protected as control files are.
    `never_asked`: nothing acts in the workspace, so nobody was asked whether they trust it; `trusted` says nothing then
    of repositories below it.
    `unapproved` are tools of MCP servers that nobody has said yes to yet: no mode and no rule lets them run.
    """

    mode: Mode
    roots: tuple[str, ...]
    files: FileView
    home: str = ""
    trusted: bool = True
    never_asked: bool = False
    untrusted: tuple[str, ...] = ()
    confines: bool = False
    hidden: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    try_first: bool = True
    state: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    tainted: bool = False
    hosts: frozenset[str] = frozenset()
    approved: frozenset[Risk] = frozenset()
    rules: Ruleset = field(default_factory=Ruleset)
    listed: Callable[[str], str] = lambda _path: ""
    unkept: Callable[[str], bool] | None = None
    overwritten: Callable[[str], bool] = lambda _path: False
    brokers: bool = False
    open_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    machine_serves: Callable[[int], bool] = lambda _port: False
    usable: tuple[str, ...] = ()
    unapproved: frozenset[str] = frozenset()
    hook_files: frozenset[str] = frozenset()

    @property
    def confined(self) -> bool:
        """Whether commands run confined: wherever that is possible, in every mode but full."""
        return self.confines and self.mode is not Mode.FULL

    def is_hidden(self, path: str) -> bool:
        """Whether a confined command does not see a path outside the workspace."""
        return is_below(path, self.hidden)

    def is_private(self, path: str) -> bool:
        """Whether confined commands have a path for themselves, as /tmp, and it is not of the workspace."""
        return self.confined and is_below(path, self.private) and not is_below(path, self.roots)

    def is_scratch(self, path: str) -> bool:
        """Whether a resolved path is for files that are thrown away, where commands run as the user: in /tmp, and not
        of another user.
        """
        top = "/".join(path.split("/")[:3])
        if self.mode is not Mode.FULL or not path.startswith(_SCRATCH) or is_below(path, self.roots):
            return False
        there, home = self.files.facts(top), self.files.facts(self.home)
        return there is None or (home is not None and there.uid == home.uid and there.kind is not FileKind.LINK)

    @property
    def keeps_changes(self) -> bool:
        """Whether checkpoints hold what is not committed, where commands are confined."""
        return self.confined and self.unkept is not None

    def keeps(self, path: str) -> bool:
        """Whether a confined command may delete a path and loses nothing: checkpoints hold it, or nothing is there."""
        return self.confined and self.unkept is not None and not self.unkept(path)

    def trusts(self, folder: str) -> bool:
        """Whether the user trusts the root that a folder belongs to."""
        return self.trusted and not self.is_in_untrusted(folder)

    def is_in_untrusted(self, folder: str) -> bool:
        """Whether a folder lies in a further root that the user does not trust; one that is unknown might."""
        if not self.untrusted or not folder.startswith("/"):
            return bool(self.untrusted)
        return is_below(self.files.resolve(folder), self.untrusted)
