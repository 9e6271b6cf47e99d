"""What workers share about runs and tasks: who may work on what, how far it is, what was spent, and how it ended.

A claim has a number that only grows. Whoever has an older one may not spend, write or end anything any more: so it does
not matter when a worker that hangs, or was taken for dead, goes on.
"""

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec

from treadle.headless.batch.batch_folder import TaskBegun, TaskRow
from treadle.headless.batch.batch_steps import BatchOptions
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.fleet.fleet_database import FleetDatabase, Transaction
from treadle.protocol.base import Record

_NANO = 1_000_000_000
"""Money is counted in whole billionths of a US dollar: a sum of many has no rounding errors."""


class Claim(Record, frozen=True, kw_only=True):
    """The right to work on a task. `number` is that of the claim, `again` how often the task was begun anew by order.

    `process` and `home` are those of who had it before; `begun` is what is known of its session. `deaths` counts the
    workers that were killed while a process of theirs had it.
    """

    run: str
    id: str
    number: int
    again: int
    task: BatchTask
    process: str = ""
    home: str = ""
    begun: TaskBegun | None = None
    deaths: int = 0


class FleetResult(Record, frozen=True, kw_only=True):
    """What comes of a task: its row, the model that made the patch, its log, and what the check printed."""

    row: TaskRow
    model: str = ""
    patch: bytes | None = None
    session: str = ""
    check: str = ""


class FencedError(Exception):
    """Somebody else has the task now: this process has to leave it as it is."""


class RunStanding(Record, frozen=True, kw_only=True):
    """How a run is: its options, whether its money is used up, what counts against it (US dollars), and its tasks."""

    options: BatchOptions
    capped: bool
    counted: float
    states: Mapping[str, int]


class LiveRun(Record, frozen=True, kw_only=True):
    """What counts against a run (US dollars), whether a part of its cost is unknown, and at which step each task is."""

    counted: float
    unpriced: bool
    steps: Mapping[str, str]


