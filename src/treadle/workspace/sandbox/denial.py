"""Recognising in what a failed command printed that the sandbox stopped it, and which right it lacked.

A message alone proves little: programs fail by themselves in the same words. So it counts only where the same thing
would have gone well outside: the path is there, it may be changed, or somebody listens on the port.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from treadle.protocol.opened_paths import is_plain_folder
from treadle.protocol.tools import Right, SandboxDenial
from treadle.workspace.sandbox.backend import Backend
from treadle.workspace.sandbox.outside import DISK, Outside
from treadle.workspace.sandbox.present import SHARED_FOLDERS, TMP
from treadle.workspace.sandbox.profile import Profile, is_within

_NETWORK = re.compile(
    r"network is unreachable|temporary failure (?:in name resolution|resolving)|could not resolve (?:host|proxy)"
    r"|unable to resolve host|name or service not known|failed to (?:resolve|lookup address)|bad address '"
    r"|no address associated with hostname|nodename nor servname|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)"
    r"|\bENETUNREACH\b|dial (?:tcp|udp).*(?:unreachable|no such host|server misbehaving)",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"connection refused|\bECONNREFUSED\b|(?:could not|couldn't|failed to) connect to", re.IGNORECASE)
_PORT = re.compile(r"(?:\bport:? |:)(\d{2,5})\b", re.IGNORECASE)
_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b|\[Errno 30\]|os error 30", re.IGNORECASE)
_FORBIDDEN = re.compile(r"permission denied|\bEACCES\b|\[Errno 13\]|os error 13", re.IGNORECASE)
_MISSING = re.compile(r"no such file or directory|\bENOENT\b|\[Errno 2\]|os error 2\b|cannot find", re.IGNORECASE)
_NOT_PERMITTED = re.compile(r"operation not permitted|\bEPERM\b|\[Errno 1\]|os error 1\b", re.IGNORECASE)
_CONNECTS = re.compile(r"\bsocket\b|\bconnect\b|urlopen|http", re.IGNORECASE)
_NEVER = re.compile(
    r"\bptrace\b|\bunshare\b|\bsetns\b|namespace|\bmount\b|\bkeyctl\b|perf_event|\bbpf\b|io_uring", re.IGNORECASE
)
_DAEMON = re.compile(
    r"cannot connect to the docker daemon|no usable sandbox|creating new namespace failed", re.IGNORECASE
)
_MAKES = re.compile(
    r"creat|touch|mkdir|writ|copy|\bcp\b|\bmv\b|move|install|\bsave|\btee\b|open\(.*,\s*['\"][wax]|: line \d+: ",
    re.IGNORECASE,
)
"""Words of programs that make a file, and how bash begins what it says of a redirection."""

_WRITES = re.compile(r"write_(?:text|bytes)|cannot (?:create|touch)|for writing|open\(.*,\s*['\"][wax]", re.IGNORECASE)
"""Words that are not about reading, where the file is there."""

_FOLDERS = re.compile(r"mkdir|makedirs|create_dir|creat\w* (?:\w+ )?director", re.IGNORECASE)
"""Words of programs that make a folder."""

_QUOTED = re.compile(r"""['"‘“`]([^'"’”`]+)['"’”`]""")
_SUBJECT = re.compile(r"([^\s:'\"]+): permission denied", re.IGNORECASE)
"""What Landlock's words are about: a new file may be named by a word that looks like any other."""

_WORD = re.compile(r"[^\s:'\"‘’“”`()\[\],;]+")
_SHELL = re.compile(r"\A\S*sh: (?:line \d+: |\d+: )?")
"""How a shell begins its messages: with its own path."""

_LONGEST_LINE = 2000
_LINES = 400
_SHOWN = 200
"""Characters of a telling line that a person is shown."""

_BEFORE = 12
"""Lines above a message in which its cause may be named, as in a traceback or a chain of causes."""


