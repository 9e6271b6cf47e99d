"""Opening a missing path outside the workspace: it is made empty beforehand, and taken away again if it stays so."""

import os
import secrets
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.private_file import make_private_folder

_NOTES = "opened"


class _Place(msgspec.Struct, frozen=True):
    """A file or folder that was made empty; a file is known again by its number and its time of change."""

    path: str
    is_folder: bool
    inode: int
    changed: int


class _Note(msgspec.Struct, frozen=True):
    owner: Owner
    places: tuple[_Place, ...]


class OpenedPaths:
    """The paths that were made for the commands of a session; `data` is Treadle's own folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._lock = threading.Lock()
        self._used: dict[str, int] = {}
        """By how many commands each path is used now."""

        self._places: dict[str, tuple[_Place, ...]] = {}
        self._note: Path | None = None

    def make(self, paths: Iterable[str], *, folders: Iterable[str] = ()) -> None:
        """Make what is missing, with the folders above it; of the `paths` the `folders` as such. Raises `OSError`."""
        folders = frozenset(folders)
        with self._lock:
            for path in paths:
                if not os.path.lexists(path):
                    self._places[path] = _made(path, is_folder=path in folders)
                if path in self._places:
                    self._used[path] = self._used.get(path, 0) + 1
            self._write_note()

    def take_away(self, paths: Iterable[str]) -> list[str]:
        """Take away what no command uses any more and is as it was made; gives a sentence for each of the paths."""
        said: list[str] = []
        with self._lock:
            for path in paths:
                if path not in self._used:
                    continue
                self._used[path] -= 1
                if not self._used[path]:
                    del self._used[path]
                    if _taken_away(self._places.pop(path, ())):
                        said.append(_unused(path))
            self._write_note()
        return said

    def _write_note(self) -> None:
        """Note what there is for a Treadle that starts after this one was killed; a full disk costs that alone."""
        places = tuple(place for made in self._places.values() for place in made)
        with suppress(OSError):
            if not places:
                if self._note is not None:
                    self._note.unlink(missing_ok=True)
                return
            note = _Note(owner_of(os.getpid()), places)
            if self._note is None:
                make_private_folder(self._data / _NOTES)
                self._note = self._data / _NOTES / f"{os.getpid()}-{secrets.token_hex(8)}.json"
            self._note.write_bytes(msgspec.json.encode(note))


def recover_opened(data: Path) -> None:
    """Take away what was made by a Treadle that was killed meanwhile, if it is still empty."""
    with suppress(OSError):
        for note in list((data / _NOTES).glob("*.json")):
            try:
                found = msgspec.json.decode(note.read_bytes(), type=_Note)
            except msgspec.DecodeError:
                found = None
            if found is None or not lives(found.owner):
                _taken_away(() if found is None else found.places)
                note.unlink(missing_ok=True)


def _made(path: str, *, is_folder: bool) -> tuple[_Place, ...]:
    """Make a path with what is missing above it, the outer first."""
    missing = [path]
    while not os.path.lexists(above := os.path.dirname(missing[-1])):  # noqa: PTH120 - paths are texts here
        missing.append(above)
    made: list[_Place] = []
    try:
        for each in reversed(missing):
            if each != path or is_folder:
                Path(each).mkdir(mode=0o700)
            else:
                os.close(os.open(each, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            facts = os.lstat(each)
            made.append(_Place(each, each != path or is_folder, facts.st_ino, facts.st_mtime_ns))
    except OSError:
        _taken_away(made)
        raise
    return tuple(made)


def _taken_away(places: Sequence[_Place]) -> bool:
    """Take away what is as it was made, the inner first; whether the innermost was."""
    gone = False
    for number, place in enumerate(reversed(places)):
        with suppress(OSError):
            if place.is_folder:
                Path(place.path).rmdir()  # one that is not empty stays
            else:
                facts = os.lstat(place.path)
                if facts.st_size or (facts.st_ino, facts.st_mtime_ns) != (place.inode, place.changed):
                    return False
                Path(place.path).unlink()
            gone = gone or number == 0
    return gone


def _unused(path: str) -> str:
    return (
        f"{path} was not there, so it was made empty before the command ran: the sandbox opens only what is there. The "
        "command left it empty, so it was taken away. If the program has to make it itself, or to replace it by "
        'another file, needs: ["host"] asks the user for a run without the sandbox.'
    )
