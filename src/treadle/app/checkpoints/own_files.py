"""What of the files is a session's own work, read off its checkpoints: the one source of every figure of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import KnownChanges
from treadle.protocol.checkpoints import MOST_NAMED, CheckpointTaken, OwnTotal
from treadle.protocol.codec import encodable
from treadle.protocol.tools import FileChange
from treadle.workspace.checkpoints.own_work import OwnChange, OwnWork
from treadle.workspace.checkpoints.planning import Interval, WantedFile
from treadle.workspace.checkpoints.store import CheckpointStore
from treadle.workspace.files.names import logged_path, shown_name
from treadle.workspace.files.paths import may_be_there


class KeptRoot(Struct, frozen=True):
    """One folder of the workspace, and where its files are kept."""

    path: str
    kept: CheckpointStore

    def shown(self, path: bytes | str) -> str:
        """Give the whole path of what is in it, as it is shown."""
        return shown_name(f"{self.path}/{os.fsdecode(path)}")

    def logged(self, path: bytes) -> str:
        """Give the whole path of what is in it, as the log has it where a call reports a change."""
        return encodable(f"{self.path}/{os.fsdecode(path)}")


class OwnFiles:
    """The own work of a session in all roots of its workspace. Takes its checkpoints in order; raises `StoreError`."""

    def __init__(self, roots: Sequence[KeptRoot], taken: Iterable[CheckpointTaken] = ()) -> None:
        self._roots = roots
        self._begin()
        for one in taken:
            self.add(one)

    def _begin(self) -> None:
        self._works = [OwnWork(root.kept.listing, root.kept.read) for root in self._roots]
        self._steps: list[int] = []
        self._left: dict[tuple[int, bytes], OwnChange] = {}
        self._last: CheckpointTaken | None = None

    @property
    def n(self) -> int:
        """The number of the last checkpoint; 0 for none."""
        return 0 if self._last is None else self._last.n

    def add(self, taken: CheckpointTaken) -> list[tuple[int, bytes]]:
        """Take the next checkpoint; gives the paths that differ, each with the number of its root."""
        if len(taken.trees) != len(self._roots):
            self._begin()  # the session had other folders then
            return []
        last, self._last = self._last, taken
        self._steps.append(taken.step)
        return [] if last is None else self._add(last.trees, taken.trees, by_session=taken.moment.may_end_work)

    def look(self, trees: Sequence[str], *, by_session: bool) -> None:
        """Take the files as they are now, behind the last checkpoint."""
        if self._last is not None:
            self._add(self._last.trees, trees, by_session=by_session)

    def _add(self, old: Sequence[str], new: Sequence[str], *, by_session: bool) -> list[tuple[int, bytes]]:
        paths = [
            (number, path)
            for number, (work, before, after) in enumerate(zip(self._works, old, new, strict=True))
            for path in sorted(work.add(Interval(before=before, after=after, by_session=by_session)))
        ]
        for number, path in paths:
            change = self._works[number].change(path)
            self._left.pop((number, path), None)
            if change is not None:
                self._left[number, path] = change
        return paths

    def with_own_work(self, taken: CheckpointTaken, known: KnownChanges) -> CheckpointTaken:
        """Take the next checkpoint, and have it say what the session's and the turn's work is where that is not known.

        It names all of it where what is known is not of the checkpoint before, such as after a way back.
        """
        paths = self.add(taken)
        if known.n != taken.n - 1:
            paths = sorted({*paths, *self._left})
        # Between checkpoints 1 and n lie n - 1 intervals; those of steps before the turn are not the turn's.
        earlier = max(0, sum(step < known.first_step for step in self._steps) - 1)
        return replace(
            taken,
            own=tuple(islice(self._news(paths, known.session, 0), MOST_NAMED)),
            turn=tuple(islice(self._news(paths, known.turn, earlier), MOST_NAMED)),
            total=self.total,
        )

    @property
    def total(self) -> OwnTotal:
        """How much is left of the session's work."""
        left = self._left.values()
        return OwnTotal(
            files=len(left), added=sum(one.added or 0 for one in left), removed=sum(one.removed or 0 for one in left)
        )

    def _news(
        self, paths: Sequence[tuple[int, bytes]], known: Iterable[FileChange], since: int
    ) -> Iterator[FileChange]:
        """Give what these files are now, and of those that are known what is not so any more."""
        left = {one.path: one for one in known}
        for number, path in paths:
            left.pop(self._roots[number].logged(path), None)
            yield self._file_change(number, path, since)
        for reported, one in left.items():
            found = self._covered(reported)
            if found is not None and (now := self._file_change(*found, since)) != one:
                yield now

    def _covered(self, reported: str) -> tuple[int, bytes] | None:
        """Find a file that was reported; None for one that is there and that checkpoints do not cover."""
        path = logged_path(reported)
        gone = not may_be_there(path)
        for number, (root, work) in enumerate(zip(self._roots, self._works, strict=True)):
            if path.startswith(f"{root.path}/"):
                below = os.fsencode(path.removeprefix(f"{root.path}/"))
                tree = "" if self._last is None else self._last.trees[number]
                if gone or work.knows(below) or root.kept.holds(tree, below):
                    return number, below
        return None

    def _file_change(self, number: int, path: bytes, since: int) -> FileChange:
        change = self._works[number].change(path, since)
        logged = self._roots[number].logged(path)
        return _nothing(logged) if change is None else _file_change(logged, change)

    def change(self, number: int, path: bytes) -> OwnChange | None:
        """Give what is left of the session's change of a path; None for nothing."""
        return self._left.get((number, path))

    def without(self, number: int, path: bytes) -> WantedFile:
        """Give what a path would be without the session's changes. Raises `ClashError` where nobody can tell."""
        return self._works[number].without(path)


def _nothing(path: str) -> FileChange:
    return FileChange(path=path, before="", after="")


def _file_change(path: str, change: OwnChange) -> FileChange:
    after = "" if change.after is None else change.after.what
    return FileChange(
        path=path, before=change.before, after=after, added=change.added or 0, removed=change.removed or 0
    )
