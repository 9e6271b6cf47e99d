"""Absurd as the engine of a fleet: functions in PostgreSQL that hand out tasks with leases, by the server's clock.

Its schema is installed once, by `absurdctl init`; what is called here are its documented functions.
"""

import json
from collections.abc import Collection, Sequence

from treadle.headless.fleet.fleet_database import FleetDatabase, Transaction
from treadle.headless.fleet.fleet_engine import TASK_STEPS
from treadle.protocol.errors import ConfigError

_QUEUE = "treadle"
"""Its tables are `t_treadle` and `r_treadle`."""
_ATTEMPTS = 1_000_000
"""A task is given out so often: whether it may go on is Treadle's to say."""


class AbsurdEngine:
    """The six calls. A claim lasts `lease` seconds after each beat."""

    descriptor = -1

    def __init__(self, database: FleetDatabase, worker: str, lease: float) -> None:
        self._database = database
        self._worker = worker
        self._lease = max(1, round(lease))
        self._held: dict[str, tuple[str, str]] = {}
        self._others: list[str] = []
        if not database.is_postgres or not self._is_installed():
            raise ConfigError(
                "fleet-engine",
                "Absurd, the engine of this fleet, is not in the database.",
                why="It is a schema of PostgreSQL." if not database.is_postgres else "There is no schema `absurd`.",
                fix="Install it with `absurdctl init`, or start with another --engine.",
            )
        self._call("SELECT absurd.create_queue(?)", _QUEUE)

    def _is_installed(self) -> bool:
        return bool(self._database.transact(lambda one: one.one("SELECT to_regnamespace('absurd') IS NOT NULL"))[0])

    def _call(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self._database.transact(lambda one: one.all(statement, *values))

    def submit(self, run: str, names: Sequence[str]) -> None:
        """Spawn a task for each, once."""

        def spawn(one: Transaction) -> None:
            for name in names:
                options = {"max_attempts": _ATTEMPTS, "idempotency_key": name, "headers": {"run": run}}
                one.all("SELECT task_id FROM absurd.spawn_task(?, ?, ?, ?)", _QUEUE, name, "{}", json.dumps(options))

        self._database.transact(spawn)

    def claim(self, run: str, room: int) -> str | None:
        """Claim the next task; one of another run is kept until that is worked on."""
        found = next((name for name in self._others if name.startswith(f"{run}/")), None)
        if found is not None:
            self._others.remove(found)
            return found
        if room < 1:
            return None
        rows = self._call(
            "SELECT task_name, task_id::text, run_id::text FROM absurd.claim_task(?, ?, ?, 1)",
            _QUEUE,
            self._worker,
            self._lease,
        )
        for name, task, own in rows:
            self._held[str(name)] = (str(task), str(own))
            if not str(name).startswith(f"{run}/"):
                self._others.append(str(name))
                return None
            return str(name)
        return None

    def beat(self) -> None:
        """Keep the claims; what was lost meanwhile is somebody else's, as whoever works on it here finds out."""

        def keep(one: Transaction) -> None:
            for name, (_, own) in tuple(self._held.items()):
                if _is_ours(one, own):
                    one.all("SELECT absurd.extend_claim(?, ?::uuid, ?)", _QUEUE, own, self._lease)
                else:
                    del self._held[name]

        self._database.transact(keep)

    def finish(self, name: str, step: str) -> None:
        """Write a checkpoint; the last one completes the run."""
        if name not in self._held:
            return
        task, own = self._held[name]

        def write(one: Transaction) -> None:
            if not _is_ours(one, own):
                return
            one.all(
                "SELECT absurd.set_task_checkpoint_state(?, ?::uuid, ?, 'true', ?::uuid, ?)",
                _QUEUE,
                task,
                step,
                own,
                self._lease,
            )
            if step == TASK_STEPS[-1]:
                one.all("SELECT absurd.complete_run(?, ?::uuid, 'true')", _QUEUE, own)

        self._database.transact(write)
        if step == TASK_STEPS[-1]:
            self._held.pop(name, None)

    def cancel(self, names: Sequence[str]) -> None:
        """Cancel the tasks of these names."""

        def stop(one: Transaction) -> None:
            for name in names:
                for (task,) in one.all("SELECT task_id FROM absurd.t_treadle WHERE task_name = ?", name):
                    one.all("SELECT absurd.cancel_task(?, ?)", _QUEUE, task)

        self._database.transact(stop)

    def list(self, run: str) -> Collection[str]:
        """Name the tasks of a run."""
        rows = self._call("SELECT task_name FROM absurd.t_treadle WHERE task_name LIKE ?", f"{run}/%")
        return [str(name) for (name,) in rows]

    def close(self) -> None:
        """Let others have the claims at once, without an error that counts."""

        def give(one: Transaction) -> None:
            for _, own in self._held.values():
                if _is_ours(one, own):
                    one.all("SELECT absurd.schedule_run(?, ?::uuid, absurd.current_time())", _QUEUE, own)

        self._database.transact(give)


def _is_ours(one: Transaction, own: str) -> bool:
    """Whether a claim has not run out: a worker that was stopped lost it."""
    return one.one("SELECT 1 FROM absurd.r_treadle WHERE run_id = ?::uuid AND state = 'running'", own) is not None
