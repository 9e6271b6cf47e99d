"""The folder of a batch: results and predictions, a line for each task that ended, and what is known of the others.

A row is written and synced as one line; of a line that a killed program left half-written nothing stays.
"""

import fcntl
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Literal, TypeVar

import msgspec

from treadle.door.program import write_private, write_whole
from treadle.door.reports import BATCH_ABOUT
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError

RESULTS, PREDICTIONS = "results.jsonl", "predictions.jsonl"
_PLAIN = 0o666
"""What a file may be, before the user's mask."""

_LOCK = ".lock"

FOLDER_WAITS = 30.0
"""Seconds in which the workers of a batch that was killed have to be gone."""

_ROOM = 1024 * 1024
"""Bytes that there has to be room for where a task goes on."""

TaskEnd = Literal["done", "failed", "error", "skipped"]

_Line = TypeVar("_Line")


class TaskRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How a task ended. `failed` is the model's failure, `error` that of us, the provider or the environment.

    `cost` is US dollars, None where a part is not known; `patch_sha256` is None where no patch was made. `why` names
    what failed where the state is `error`.
    """

    id: str
    state: TaskEnd
    kind: str = ""
    cost: float | None = 0.0
    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    session: str = ""
    patch_sha256: str | None = None
    why: str = ""


class Prediction(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A patch as SWE-bench reads it."""

    instance_id: str
    model_name_or_path: str
    model_patch: str


class TaskBegun(Record, frozen=True, kw_only=True):
    """What is known of a task that was begun: its attempt, its session, and its copy once that is there.

    `digest` is that of the task as it was then. When so many turns of the session have ended as `goes_on_after` says,
    it goes on all the same, unless the last one has done the task. `unpriced`: what an attempt before this one cost is
    not known; in a fleet also what this one cost.
    """

    digest: str
    session: str
    attempt: int = 1
    tree: str = ""
    goes_on_after: int = 0
    unpriced: bool = False


class _About(Record, frozen=True, kw_only=True):
    run: str


