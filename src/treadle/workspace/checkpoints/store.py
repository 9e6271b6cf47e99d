"""The checkpoints of one workspace root, kept in a private folder outside of it; everything here is for a thread."""

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ConfigError, StoreError
from treadle.workspace.checkpoints.comparing import TreeChange, compare_trees, unified_diff
from treadle.workspace.checkpoints.objects import Objects
from treadle.workspace.checkpoints.planning import Interval, PlannedWrite, RestorePlan, plan_the_restore, rights_above
from treadle.workspace.checkpoints.restoring import HowFar, Restorer, RestoreReport, unheard
from treadle.workspace.checkpoints.revising import RevisedTree, Revisions, revise_tree
from treadle.workspace.checkpoints.scanning import TOO_MUCH_IGNORED, FolderMemory, NotCovered, Scanner
from treadle.workspace.checkpoints.trees import (
    LARGEST_KEPT,
    TreeEntry,
    TreeKind,
    TreeListing,
    flat_tree,
    tree_differences,
)
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.files.temporary_files import TemporaryFiles
from treadle.workspace.sandbox.profile import is_within

_DATABASE = "checkpoints.db"
_PATIENCE = 30.0
_PAUSE = 0.02
_NOTED = TemporaryFiles()
_FOLDER = "checkpoints-folder-used"


class TakenTree(Struct, frozen=True, kw_only=True):
    """The tree of a root at a point in time, and what it does not hold; `notice` is for a person, mostly empty."""

    tree: str
    not_covered: tuple[NotCovered, ...] = ()
    notice: str = ""


def open_checkpoints(
    folder: Path,
    root: str,
    *,
    covers_ignored: bool = False,
    largest: int = LARGEST_KEPT,
    patience: float = _PATIENCE,
    packs: bool = True,
) -> "CheckpointStore":
    """Open or make the store in a private folder for one root (absolute and resolved).

    One that `packs` takes less room, and many times as long for what is new to it.
    Raises `ConfigError` for a root that cannot have checkpoints: the home folder, what it lies in, or a folder that
    holds the store or lies beside it in the store's folder.
    """
    place, home = os.path.realpath(folder), os.path.realpath(Path.home())
    why = ""
    if is_within(home, root):
        why = "It is your home folder, or your home folder is in it."
    elif is_within(place, root):
        why = "Treadle keeps its data in it."
    elif is_within(root, place):
        why = "It is in Treadle's own data."
    elif {"HEAD", "objects", "refs"} <= set(os.listdir(root)):  # noqa: PTH208 - names are enough
        why = "It is the data of a git repository."
    if why:
        raise ConfigError(
            "checkpoints-root",
            f"{root} cannot have checkpoints.",
            why=why,
            fix="Start Treadle in the folder of a project.",
        )
    return CheckpointStore(
        Path(place), root, covers_ignored=covers_ignored, largest=largest, patience=patience, packs=packs
    )


