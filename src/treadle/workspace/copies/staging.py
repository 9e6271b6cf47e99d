"""The staging folders of throw-away copies: what commands changed, kept in Treadle's private data until it is decided.

`DATA/copies/PID-START-NUMBER`, named after the process that wants it. A folder whose process is gone is swept.
"""

import contextlib
import os
import posixpath
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.files.whole_folders import try_remove_tree

_NAME = re.compile(r"(\d{1,10})-(\d{1,20})-[0-9a-f]{12}")
_CHUNK = 1024 * 1024
_TRIES = 3


class EntryState(Struct, frozen=True, array_like=True):
    """What is at a path: `f` a file, `l` a link, `d` a folder, `s` something else.

    `what` is the SHA-256 of a file, empty where it is too large, or the target of a link in hex.
    """

    kind: str
    mode: int
    what: str


class Difference(Struct, frozen=True, array_like=True):
    """One path of a root that differs between the copy and the original; None stands for nothing.

    `name` is in hex. The bytes of a new file are `size` bytes from `offset` of the contents. The notes are those of
    `upper.py`. `recent`: the original was changed after the command had started.
    """

    root: int
    name: str
    before: EntryState | None
    after: EntryState | None
    offset: int
    size: int
    note: str
    recent: bool

    @property
    def path(self) -> bytes:
        """The path in its root."""
        return bytes.fromhex(self.name)

    @property
    def kinds(self) -> tuple[str, str]:
        """What kind of thing was there, and what is; empty for nothing."""
        return self.before.kind if self.before else "", self.after.kind if self.after else ""

    def place(self, roots: Sequence[str]) -> str:
        """The absolute path."""
        return place_in(roots[self.root], self.path)


class Manifest(Struct, frozen=True):
    """All that a command changed in its copy; `trouble` says why it could not be kept."""

    start: int
    trouble: str
    full: bool
    skipped: int
    changes: tuple[Difference, ...]


_decoder = msgspec.json.Decoder(Manifest)


def place_in(root: str, path: bytes) -> str:
    """Give the absolute path of a path in a root."""
    return root if path == b"." else posixpath.join(root, os.fsdecode(path))


def new_folder(data: Path) -> Path:
    """Make a staging folder that belongs to this process."""
    folder = data / "copies" / _name_for(owner_of(os.getpid()))
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700)
    return folder


def _name_for(owner: Owner) -> str:
    return f"{owner.pid}-{owner.started}-{secrets.token_hex(6)}"


def read_manifest(folder: Path) -> Manifest | None:
    """Read what a command left; None where that is not there, or not whole."""
    try:
        return _decoder.decode((folder / "manifest").read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


class Contents:
    """The new bytes of files in a staging folder. Raises `OSError` when they are not there."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "contents", os.O_RDONLY | os.O_CLOEXEC)

    def read(self, change: Difference) -> Iterator[bytes]:
        """Give the new bytes of one file, piece by piece."""
        at, end = change.offset, change.offset + change.size
        while at < end:
            data = os.pread(self._file, min(end - at, _CHUNK), at)
            if not data:
                raise OSError("what was kept of the changes is cut short")
            at += len(data)
            yield data

    def whole(self, change: Difference) -> bytes:
        """Give them at once."""
        return b"".join(self.read(change))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def remove_folder(folder: Path) -> None:
    """Throw a staging folder away; a command of a killed process may be writing to it for a last moment."""
    for _ in range(_TRIES):
        try_remove_tree(folder)
        if not folder.exists():
            return


def take_abandoned(data: Path) -> Iterator[Path]:
    """Give the folders whose process is gone, each made this process's own, so that no two work on one."""
    with contextlib.suppress(OSError):
        for folder in sorted((data / "copies").iterdir()):
            found = _NAME.fullmatch(folder.name)
            if found is None or lives(Owner(int(found[1]), int(found[2]))):
                continue
            mine = folder.with_name(_name_for(owner_of(os.getpid())))
            with contextlib.suppress(OSError):
                folder.rename(mine)
                yield mine