class BatchFolder:
    """One folder, held by one batch and its workers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = ""
        self._lock: IO[str] | None = None

    @contextmanager
    def held(self, waits: Callable[[], None]) -> Iterator[None]:
        """Make or take the folder, and learn the name of its `run`. `waits` is called once if others still hold it.

        Workers that are forked meanwhile hold it, too. Raises `ConfigError`.
        """
        try:
            self._hold(waits)
            yield
        finally:
            if self._lock is not None:
                self._lock.close()

    def _hold(self, waits: Callable[[], None]) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / _LOCK).open("w")
            self._wait(waits)
            self.run = self._run_name()
        except OSError as error:
            raise ConfigError(
                "batch-folder", f"{self.path} cannot be used.", why=str(error), fix="Name another folder with --out."
            ) from error

    def _wait(self, waits: Callable[[], None]) -> None:
        assert self._lock is not None  # noqa: S101 - it is opened before
        end = time.monotonic() + FOLDER_WAITS
        told = False
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > end:
                    raise ConfigError(
                        "batch-busy",
                        f"Another batch works in {self.path}.",
                        why="It, or one of its workers, has the folder open.",
                        fix="Wait until it ends, or stop it with Ctrl-C, then start again: finished tasks are kept.",
                    ) from error
                if not told:
                    waits()
                told = True
                time.sleep(0.1)
            else:
                return

    def _run_name(self) -> str:
        about = self.path / BATCH_ABOUT
        if about.is_file():
            try:
                return msgspec.json.decode(about.read_bytes(), type=_About).run
            except msgspec.MsgspecError as error:
                raise ConfigError(
                    "batch-folder", f"{about} is damaged.", why=f"{error}.", fix="Name another folder with --out."
                ) from error
        if (self.path / RESULTS).exists():
            raise ConfigError(
                "batch-folder",
                f"{self.path} has a {RESULTS} that is not from a batch of Treadle.",
                why=f"There is no {BATCH_ABOUT} beside it.",
                fix="Name another folder with --out.",
            )
        run = f"batch-{time.strftime('%Y%m%d', time.gmtime())}-{os.urandom(4).hex()}"
        write_private(about, msgspec.json.encode(_About(run=run)), mode=_PLAIN)
        return run

    def results(self) -> dict[str, TaskRow]:
        """Read the results by id, without a line that is not whole; predictions of no result go with it.

        Raises `ConfigError`.
        """
        rows = {row.id: row for row in self._read(RESULTS, TaskRow)}
        predictions = {row.instance_id: row for row in self._read(PREDICTIONS, Prediction)}
        if predictions.keys() - rows.keys():
            self._rewrite(PREDICTIONS, [row for name, row in predictions.items() if name in rows])
        return rows

    def forget(self, ids: Collection[str]) -> None:
        """Remove the rows of tasks that are to be done again. Raises `ConfigError`."""
        rows = [row for row in self._read(RESULTS, TaskRow) if row.id not in ids]
        predictions = [row for row in self._read(PREDICTIONS, Prediction) if row.instance_id not in ids]
        self._rewrite(RESULTS, rows)
        self._rewrite(PREDICTIONS, predictions)

    def add(self, result: TaskRow, prediction: Prediction | None) -> None:
        """Write how a task ended, all of it or nothing; it has ended once its result is there. Raises `ConfigError`."""
        before: list[tuple[Path, int]] = []
        with _written(self.path / RESULTS):
            try:
                for name, row in ((PREDICTIONS, prediction), (RESULTS, result)):
                    if row is not None:
                        with (self.path / name).open("ab", buffering=0) as stream:
                            before.append((self.path / name, stream.seek(0, os.SEEK_END)))
                            write_whole(stream.fileno(), msgspec.json.encode(row) + b"\n")
                            os.fsync(stream.fileno())
            except OSError:
                for file, size in before:  # a full disk leaves no half of a row
                    os.truncate(file, size)
                raise

    def begun(self, task_id: str) -> TaskBegun | None:
        """Give what is known of a task that was begun; None where it was not. Raises `ConfigError`."""
        file = self.path / "tasks" / f"{task_id}.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=TaskBegun)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                "batch-folder",
                f"What is known of the task {task_id} cannot be read.",
                why=f"{file}: {getattr(error, 'strerror', None) or error}.",
                fix="Make the file readable. Or move it away: then the task starts again from the beginning.",
            ) from error

    def note(self, task_id: str, begun: TaskBegun) -> None:
        """Keep what is known of a task. Raises `ConfigError`."""
        file = self.path / "tasks" / f"{task_id}.json"
        with _written(file):
            write_private(file, msgspec.json.encode(begun), mode=_PLAIN)

    def noted(self) -> Iterator[tuple[str, TaskBegun]]:
        """Give the tasks that were begun, with their ids. Raises `ConfigError`."""
        for file in (self.path / "tasks").glob("[!.]*.json"):
            if (begun := self.begun(file.stem)) is not None:
                yield file.stem, begun

    def file(self, folder: str, name: str) -> Path:
        """Give the place of a file, whose folder is there."""
        (self.path / folder).mkdir(exist_ok=True)
        return self.path / folder / name

    def keep(self, folder: str, name: str, data: bytes) -> None:
        """Write a file of a task. Raises `ConfigError`."""
        with _written(self.path / folder / name):
            self.file(folder, name).write_bytes(data)

    def _read(self, name: str, kind: type[_Line]) -> list[_Line]:
        file = self.path / name
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with file.open("r+b") as stream:
                stream.truncate(len(whole))
                os.fsync(stream.fileno())
        rows: list[_Line] = []
        for number, line in enumerate(whole.split(b"\n"), 1):
            if line.strip(b"\0 \r\t"):  # a power cut may leave a hole
                try:
                    rows.append(msgspec.json.decode(line, type=kind))
                except msgspec.MsgspecError as error:
                    raise ConfigError(
                        "batch-folder",
                        f"Line {number} of {file} cannot be read.",
                        why=f"{error}.",
                        fix="Remove that line: its task is done again then.",
                    ) from error
        return rows

    def _rewrite(self, name: str, rows: Iterable[TaskRow | Prediction]) -> None:
        with _written(self.path / name):
            data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            write_private(self.path / name, data, mode=_PLAIN)


@contextmanager
def _written(file: Path) -> Iterator[None]:
    """Name a file that cannot be written, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            "batch-folder",
            f"{file} cannot be written.",
            why=f"{error.strerror or error}.",
            fix="Free space on the disk, then give the same command again: it continues.",
        ) from error


def why_unwritable(*folders: Path) -> str:
    """Say which of some folders nothing can be kept in, as on a full disk, and why; empty where all can be written."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder, buffering=0) as file:
                write_whole(file.fileno(), bytes(_ROOM))
                os.fsync(file.fileno())
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror or error}."
    return ""


def is_meant(row: TaskRow, words: Collection[str]) -> bool:
    """Whether a row is of one of these kinds: a state, a kind, or what it begins with, such as `provider`."""
    return any(word in (row.state, row.kind) or row.kind.startswith(f"{word}-") for word in words)
