"""The seam to what hands tasks to workers and remembers their five steps, and who is taken for dead.

An engine only says who should work on what. Whether somebody still may is the number of the claim (`fleet_state`), so
an engine may give a task twice.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from treadle.door.opening import is_process_gone
from treadle.headless.fleet.fleet_database import FleetDatabase, Transaction

TASK_STEPS = ("prepare", "run", "collect", "check", "report")
"""What an engine keeps a journal of; everything else is in the session's log."""

LOOKS = 6
"""So many looks in a row at a worker have to find it as it was before it is taken for dead."""

LOOKS_AT_GONE = 2
"""So many suffice where its process has ended on this computer. One look alone could miss a beat of a process that
another computer of the same name has."""

_WATCHED = 3


class FleetEngine(Protocol):
    """The six calls. A task is named `RUN/ID/N`: the N-th time that it is begun anew by order."""

    def submit(self, run: str, names: Sequence[str]) -> None:
        """Let workers have these tasks, in this order; a name that is known already changes nothing."""
        ...

    def claim(self, run: str, room: int) -> str | None:
        """Give the name of a task of a run, which this worker has from now on; `room` is how many more it could do.

        This and `finish` raise `EngineGoneError`, too.
        """
        ...

    def beat(self) -> None:
        """Say that this worker lives, and take what the dead had. Raises `TakenForDeadError`."""
        ...

    def finish(self, name: str, step: str) -> None:
        """Note that a step of a task is done; a task whose `report` is done has ended."""
        ...

    def cancel(self, names: Sequence[str]) -> None:
        """Let nobody begin these tasks any more."""
        ...

    def list(self, run: str) -> Collection[str]:
        """Name the tasks of a run that were submitted."""
        ...


class OpenEngine(FleetEngine, Protocol):
    """An engine that a worker has open; `descriptor` is a file that its forks have to close, or -1."""

    descriptor: int

    def close(self) -> None:
        """Let others have what this worker has, and end."""
        ...


class TakenForDeadError(Exception):
    """Others took this worker for dead: it was stopped, or too slow, and has nothing any more."""


class EngineGoneError(TakenForDeadError):
    """The process of the engine has ended though it had worked: others get what this worker has."""


class WorkerRing:
    """Workers that watch each other without a clock: each counts its own beats, and sees whether those of others move.

    Each watches the next few by name, so that the work of watching stays the same however many there are. What passed
    between two looks does not count, so one that was stopped takes nobody for dead when it goes on.
    """

    def __init__(self, database: FleetDatabase, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._seen: dict[str, tuple[int, int]] = {}

    def join(self) -> None:
        """Begin to live, or go on under a name that is there."""
        self._database.transact(
            lambda one: one.change(
                "INSERT INTO treadle_workers (worker, beats) VALUES (?, 1) "
                "ON CONFLICT (worker) DO UPDATE SET beats = treadle_workers.beats + 1",
                self._worker,
            )
        )

    def beat(self) -> list[str]:
        """Say that this worker lives; gives who is taken for dead, or has gone. Raises `TakenForDeadError`."""

        def beaten(one: Transaction) -> list[tuple[str, int]]:
            if not one.change("UPDATE treadle_workers SET beats = beats + 1 WHERE worker = ?", self._worker):
                raise TakenForDeadError
            after = one.all(
                "SELECT worker, beats FROM treadle_workers WHERE worker > ? ORDER BY worker LIMIT ?",
                self._worker,
                _WATCHED,
            )
            rest = _WATCHED - len(after)
            first = one.all(
                "SELECT worker, beats FROM treadle_workers WHERE worker < ? ORDER BY worker LIMIT ?", self._worker, rest
            )
            return [*after, *first]

        seen = {}
        for worker, beats in self._database.transact(beaten):
            before, looks = self._seen.get(worker, (None, 0))
            seen[worker] = (beats, looks + 1 if before == beats else 0)
        self._seen = seen
        return [worker for worker, (beats, looks) in seen.items() if beats < 0 or looks >= self._patience(worker)]

    @staticmethod
    def _patience(worker: str) -> int:
        return LOOKS_AT_GONE if is_process_gone(worker) else LOOKS

    def leave(self) -> None:
        """Say that this worker is gone: others need not wait to take what it has."""
        self._database.transact(
            lambda one: one.change("UPDATE treadle_workers SET beats = -1 WHERE worker = ?", self._worker)
        )

    def bury(self, workers: Sequence[str]) -> None:
        """Forget the dead, and let others hold what they held."""
        self._database.transact(lambda one: _forget(one, workers))


def _forget(one: Transaction, workers: Sequence[str]) -> None:
    one.many("DELETE FROM treadle_workers WHERE worker = ?", [(worker,) for worker in workers])
    one.change(
        "UPDATE treadle_tasks SET state = 'waiting' WHERE state = 'held' AND NOT EXISTS "
        "(SELECT 1 FROM treadle_workers w WHERE w.worker = treadle_tasks.worker)"
    )


class OwnEngine:
    """A queue in the table of the tasks: it needs nothing but the database."""

    descriptor = -1

    def __init__(self, database: FleetDatabase, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._ring = WorkerRing(database, worker)
        self._joined = False

    def submit(self, run: str, names: Sequence[str]) -> None:
        """Nothing is left to do: a task that is in the table and waits can be claimed."""

    def claim(self, run: str, room: int) -> str | None:
        """Take the first task that waits."""
        if room < 1:
            return None

        def take(one: Transaction) -> str | None:
            skip = " FOR UPDATE SKIP LOCKED" if one.is_postgres else ""
            found = one.one(
                "SELECT id, again FROM treadle_tasks WHERE run = ? AND state = 'waiting' "  # noqa: S608
                f"ORDER BY number LIMIT 1{skip}",
                run,
            )
            if found is None:
                return None
            one.change(
                "UPDATE treadle_tasks SET state = 'held', worker = ? WHERE run = ? AND id = ?",
                self._worker,
                run,
                found[0],
            )
            return task_name(run, found[0], found[1])

        return self._database.transact(take)

    def beat(self) -> None:
        """Count on, and let the tasks of the dead wait again."""
        if not self._joined:
            self._ring.join()
            self._joined = True
        if dead := self._ring.beat():
            self._ring.bury(dead)

    def finish(self, name: str, step: str) -> None:
        """Nothing is left to do: the state of the task has its step, and its end."""

    def cancel(self, names: Sequence[str]) -> None:
        """Nothing is left to do: a task that has ended is not claimed."""

    def list(self, run: str) -> Collection[str]:
        """Name all tasks of the table."""
        rows = self._database.transact(lambda one: one.all("SELECT id, again FROM treadle_tasks WHERE run = ?", run))
        return [task_name(run, *row) for row in rows]

    def close(self) -> None:
        """Let what this worker has wait again."""
        if self._joined:
            self._ring.bury([self._worker])


def task_name(run: str, task_id: str, again: int) -> str:
    """Name a task to an engine."""
    return f"{run}/{task_id}/{again}"


def id_of(name: str) -> str:
    """Give the id of the task that has a name."""
    return name.split("/")[1]