def find_denial(output: str, profile: Profile, backend: Backend, outside: Outside = DISK) -> SandboxDenial | None:
    """Look for a denial in the output of a command that failed, from its end; None when something else went wrong."""
    lines = [line[:_LONGEST_LINE] for line in output.splitlines()[-_LINES:]]
    for number in reversed(range(len(lines))):
        message = _Message(lines[number], lines[max(0, number - _BEFORE) : number], profile, backend, outside)
        denial = message.network() or message.system() or message.path()
        if denial is not None:
            return denial
    return None


@dataclass(frozen=True, slots=True)
class _Message:
    """One line, the lines before it, and what it is judged by."""

    line: str
    before: Sequence[str]
    profile: Profile
    backend: Backend
    outside: Outside

    def network(self) -> SandboxDenial | None:
        """Whether the network was wanted, also the machine's own."""
        if self.profile.network:
            return None
        if _NETWORK.search(self.line):
            return self._denial(Right.NETWORK)
        if _REFUSED.search(self.line) and any(map(self.outside.listens, map(int, _PORT.findall(self.line)))):
            return self._denial(Right.NETWORK)
        landlock = self.backend is Backend.LANDLOCK
        if landlock and _NOT_PERMITTED.search(self.line) and _CONNECTS.search("\n".join((*self.before, self.line))):
            return self._denial(Right.NETWORK)
        return None

    def system(self) -> SandboxDenial | None:
        """Whether a system call was wanted that no command of a sandbox gets."""
        never = _NOT_PERMITTED.search(self.line) and _NEVER.search(self.line)
        return self._denial(Right.UNSANDBOXED) if never or _DAEMON.search(self.line) else None

    def path(self) -> SandboxDenial | None:
        """Whether a path was wanted that is hidden or must not be changed."""
        read_only, forbidden = _READ_ONLY.search(self.line), _FORBIDDEN.search(self.line)
        missing = _MISSING.search(self.line)
        if not (read_only or forbidden or missing):
            return None
        unchanged = read_only if self.backend is Backend.BUBBLEWRAP else forbidden
        for path in self._paths():
            # Where a hidden file shows by its name, writing it fails in the same words as reading it.
            writes = forbidden and any(map(_WRITES.search, (self.line, *self.before)))
            denial = self._not_made(path) if missing else None
            denial = denial or (self._unchanged(path) if writes and unchanged else None)
            denial = denial or (self._hidden(path) if forbidden or missing else None)
            denial = denial or (self._unchanged(path) if unchanged else None)
            if denial is not None:
                return denial
        return None

    def _hidden(self, path: str) -> SandboxDenial | None:
        """Judge a path that could not be read: hidden by the sandbox, and really there."""
        if any(
            is_within(path, shown) for shown in (*self.profile.readable, *self.profile.shown, *self.profile.writable)
        ):
            return None
        masked = next((mask for mask in self.profile.masked if is_within(path, mask)), None)
        scratch = (folder for folder, _ in self.profile.scratch)
        covers = (TMP, *SHARED_FOLDERS, *scratch) if self.backend is Backend.BUBBLEWRAP else ()
        covered = any(is_within(path, folder) for folder in (*self.profile.hidden, *covers))
        inside = bool(self.profile.root_of(path))
        found = self.outside.look_at(path) if masked or (covered and not inside) else None
        if found is None or not found.readable:
            return None
        if found.is_socket:
            return self._denial(Right.UNSANDBOXED)
        real = os.path.realpath(path)  # a link that is hidden itself shows nothing, whatever is opened
        if real != path and any(is_within(real, shown) for shown in (*self.profile.readable, *self.profile.writable)):
            return None
        return self._denial(Right.READ, masked or real)

    def _not_made(self, path: str) -> SandboxDenial | None:
        """Judge a path that was to be made in a folder that is there and hidden; a missing file was perhaps read."""
        folder = str(Path(path).parent)
        hidden = any(is_within(folder, each) and folder != each for each in self.profile.hidden)
        shown = any(
            is_within(folder, each) for each in (*self.profile.readable, *self.profile.shown, *self.profile.writable)
        )
        words = _MAKES if self.outside.look_at(path) is None else _WRITES
        makes = any(map(words.search, (self.line, *self.before)))
        if not hidden or shown or not makes or self.profile.root_of(path):
            return None
        found = self.outside.look_at(folder)
        writable = found is not None and found.is_folder and self.outside.can_write(path)
        opened = self._place(path) if writable else ""
        return self._denial(Right.WRITE, opened) if opened else None

    def _unchanged(self, path: str) -> SandboxDenial | None:
        """Judge a path that could not be changed: kept by the sandbox, and otherwise the user's to change."""
        if any(is_within(path, folder) for folder in ("/proc", "/sys", "/dev")):
            return None
        if self._beside_protected(path):
            return self._denial(Right.UNSANDBOXED, path)
        opened = self._to_open(path)
        if not opened or not self.outside.can_write(opened):
            return None
        whole = opened == self.profile.root_of(path) and opened not in self.profile.protected
        return replace(self._denial(Right.WRITE, opened), usual=whole)

    def _beside_protected(self, path: str) -> bool:
        """Whether Landlock lets nothing be made at a path: it cannot tell that from the protected entries beside it."""
        folder = str(Path(path).parent)
        kept = (*self.profile.protected, *self.profile.masked)
        inside = self.backend is Backend.LANDLOCK and self.profile.change_root and self.profile.root_of(path)
        return (
            bool(inside)
            and self.outside.look_at(path) is None
            and any(is_within(each, folder) and not is_within(path, each) for each in kept)
        )

    def _to_open(self, path: str) -> str:
        """Name what must be opened to change a path: the protected entry it falls under, the workspace, its folder."""
        profile = self.profile
        if any(is_within(path, other) for other in profile.writable):
            return ""
        protected = (entry for entry in profile.protected if is_within(path, entry))
        if entry := next(protected, ""):
            return entry
        if folder := profile.root_of(path):
            return "" if profile.change_root else folder
        return self._place(path)

    def _place(self, path: str) -> str:
        """Name a path outside the workspace as it is opened: with a slash at its end if it is to be a new folder.

        It is empty where that is open already, under another name. For something missing it is the folder in which
        that would be, if nothing else of worth is there.
        """
        path = os.path.realpath(path)
        if any(is_within(path, other) for other in self.profile.writable):
            return ""
        if self.outside.look_at(path) is not None:
            return path
        folder = self.outside.folder(path)
        if is_plain_folder(folder, self.outside.entries, kept=self.profile.kept):
            return folder
        return f"{path}/" if any(map(_FOLDERS.search, (self.line, *self.before[-3:]))) else path

    def _denial(self, right: Right, target: str = "") -> SandboxDenial:
        """Name a right, with the line that shows that it lacked."""
        return SandboxDenial(right=right, target=target, text=self.line.strip()[:_SHOWN])

    def _paths(self) -> Iterator[str]:
        """Find what may be a path in the message, or else in the nearest line above that has one."""
        for line in (self.line, *reversed(self.before[-3:])):
            found = list(self._paths_in(line))
            if found:
                yield from found
                return

    def _paths_in(self, line: str) -> Iterator[str]:
        """Find quoted text, and words that look like a path."""
        root = Path(self.profile.root)
        line = _SHELL.sub("", line)
        quoted = (text for text in _QUOTED.findall(line) if len(text.split()) == 1)
        words = (word for word in _WORD.findall(line) if "/" in word or self.outside.look_at(str(root / word)))
        subjects = _SUBJECT.findall(line) if self.backend is Backend.LANDLOCK else ()
        for text in (*quoted, *words, *subjects):
            yield os.path.normpath(root / text.removeprefix("unix://"))
