"""Tasks that are added to a batch: lines that a person, or the page, appends to a file in its folder.

The file is read when the batch begins and as long as it works. A line that is wrong stops nothing: it is named, and
left out.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from treadle.door.reports import ADDED_TASKS
from treadle.headless.batch.batch_tasks import BatchTask, read_line


class AddedTasks:
    """The file of a batch's folder, as far as it was read. `beside` is the folder that a `repo` is relative to.

    `check` says why a task cannot be done, and nothing of one that can. `taken` are the ids of all tasks, in small
    letters. `lines` counts the whole lines that were read,
    `refused` says what is wrong with those that are left out, by their number.
    """

    def __init__(
        self,
        folder: Path,
        beside: Path,
        repositories: Path | None,
        *,
        taken: Iterable[BatchTask],
        check: Callable[[BatchTask], str],
    ) -> None:
        self.file = folder / ADDED_TASKS
        self._check = check
        self._beside, self._repositories = beside, repositories
        self.taken = {task.id.lower() for task in taken}
        self._read = 0
        self.lines = 0
        self.refused: dict[int, str] = {}

    def new(self) -> list[BatchTask]:
        """Give the tasks of the lines that were added since; one that is half-written is read when it is whole.

        Raises `OSError` where the file is there and cannot be read: what is in it is not known.
        """
        return [task for number, line in self._new_lines() if (task := self._task(number, line)) is not None]

    def _new_lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            if self.file.stat().st_size <= self._read:
                return
        except FileNotFoundError:
            return
        with self.file.open("rb") as stream:
            stream.seek(self._read)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.split(b"\n")[:-1]:
            self.lines += 1
            if line.strip():
                yield self.lines, line

    def _task(self, number: int, line: bytes) -> BatchTask | None:
        task = read_line(line, self._beside, self._repositories)
        if isinstance(task, str):
            self.refused[number] = task
            return None
        if why := f"The id {task.id!r} is taken." if task.id.lower() in self.taken else self._check(task):
            self.refused[number] = why  # its id is free for a line that is right
            return None
        self.taken.add(task.id.lower())
        return task