class CheckpointStore:
    """See `open_checkpoints`. Methods wait for a process that uses the same store, and raise `StoreError`."""

    def __init__(
        self, folder: Path, root: str, *, covers_ignored: bool, largest: int, patience: float, packs: bool = True
    ) -> None:
        self._folder = folder
        self._root = root
        self._covers_ignored = covers_ignored
        self._largest = largest
        self._patience = patience
        self._packs = packs
        self._alone = threading.RLock()
        self._objects: Objects | None = None
        self._memory = FolderMemory()

    def close(self) -> None:
        """Close the database; it is opened again when it is needed."""
        with self._alone:
            if self._objects is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._objects.close()
            self._objects = None

    def take(self, ref: str) -> TakenTree:
        """Store the files as they are now, kept under `ref`. The same files give the same tree.

        A store that is damaged is set aside, and a new one begun, which the notice says.
        """
        with self._using():
            try:
                return self._take(ref, "")
            except (sqlite3.DatabaseError, StoreError) as error:
                if not _is_damage(error):
                    raise
                return self._take(ref, self._set_aside())

    def _take(self, ref: str, notice: str) -> TakenTree:
        objects = self._open()
        self._memory.load(objects)
        with objects.transaction():
            before = self._memory.folders
            scanner = Scanner(
                objects, self._memory, self._root, covers_ignored=self._covers_ignored, largest=self._largest
            )
            try:
                tree = scanner.scan()
                self._memory.save(objects, scanner.folders)
                objects.name(ref, tree)
            except BaseException:
                self._memory.folders = before
                self._memory.pruned = -1
                raise
        for path in scanner.newly_too_much:
            notice = (
                f"{notice} {shown_name(path)} is in no checkpoint, and /undo does not restore it. {TOO_MUCH_IGNORED}"
            )
        return TakenTree(tree=tree, not_covered=tuple(scanner.not_covered), notice=notice.strip())

    def compare(self, old: str, new: str) -> tuple[TreeChange, ...]:
        """Give each path that differs between two trees."""
        with self._using():
            return compare_trees(old, new, self._open().listing, self._open().blob)

    def diff(self, old: str, new: str) -> str:
        """Write a unified diff of two trees."""
        with self._using():
            return unified_diff(old, new, self._open().listing, self._open().blob)

    def listing(self, tree: str) -> TreeListing:
        """Give what is directly in a folder."""
        with self._using():
            return self._open().listing(tree)

    def holds(self, tree: str, path: bytes) -> bool:
        """Whether something is in a tree."""
        return self.entry(tree, path) is not None

    def entry(self, tree: str, path: bytes) -> TreeEntry | None:
        """Give what a path is in a tree; None where it is not there."""
        with self._using():
            *above, name = path.split(b"/")
            for folder in above:
                entry = self._open().listing(tree).get(folder) if tree else None
                tree = entry.what if entry is not None and entry.kind is TreeKind.FOLDER else ""
            return self._open().listing(tree).get(name) if tree else None

    def read(self, blob: str) -> bytes:
        """Give the bytes of a file, or the target of a link, by the `what` of an entry."""
        with self._using():
            return self._open().blob(blob)

    def paths(self, old: str, new: str) -> frozenset[bytes]:
        """Give the paths that differ between two trees, without a look into files."""
        with self._using():
            return frozenset(path for path, _, _ in tree_differences(old, new, self._open().listing))

    def revise(self, ref: str, tree: str, revisions: Revisions) -> RevisedTree:
        """Store a tree with other files at some paths, kept under `ref`."""
        with self._using(), (objects := self._open()).transaction():
            revised = revise_tree(tree, revisions, objects)
            objects.name(ref, revised.tree)
            return revised

    def keep(self, ref: str, tree: str) -> None:
        """Keep a tree that is stored under one more name."""
        with self._using(), (objects := self._open()).transaction():
            objects.listing(tree)
            objects.name(ref, tree)

    def plan_restore(
        self, target: str, now: str, history: Sequence[Interval], *, held_ignored: bool = True
    ) -> RestorePlan:
        """Plan how to take back what the session did since `target`; see `planning.plan_the_restore`.

        `held_ignored`: the target holds what git ignored then.
        """
        with self._using():
            objects = self._open()
            readers = (objects.listing, objects.blob)
            return plan_the_restore(
                target, now, history, readers, covers_ignored=self._covers_ignored, held_ignored=held_ignored
            )

    def apply(
        self,
        plan: RestorePlan,
        *,
        temporary_files: TemporaryFiles = _NOTED,
        into: Path | None = None,
        how_far: HowFar = unheard,
    ) -> RestoreReport:
        """Do what a plan says (in a copy of the root, `into`), but for what changed since, whatever of it fails."""
        with self._using():
            return Restorer(str(into or self._root), self._open().blob, temporary_files, how_far).carry_out(plan)

    def extract(self, tree: str, folder: Path) -> RestoreReport:
        """Write a whole tree into an empty folder. Raises `ConfigError` where it is none, or something is in it."""
        other = "Choose another folder; nothing was written."
        try:
            folder.mkdir(parents=True, exist_ok=True)
            used = any(folder.iterdir())
        except OSError as error:
            why = "A file is there." if folder.is_file() else f"{error.strerror}."
            raise ConfigError(_FOLDER, f"{folder} cannot be used as a folder.", why=why, fix=other) from error
        if used:
            raise ConfigError(_FOLDER, f"{folder} is not empty.", fix=other)
        with self._using():
            files = flat_tree(tree, self._open().listing)
            writes = tuple(
                PlannedWrite(path=path, entry=entry, now=None)
                for path, entry in files.items()
                if entry.kind is not TreeKind.NOT_COVERED
            )
            plan = RestorePlan(writes=writes, rights=rights_above(writes, tree, self._open().listing))
            return Restorer(str(folder), self._open().blob, _NOTED).carry_out(plan)

    def tree_of(self, ref: str) -> str | None:
        """Give the tree that is kept under a name; None where there is none."""
        with self._using():
            return next((tree for name, tree, _ in self._open().refs() if name == ref), None)

    def names(self, prefix: str) -> frozenset[str]:
        """Give what follows the prefix in the names under which trees are kept."""
        with self._using():
            return frozenset(name.removeprefix(prefix) for name, _, _ in self._open().refs() if name.startswith(prefix))

    def forget(self, prefix: str) -> None:
        """Keep no longer what has a name that begins so; `prune` gives the space back."""
        with self._using(), (objects := self._open()).transaction():
            names = [(name,) for name, _, _ in objects.refs() if name.startswith(prefix)]
            objects.connection.executemany("DELETE FROM refs WHERE name = ?", names)

    def copy_refs(self, old_prefix: str, new_prefix: str, keep: Callable[[str], bool]) -> None:
        """Keep the trees of one prefix under another one too, those whose rest of the name `keep` says."""
        with self._using(), (objects := self._open()).transaction():
            for name, tree, number in objects.refs():
                rest = name.removeprefix(old_prefix)
                if name.startswith(old_prefix) and keep(rest):
                    row = (new_prefix + rest, tree, number)
                    objects.connection.execute("INSERT OR REPLACE INTO refs VALUES (?, ?, ?)", row)

    def prune(self, most_bytes: int) -> tuple[str, ...]:
        """Remove the oldest until the rest takes at most so many bytes, the newest excepted; gives their names."""
        with self._using():
            objects = self._open()
            gone = objects.keep_newest(most_bytes)
            objects.compact()
            return gone

    def size(self) -> int:
        """Give the bytes that the store takes on the disk, with what was set aside."""
        found = (self._folder.iterdir()) if self._folder.is_dir() else ()
        return sum(each.stat().st_size for each in found if each.is_file())

    def _open(self) -> Objects:
        if self._objects is None:
            self._objects = Objects(self._folder / _DATABASE, packs=self._packs)
        return self._objects

    def _set_aside(self) -> str:
        self.close()
        self._memory = FolderMemory()
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(2).hex()}"
        aside = self._folder / f"{_DATABASE}.broken-{stamp}"
        (self._folder / _DATABASE).rename(aside)
        for ending in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / f"{_DATABASE}{ending}").rename(f"{aside}{ending}")
        return f"The earlier checkpoints are damaged; they are kept in {aside}. New ones begin here."

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        """Be the only one that uses the store, in this process and of all."""
        with self._alone:
            try:
                with self._locked():
                    yield
            except sqlite3.Error as error:
                self.close()
                raise _explained(error, self._folder) from error
            except OSError as error:
                raise _explained(error, self._folder) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        make_private_folder(self._folder)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + self._patience
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise StoreError(
                            "checkpoints-busy",
                            f"The checkpoints of {self._root} are in use by another process.",
                            why=f"It did not finish within {self._patience:.0f} seconds.",
                            fix="Try again when the other Treadle is done.",
                        ) from None
                    time.sleep(_PAUSE)
            yield
        finally:
            os.close(descriptor)


def _is_damage(error: Exception) -> bool:
    if isinstance(error, StoreError):
        return error.code == "checkpoints-damaged"
    return not isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError) or "malformed" in str(error)


def _explained(error: sqlite3.Error | OSError, folder: Path) -> StoreError:
    """Say what is wrong with the disk or the database."""
    return StoreError(
        "checkpoints-unusable",
        "The checkpoints cannot be used.",
        why=f"{folder}: {error.strerror if isinstance(error, OSError) else error}.",
        fix="Free space on the disk, and make sure that the folder can be written. Your files were not changed.",
    )
