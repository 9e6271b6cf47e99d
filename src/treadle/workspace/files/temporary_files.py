"""New files that do not bear their name yet: noted while they are written, taken away when their writer was killed."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from treadle.protocol.patterns import regex
from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.private_file import make_private_folder

_TEMPORARY = regex(r"\.treadle-[0-9a-f]{16}\.tmp")
_NOTE = regex(r"(\d{1,10})-(\d{1,20})-[0-9a-f]{8}")


def temporary_name() -> str:
    """Give the name that a new file has until it is complete."""
    return f".treadle-{os.urandom(8).hex()}.tmp"


def _ignore(path: str) -> None:  # noqa: ARG001 - nobody wants to know
    return


class TemporaryFiles(Struct, frozen=True):
    """Notes in a private folder, one for each file that is being written; none are taken where `folder` is empty."""

    folder: str = ""
    saved: Callable[[str], None] = _ignore
    """Is given the path of each file that is saved, before it bears its name."""

    @contextlib.contextmanager
    def noted(self, path: str) -> Iterator[None]:
        """Note that the temporary file `path` is being written. That no note can be taken keeps nobody from saving."""
        note = self._take(path) if self.folder else None
        try:
            yield
        finally:
            if note is not None:
                with contextlib.suppress(OSError):
                    note.unlink()

    def _take(self, path: str) -> Path | None:
        me = owner_of(os.getpid())
        note = Path(self.folder, f"{me.pid}-{me.started}-{os.urandom(4).hex()}")
        try:
            make_private_folder(note.parent)
            note.write_bytes(os.fsencode(path))
        except OSError:
            return None
        return note

    def sweep(self) -> tuple[str, ...]:
        """Remove what killed writers left, and give the paths."""
        try:
            notes = [entry for entry in os.scandir(self.folder) if _NOTE.fullmatch(entry.name)] if self.folder else []
        except OSError:
            return ()
        return tuple(path for note in notes if (path := _settle(Path(note.path))))


def _settle(note: Path) -> str:
    """Remove the file of a note whose writer is gone, and then the note; gives the path when there was a file."""
    pid, started, _ = note.name.split("-")
    if lives(Owner(int(pid), int(started))):
        return ""
    removed = ""
    with contextlib.suppress(OSError):
        path = os.fsdecode(note.read_bytes())
        if _remove(PurePosixPath(path)):
            removed = path
    with contextlib.suppress(OSError):
        note.unlink()
    return removed


def _remove(path: PurePosixPath) -> bool:
    """Remove a file that is one of ours: by its name, a regular file, and in a folder that no link leads to."""
    if not _TEMPORARY.fullmatch(path.name) or os.path.realpath(path.parent) != str(path.parent):
        return False
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.lstat(path.name, dir_fd=directory)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            return False
        os.unlink(path.name, dir_fd=directory)
    finally:
        os.close(directory)
    return True
