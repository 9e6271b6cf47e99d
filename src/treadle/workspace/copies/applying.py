"""Applying what a person chose of a copy's changes to the real files: all of it, or nothing.

Before the first change a journal with the plan and the old bytes is written to the staging folder. Whatever ends this
half-way, an error or a kill, is taken back: at once, or by `recover` at the next start. What somebody changed in the
meantime is left as they made it, and named.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from treadle.protocol.errors import ToolError
from treadle.workspace.copies.staging import Contents, Difference, EntryState
from treadle.workspace.copies.tree import Tree, WriteTarget
from treadle.workspace.files.private_file import write_private

_MOST_SYNCED = 100
_CHUNK = 1024 * 1024
_STALE = (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENOTEMPTY, errno.EISDIR)
"""What goes wrong when something else is at a path, or on the way to it, than a moment ago."""

_FOLDER_RIGHTS, _FILE_RIGHTS = 0o700, 0o400


class ApplyStep(Struct, frozen=True, array_like=True):
    """One path: what it was and what it becomes. The old bytes of a file are `size` bytes from `offset` of `old`."""

    change: Difference
    offset: int = 0
    size: int = 0


class Opened(Struct, frozen=True, array_like=True):
    """A folder or file (its name in hex) whose rights were too narrow to work with, and those rights."""

    root: int
    name: str
    mode: int


class Journal(Struct, frozen=True):
    """What is being applied to which roots (in hex); the part of it that was done can be taken back.

    `token` makes the names of files that are being written.
    """

    token: str
    roots: tuple[str, ...]
    steps: tuple[ApplyStep, ...] = ()
    opened: tuple[Opened, ...] = ()


class StaleError(Exception):
    """A path is not any more as it was when it was read."""


def carry_out(folder: Path, roots: Sequence[str], start: int, changes: Sequence[Difference]) -> None:
    """Apply changes to the real files. Raises `ToolError`, and then all is as it was.

    `start` is when the command started (nanoseconds, by the clock of files): what was changed later is somebody's.
    """
    ordered = sorted(changes, key=lambda change: (change.root, change.path))
    journal = _Journaling(folder, roots)
    try:
        contents, tree = Contents(folder), Tree(roots)
    except OSError as error:
        raise ToolError(_explain(error)) from error
    try:
        _check(tree, ordered, start, journal)
        steps = journal.write(tree, ordered)
        worker = _Worker(tree, journal.token, synced=len(steps) <= _MOST_SYNCED)
        worker.go(ordered, contents.read)
        for one in journal.opened:
            if not any(change.root == one.root and change.name == one.name for change in ordered):
                tree.set_mode(one.root, bytes.fromhex(one.name), one.mode)
        tree.sync()
    except BaseException as error:
        take_back(folder)
        if isinstance(error, OSError | StaleError):
            raise ToolError(_explain(error)) from error
        raise
    finally:
        tree.close()
        contents.close()
    journal.remove()


class _Journaling:
    """Writes down what is about to be done."""

    def __init__(self, folder: Path, roots: Sequence[str]) -> None:
        self.folder = folder
        self.token = folder.name
        self.roots = tuple(os.fsencode(root).hex() for root in roots)
        self.opened: list[Opened] = []

    def open(self, tree: Tree, root: int, path: bytes, *, rights: int) -> None:
        """Widen the rights of something so that it can be worked with."""
        found = tree.status(root, path)
        if found is None or found.st_mode & rights == rights or os.geteuid() == 0:
            return
        self.opened.append(Opened(root, path.hex(), found.st_mode & 0o777))
        self.save(())
        tree.set_mode(root, path, found.st_mode & 0o777 | rights)

    def as_it_was(self, change: Difference, state: EntryState | None) -> EntryState | None:
        """Give a state with the rights that were there before they were widened."""
        was = next((one.mode for one in self.opened if (one.root, one.name) == (change.root, change.name)), None)
        return state if state is None or was is None else structs.replace(state, mode=was)

    def write(self, tree: Tree, changes: Sequence[Difference]) -> tuple[ApplyStep, ...]:
        """Keep the old bytes, then the plan."""
        steps: list[ApplyStep] = []
        with (self.folder / "old").open("wb") as old:
            for change in changes:
                if change.before is None or change.before.kind != "f":
                    steps.append(ApplyStep(change))
                    continue
                offset, digest = old.tell(), sha256()
                with tree.parent(change.root, change.path) as (fd, name), tree.reading(fd, name) as file:
                    while data := os.read(file, _CHUNK):
                        digest.update(data)
                        old.write(data)
                if digest.hexdigest() != change.before.what:
                    raise StaleError(os.fsdecode(change.path))
                steps.append(ApplyStep(change, offset, old.tell() - offset))
            old.flush()
            os.fsync(old.fileno())
        self.save(tuple(steps))
        return tuple(steps)

    def save(self, steps: tuple[ApplyStep, ...]) -> None:
        """Write the journal: whole or not at all."""
        write_private(
            self.folder / "journal", msgspec.json.encode(Journal(self.token, self.roots, steps, tuple(self.opened)))
        )

    def remove(self) -> None:
        """Say that nothing has to be taken back any more."""
        (self.folder / "journal").unlink(missing_ok=True)


def _check(tree: Tree, changes: Sequence[Difference], start: int, journal: _Journaling) -> None:
    """Make sure that every path is as it was read, and open up what could not be worked with."""
    _check_folders(tree, changes, journal)
    gone = {(change.root, change.path) for change in changes if change.before is not None}
    for change in changes:
        found, was = tree.status(change.root, change.path), change.before
        if found is not None and not stat.S_ISDIR(found.st_mode) and (change.recent or found.st_ctime_ns >= start):
            raise StaleError(os.fsdecode(change.path))
        if found is not None and stat.S_ISREG(found.st_mode):
            journal.open(tree, change.root, change.path, rights=_FILE_RIGHTS)
        state = journal.as_it_was(change, tree.state(change.root, change.path))
        if state != was:
            raise StaleError(os.fsdecode(change.path))
        if was is not None and was.kind == "d" and change.kinds[1] != "d":
            _check_removed(tree, change, gone, journal)


def _check_folders(tree: Tree, changes: Sequence[Difference], journal: _Journaling) -> None:
    """Make sure that what is on the way to the changes still are folders."""
    made = {(change.root, change.path) for change in changes if change.kinds[1] == "d"}
    for root, above in sorted({(change.root, above) for change in changes for above in _folders(change.path)}):
        found = tree.status(root, above)
        if (root, above) not in made and (found is None or not stat.S_ISDIR(found.st_mode)):
            raise StaleError(os.fsdecode(above))
        if found is not None and stat.S_ISDIR(found.st_mode):
            journal.open(tree, root, above, rights=_FOLDER_RIGHTS)


def _check_removed(tree: Tree, change: Difference, gone: set[tuple[int, bytes]], journal: _Journaling) -> None:
    """Make sure that a folder holds nothing but what goes with it."""
    journal.open(tree, change.root, change.path, rights=_FOLDER_RIGHTS)
    for name in tree.names(change.root, change.path):
        if (change.root, change.path + b"/" + name) not in gone:
            raise StaleError(os.fsdecode(change.path + b"/" + name))


def _folders(path: bytes) -> Iterator[bytes]:
    """Give the folders that a path is in, from the root on."""
    yield b"."
    parts = path.split(b"/")
    for count in range(1, len(parts)):
        yield b"/".join(parts[:count])


Content = Callable[[Difference], Iterable[bytes]]


class _Worker:
    """Turns every path from what it is into what it is to be. `patient`: what cannot be done is named, and left."""

    def __init__(self, tree: Tree, token: str, *, synced: bool, patient: bool = False) -> None:
        self.tree = tree
        self.token = token
        self.synced = synced
        self.patient = patient
        self.left: list[str] = []

    def go(self, changes: Sequence[Difference], content: Content) -> None:
        """Remove, then make folders, then files, then set modes; each from the inside or the outside as it must be."""
        for change in reversed(changes):
            was, new = change.before, change.after
            if was is not None and (new is None or (was.kind == "d") != (new.kind == "d")):
                with self.careful(change):
                    self.expect(change)
                    self.tree.remove(change.root, change.path, folder=was.kind == "d")
        for change in changes:
            if change.kinds[1] == "d" and change.kinds[0] != "d":
                with self.careful(change):
                    self.tree.make_folder(change.root, change.path)
        for change in changes:
            if change.kinds[1] in ("f", "l"):
                with self.careful(change):
                    self.put(change, content)
        for change in reversed(changes):
            if change.after is not None and change.after.kind == "d":
                with self.careful(change):
                    self.tree.set_mode(change.root, change.path, change.after.mode)

    def put(self, change: Difference, content: Content) -> None:
        """Put a file or a link where it belongs."""
        was, new = change.before, change.after
        if new is None:
            raise AssertionError("something is put here")
        over = was is not None and was.kind != "d"
        if over:
            self.expect(change)
        at = WriteTarget(change.root, change.path, temporary_for(self.token, change))
        if new.kind == "l":
            self.tree.link(at, bytes.fromhex(new.what), over=over)
        elif was is not None and was.kind == "f" and was.what == new.what:
            self.tree.set_mode(change.root, change.path, new.mode)
        else:
            self.tree.write(at, _verified(content(change), new.what), mode=new.mode, over=over, sync=self.synced)

    def expect(self, change: Difference) -> None:
        """Look once more, at the last moment, that what is replaced or removed is what was read."""
        if change.before is not None and change.before.kind != "d":
            found = self.tree.state(change.root, change.path)
            if found is None or (found.kind, found.what) != (change.before.kind, change.before.what):
                raise StaleError(os.fsdecode(change.path))

    @contextlib.contextmanager
    def careful(self, change: Difference) -> Iterator[None]:
        """Go on after a failure, where that is wanted."""
        try:
            yield
        except (OSError, StaleError) as error:
            if self.patient:
                self.left.append(os.fsdecode(change.path))
            elif isinstance(error, OSError) and error.errno in _STALE:
                raise StaleError(os.fsdecode(change.path)) from error
            else:
                raise


def _verified(content: Iterable[bytes], expected: str) -> Iterator[bytes]:
    """Pass bytes on, and fail at their end when they are not those that were shown."""
    digest = sha256()
    for data in content:
        digest.update(data)
        yield data
    if digest.hexdigest() != expected:
        raise OSError("what was kept of the change is damaged")


def temporary_for(token: str, change: Difference) -> bytes:
    """Name the file that becomes another one, so that it is known after a kill."""
    text = f"{token}:{change.root}:{change.name}"
    return f".treadle-{sha256(text.encode()).hexdigest()[:16]}.tmp".encode()


def take_back(folder: Path) -> tuple[str, ...]:
    """Undo what of the journal in a staging folder was done; gives the paths that somebody changed since, left alone.

    A folder without a journal needs nothing. Raises `OSError` when a root is gone.
    """
    journal = _read(folder)
    if journal is None:
        return ()
    tree = Tree([os.fsdecode(bytes.fromhex(root)) for root in journal.roots])
    try:
        for one in journal.opened:
            with contextlib.suppress(OSError):
                tree.set_mode(one.root, bytes.fromhex(one.name), one.mode | _FOLDER_RIGHTS)
        back: list[Difference] = []
        places: dict[tuple[int, str], ApplyStep] = {}
        left: list[str] = []
        for step in journal.steps:
            change = step.change
            tree.remove_temporary(WriteTarget(change.root, change.path, temporary_for(journal.token, change)))
            now = _state(tree, change)
            if not _is_ours(change, now):
                left.append(os.fsdecode(change.path))
            elif now != change.before:
                back.append(structs.replace(change, before=now, after=change.before))
                places[change.root, change.name] = step
        worker = _Worker(tree, journal.token, synced=True, patient=True)
        worker.go(back, lambda change: _old(folder, places[change.root, change.name]))
        for one in reversed(journal.opened):
            with contextlib.suppress(OSError):
                tree.set_mode(one.root, bytes.fromhex(one.name), one.mode)
        tree.sync()
    finally:
        tree.close()
    (folder / "journal").unlink(missing_ok=True)
    return tuple(dict.fromkeys([*left, *worker.left]))


def _read(folder: Path) -> Journal | None:
    try:
        return msgspec.json.decode((folder / "journal").read_bytes(), type=Journal)
    except (OSError, msgspec.MsgspecError):
        return None


def _state(tree: Tree, change: Difference) -> EntryState | None:
    """Look at a path; what cannot be read is something of its own."""
    try:
        return tree.state(change.root, change.path)
    except OSError:
        return EntryState("s", 0, "")


def _is_ours(change: Difference, now: EntryState | None) -> bool:
    """Whether a path is as it was, as it was to become, or between the two."""
    was, new = change.before, change.after
    if now is None:
        return was is None or new is None or (was.kind == "d") != (new.kind == "d")
    return any(state is not None and (state.kind, state.what) == (now.kind, now.what) for state in (was, new))


def _old(folder: Path, step: ApplyStep) -> Iterator[bytes]:
    """Read the old bytes of a file from the journal's other half."""
    with (folder / "old").open("rb") as file:
        file.seek(step.offset)
        left = step.size
        while left and (data := file.read(min(left, _CHUNK))):
            left -= len(data)
            yield data


def _explain(error: OSError | StaleError) -> str:
    if isinstance(error, StaleError):
        return (
            f"Nothing was applied: {str(error)!r} was changed while the command ran or after it. "
            "Those changes stay. Try the command again to base its changes on them."
        )
    return f"Nothing was applied: {error.strerror or error}. All files are as they were."