class FleetState:
    """All that is asked of the database but the queue, which is an engine's."""

    def __init__(self, database: FleetDatabase) -> None:
        self.database = database

    def open_run(self, options: BatchOptions, engine: str) -> str:
        """Add a run, or open it again with other options; gives the engine that has its tasks."""
        data = msgspec.json.encode(options).decode()

        def opened(one: Transaction) -> str:
            if one.is_postgres:
                one.all("SELECT pg_advisory_xact_lock(7311)")
            one.change(
                "INSERT INTO treadle_runs (run, number, options, state, engine) VALUES (?, "
                "(SELECT COALESCE(MAX(number), 0) + 1 FROM treadle_runs), ?, 'open', ?) "
                "ON CONFLICT (run) DO UPDATE SET options = excluded.options, state = 'open'",
                options.run,
                data,
                engine,
            )
            return str(one.one("SELECT engine FROM treadle_runs WHERE run = ?", options.run)[0])

        return self.database.transact(opened)

    def add_tasks(self, run: str, tasks: Sequence[BatchTask]) -> None:
        """Add tasks that wait; those that are there stay as they are."""
        rows = [(run, task.id, number, _json(task), "waiting") for number, task in enumerate(tasks)]

        def add(one: Transaction) -> None:
            one.many(
                "INSERT INTO treadle_tasks (run, id, number, task, state) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                rows,
            )

        self.database.transact(add)

    def renew(self, run: str, task: BatchTask, begun: TaskBegun | None) -> None:
        """Let a task that has ended be done again: from its session, or with None from the beginning."""

        def again(one: Transaction) -> None:
            one.change(
                "UPDATE treadle_tasks SET state = 'waiting', again = again + 1, task = ?, begun = ?, place = 0, "
                "result = NULL, worker = '', process = '', step = '', deaths = 0 "
                "WHERE run = ? AND id = ? AND state = 'ended'",
                _json(task),
                _json(begun) if begun else "",
                run,
                task.id,
            )

        self.database.transact(again)

    def generations(self, run: str) -> dict[str, int]:
        """Give the tasks of a run that have not ended, and how often each was begun anew by order."""
        rows = self.database.transact(
            lambda one: one.all("SELECT id, again FROM treadle_tasks WHERE run = ? AND state <> 'ended'", run)
        )
        return dict(rows)

    def begun(self, run: str) -> dict[str, tuple[str, TaskBegun | None]]:
        """Give the state of each task of a run, and what is known of its session."""
        rows = self.database.transact(
            lambda one: one.all("SELECT id, state, begun FROM treadle_tasks WHERE run = ?", run)
        )
        return {name: (state, _begun(begun)) for name, state, begun in rows}

    def open_runs(self) -> list[tuple[str, BatchOptions, str]]:
        """List the runs in which there is work, the oldest first, with the engine of each."""
        rows = self.database.transact(
            lambda one: one.all(
                "SELECT run, options, engine FROM treadle_runs WHERE state = 'open' AND EXISTS (SELECT 1 FROM "
                "treadle_tasks t WHERE t.run = treadle_runs.run AND t.state <> 'ended') ORDER BY number"
            )
        )
        return [(run, msgspec.json.decode(options, type=BatchOptions), engine) for run, options, engine in rows]

    def standing(self, run: str) -> RunStanding:
        """Say how a run is."""

        def read(one: Transaction) -> RunStanding:
            options, state, total = one.one("SELECT options, state, total FROM treadle_runs WHERE run = ?", run)
            states = one.all("SELECT state, COUNT(*) FROM treadle_tasks WHERE run = ? GROUP BY state", run)
            return RunStanding(
                options=msgspec.json.decode(options, type=BatchOptions),
                capped=state == "capped",
                counted=total / _NANO,
                states=dict(states),
            )

        return self.database.transact(read)

    def live(self, run: str) -> LiveRun:
        """Say what a run has spent by now, and what is worked on, wherever that is."""

        def read(one: Transaction) -> LiveRun:
            (total,) = one.one("SELECT total FROM treadle_runs WHERE run = ?", run)
            rows = one.all(
                "SELECT id, step FROM treadle_tasks WHERE run = ? AND state = 'held' AND process <> '' ORDER BY number",
                run,
            )
            like = "SELECT COUNT(*) FROM treadle_tasks WHERE run = ? AND begun LIKE ?"
            unpriced = one.one(like, run, '%"unpriced":true%')[0] > 0
            return LiveRun(counted=total / _NANO, unpriced=unpriced, steps=dict(rows))

        return self.database.transact(read)

    def counted(self, run: str) -> float:
        """Give what counts against the limit of a run: what was spent, and is reserved (US dollars)."""
        (total,) = self.database.transact(lambda one: one.one("SELECT total FROM treadle_runs WHERE run = ?", run))
        return int(total) / _NANO

    def cap(self, run: str, most: float | None) -> None:
        """Say that the money of a run is used up, unless it was given another limit than `most` (US dollars) since."""

        def close(one: Transaction) -> None:
            (options,) = one.one("SELECT options FROM treadle_runs WHERE run = ?", run)
            if msgspec.json.decode(options, type=BatchOptions).run_cost == most:
                one.change("UPDATE treadle_runs SET state = 'capped' WHERE run = ? AND options = ?", run, options)

        self.database.transact(close)

    def busy(self, run: str, but: str = "") -> int:
        """Count the tasks of a run that a process works on now, but for those of a worker."""
        (number,) = self.database.transact(
            lambda one: one.one(
                "SELECT COUNT(*) FROM treadle_tasks WHERE run = ? AND state = 'held' AND process <> '' AND worker <> ?",
                run,
                but,
            )
        )
        return int(number)

    def hold(self, run: str, task_id: str, worker: str) -> Claim | None:
        """Take a task that the engine gave; None where it has ended."""

        def take(one: Transaction) -> Claim | None:
            changed = one.change(
                "UPDATE treadle_tasks SET claim = claim + 1, worker = ?, state = 'held' "
                "WHERE run = ? AND id = ? AND state <> 'ended'",
                worker,
                run,
                task_id,
            )
            return _claim(one, run, task_id) if changed else None

        return self.database.transact(take)

    def held_by(self, run: str, worker: str) -> list[Claim]:
        """Give the claims that a worker has."""

        def read(one: Transaction) -> list[Claim]:
            rows = one.all(
                "SELECT id FROM treadle_tasks WHERE run = ? AND worker = ? AND state = 'held' ORDER BY number",
                run,
                worker,
            )
            return [_claim(one, run, name) for (name,) in rows]

        return self.database.transact(read)

    def begin(self, claim: Claim, process: str) -> Claim:
        """Say which process works on a task now; gives the claim with who did before. Raises `FencedError`.

        A process that is still named did not end by itself: its worker was killed, or taken for dead.
        """

        def taken(one: Transaction) -> Claim:
            self._fence(one, claim)
            one.change(
                "UPDATE treadle_tasks SET deaths = deaths + 1 WHERE run = ? AND id = ? AND process <> ''",
                claim.run,
                claim.id,
            )
            before = _claim(one, claim.run, claim.id)
            one.change("UPDATE treadle_tasks SET process = ? WHERE run = ? AND id = ?", process, claim.run, claim.id)
            return before

        return self.database.transact(taken)

    def note(self, claim: Claim, begun: TaskBegun, home: str) -> None:
        """Keep what is known of a task's session, and where that is. Raises `FencedError`."""
        self._set(claim, "begun = ?, home = ?", _json(begun), home)

    def went(self, claim: Claim, step: str) -> None:
        """Say which step a task begins. Raises `FencedError`."""
        self._set(claim, "step = ?", step)

    def said(self, claim: Claim, text: str) -> None:
        """Add a line that a person should read. Raises `FencedError`."""
        self._set(claim, "notes = notes || ?", f"{text}\n")

    def rests(self, claim: Claim) -> None:
        """Say that no process works on a task any more. Raises `FencedError`."""
        self._set(claim, "process = ?", "")

    def _set(self, claim: Claim, what: str, *values: str) -> None:
        def change(one: Transaction) -> None:
            changed = one.change(
                f"UPDATE treadle_tasks SET {what} WHERE run = ? AND id = ? AND claim = ? AND state = 'held'",  # noqa: S608
                *values,
                claim.run,
                claim.id,
                claim.number,
            )
            if not changed:
                raise FencedError

        self.database.transact(change)

    def reserve(self, claim: Claim, session: str, home: str, sums: Mapping[str, float]) -> float:
        """Set what a session has spent and reserved at a home, by purpose (US dollars); gives the sum of the run.

        Of two that reserve at the same time the second one sees what the first one has. Raises `FencedError`.
        """

        def set_sums(one: Transaction) -> float:
            total = _lock_run(one, claim.run)
            self._fence(one, claim)
            return _count(one, total, (claim.run, session, home), sums)

        return self.database.transact(set_sums)

    def settle(self, run: str, session: str, home: str, spent: float) -> None:
        """Say what a session has spent at a home in all, and that none of its calls goes on there."""
        sums = {"spent": spent, "step": 0.0, "aside": 0.0}
        self.database.transact(lambda one: _count(one, _lock_run(one, run), (run, session, home), sums))

    def end(self, claim: Claim, result: FleetResult) -> None:
        """Say how a task ended, once. Raises `FencedError`."""
        data = msgspec.msgpack.encode(result)

        def ended(one: Transaction) -> None:
            _lock_run(one, claim.run)
            state, number = one.one(
                "SELECT state, claim FROM treadle_tasks WHERE run = ? AND id = ?", claim.run, claim.id
            )
            if (state, number) == ("ended", claim.number):  # the answer to it was lost
                return
            self._fence(one, claim)
            one.change("UPDATE treadle_runs SET ended = ended + 1 WHERE run = ?", claim.run)
            one.change(
                "UPDATE treadle_tasks SET state = 'ended', process = '', step = '', result = ?, "
                "place = (SELECT ended FROM treadle_runs WHERE run = ?) WHERE run = ? AND id = ?",
                data,
                claim.run,
                claim.run,
                claim.id,
            )

        self.database.transact(ended)

    def results(self, run: str, after: int) -> list[tuple[int, FleetResult, str]]:
        """Give what ended after a place, in order: its place, what came of it, and what a person should read."""
        rows = self.database.transact(
            lambda one: one.all(
                "SELECT place, result, notes FROM treadle_tasks WHERE run = ? AND place > ? ORDER BY place LIMIT 50",
                run,
                after,
            )
        )
        return [(place, msgspec.msgpack.decode(result, type=FleetResult), notes) for place, result, notes in rows]

    @staticmethod
    def _fence(one: Transaction, claim: Claim) -> None:
        lock = " FOR UPDATE" if one.is_postgres else ""
        found = one.one(
            f"SELECT 1 FROM treadle_tasks WHERE run = ? AND id = ? AND claim = ? AND state = 'held'{lock}",  # noqa: S608
            claim.run,
            claim.id,
            claim.number,
        )
        if found is None:
            raise FencedError


