"""Control files that came into being while a command ran: found when it has ended, and moved out of the workspace.

What the folders had before is noted in Treadle's data while the command runs, so that a Treadle that was killed
meanwhile finds what was made when it starts again.
"""

import contextlib
import errno
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from treadle.workspace.owners import Owner, lives, owner_of
from treadle.workspace.sandbox.profile import is_within
from treadle.workspace.sandbox.survey import PathFilter, Survey, Surveyor
from treadle.workspace.sandbox.usual import repository_parts

_NOTES = "running"
_QUARANTINE = "quarantine"
_ALLOWED = ".allowed"
_SHOWN = 5
_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What there was when a command began: the control files of each folder, and where those lead that are links.

    `repositories` are those whose own data the command may change; `allowed` are paths that it may make.
    """

    owner: Owner
    control: Mapping[str, Mapping[str, str]]
    repositories: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


class MadeFiles:
    """Finds what one command made of control files in the folders of `surveyors`; `surveys` are what there was before.

    `data` is Treadle's own folder.
    """

    def __init__(
        self,
        data: Path,
        surveyors: Sequence[Surveyor],
        surveys: Sequence[Survey],
        *,
        repositories: Sequence[str] = (),
        allowed: Sequence[str] = (),
    ) -> None:
        self._data = data
        self._surveyors = surveyors
        self._lock = threading.Lock()
        self._before = Before(
            owner=owner_of(os.getpid()),
            control={each.root: dict(found.control) for each, found in zip(surveyors, surveys, strict=True)},
            repositories=tuple(repositories),
            parts=tuple(repository_parts(repositories)),
            allowed=tuple(allowed),
        )
        self._note = _write_note(data, self._before)

    def check(self) -> tuple[str, ...]:
        """Move away what was made so far, and say so in a sentence for each."""
        with self._lock:
            return tuple(_check(self._data, self._surveyors, self._before, _allowed_by(self._note)))

    def end(self) -> tuple[str, ...]:
        """Check for the last time: the command has ended."""
        said = self.check()
        _remove_note(self._note)
        return said


def allow_made(data: Path, path: str) -> None:
    """Note for every command that runs now that a control file was written with somebody's yes."""
    for note in _notes(data):
        with contextlib.suppress(OSError), Path(f"{note}{_ALLOWED}").open("ab") as file:
            file.write(os.fsencode(path) + b"\0")


def recover_made(data: Path, *, is_control: PathFilter, is_secret: PathFilter) -> tuple[str, ...]:
    """Move away what commands made whose Treadle was killed meanwhile, and say so."""
    said: list[str] = []
    for note in _notes(data):
        try:
            before = msgspec.json.decode(note.read_bytes(), type=Before)
        except (OSError, msgspec.DecodeError):
            before = None
        if before is not None and lives(before.owner):
            continue
        if before is not None:
            surveyors = [Surveyor(root, is_control=is_control, is_secret=is_secret) for root in before.control]
            said += _check(data, surveyors, before, _allowed_by(note))
        _remove_note(note)
    return tuple(said)


def _write_note(data: Path, before: Before) -> Path | None:
    """Write what there was; a full disk costs what a killed Treadle would find, not the command."""
    note = data / _NOTES / f"{before.owner.pid}-{secrets.token_hex(8)}.json"
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note.write_bytes(msgspec.json.encode(before))
    except (OSError, UnicodeEncodeError):
        return None
    return note


def _remove_note(note: Path | None) -> None:
    if note is not None:
        note.unlink(missing_ok=True)
        Path(f"{note}{_ALLOWED}").unlink(missing_ok=True)


def _notes(data: Path) -> list[Path]:
    try:
        return [path for path in (data / _NOTES).iterdir() if path.suffix == ".json"]
    except OSError:
        return []


def _allowed_by(note: Path | None) -> tuple[str, ...]:
    try:
        text = Path(f"{note}{_ALLOWED}").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(path) for path in text.split(b"\0")[:-1])


def _check(data: Path, surveyors: Sequence[Surveyor], before: Before, allowed: tuple[str, ...]) -> Iterator[str]:
    place = data / _QUARANTINE / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    said: list[str] = []
    free = (*before.allowed, *allowed)
    for surveyor in surveyors:
        known = before.control.get(surveyor.root, {})
        found = dict(surveyor.look().control)
        for path, target in found.items():
            if path in known and known[path] == target:
                continue
            if not any(is_within(path, each) for each in free):
                said += _moved(surveyor.root, path, place, known.get(path, ""))
        for path in [path for path, target in known.items() if target and path not in found]:
            said += _restored(surveyor.root, path, known[path])
    for repository in before.repositories:
        for path in repository_parts((repository,)):
            if path not in before.parts and not any(is_within(path, each) for each in free):
                said += _moved(repository, path, place, "")
    yield from said[:_SHOWN]
    if len(said) > _SHOWN:
        yield f"{len(said) - _SHOWN} more such files were moved to {place}."


def _moved(root: str, path: str, place: Path, link: str) -> list[str]:
    """Move a path away; `link` is where the link led that it replaced, which is made again."""
    name = os.path.relpath(path, root)
    above, _, last = name.rpartition("/")
    target = place / name
    try:
        with _directory(root, above) as folder:
            _move(folder, last, target)
            if link:
                os.symlink(link, last, dir_fd=folder)
    except OSError as error:
        return [f"{name} was made while the command ran. It can change what tools do. It cannot be moved: {error}."]
    if link:
        return [f"{name} was replaced while the command ran. It is the link to {link} again; the other is {target}."]
    return [f"{name} was made while the command ran. It can change what tools do, so it was moved to {target}."]


def _restored(root: str, path: str, link: str) -> list[str]:
    name = os.path.relpath(path, root)
    above, _, last = name.rpartition("/")
    try:
        with _directory(root, above) as folder:
            os.symlink(link, last, dir_fd=folder)
    except OSError:
        return []
    return [f"{name}, a link to {link}, was removed while the command ran. It was made again."]


@contextlib.contextmanager
def _directory(root: str, below: str) -> Iterator[int]:
    """Open a folder part by part, through no link: a command that still runs may replace one."""
    descriptor = os.open(root, _OPEN)
    try:
        for part in filter(None, below.split("/")):
            inner = os.open(part, _OPEN, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _move(folder: int, name: str, target: Path) -> None:
    """Move what a folder holds, to another file system by a copy."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.rename(name, target, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        aside = f".{name}.{secrets.token_hex(4)}"
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        _copy_over(Path(f"/proc/self/fd/{folder}/{aside}"), target)


def _copy_over(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
        shutil.rmtree(source)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
        source.unlink()