def _claim(one: Transaction, run: str, task_id: str) -> Claim:
    row = one.one(
        "SELECT claim, again, task, process, home, begun, deaths FROM treadle_tasks WHERE run = ? AND id = ?",
        run,
        task_id,
    )
    number, again, task, process, home, begun, deaths = row
    return Claim(
        run=run,
        id=task_id,
        number=number,
        again=again,
        task=msgspec.json.decode(task, type=BatchTask),
        process=process,
        home=home,
        begun=_begun(begun),
        deaths=deaths,
    )


def _lock_run(one: Transaction, run: str) -> int:
    """Let one transaction at a time count the money of a run; gives its sum (billionths of a US dollar)."""
    lock = " FOR UPDATE" if one.is_postgres else ""
    return int(one.one(f"SELECT total FROM treadle_runs WHERE run = ?{lock}", run)[0])  # noqa: S608


def _count(one: Transaction, total: int, row: tuple[str, str, str], sums: Mapping[str, float]) -> float:
    """Set the sums of a session at a home, and the run's by what they change; gives the run's (US dollars)."""
    before = dict(one.all("SELECT purpose, cost FROM treadle_money WHERE run = ? AND session = ? AND home = ?", *row))
    for purpose, dollars in sums.items():
        cost = ceil(dollars * _NANO)
        if cost == before.get(purpose, 0):
            continue
        one.change(
            "INSERT INTO treadle_money (run, session, home, purpose, cost) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (run, session, home, purpose) DO UPDATE SET cost = excluded.cost",
            *row,
            purpose,
            cost,
        )
        total += cost - before.get(purpose, 0)
    one.change("UPDATE treadle_runs SET total = ? WHERE run = ?", total, row[0])
    return total / _NANO


def _json(value: Record) -> str:
    return msgspec.json.encode(value).decode()


def _begun(data: str) -> TaskBegun | None:
    return msgspec.json.decode(data, type=TaskBegun) if data else None
