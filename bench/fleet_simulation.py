"""A day of a fleet in simulated time, with costs that are measured first: where does it wait, and what breaks first?

The tasks, the workers and the model's waiting are simulated. What a transaction takes is measured on a real database,
and what the steps around the model take on a real batch. `make fleet-sim` prints the figures of docs/fleet.md.
"""

import argparse
import asyncio
import heapq
import json
import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.batches import CHECK, Place, Solver, tasks
from tests.needed import missing
from tests.rehearsal.fleets import postgres

from treadle.headless.batch.batch_folder import TaskBegun, TaskRow
from treadle.headless.batch.batch_steps import BatchOptions
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.fleet.fleet_database import FleetDatabase
from treadle.headless.fleet.fleet_engine import OwnEngine, id_of
from treadle.headless.fleet.fleet_state import FleetResult, FleetState
from treadle.providers.scripted.scripted_server import ScriptedServer

DAY = 86_400.0
TASKS, WORKERS = 100_000, 1_000
CALLS, SECONDS_A_CALL = 40.0, 14.0
"""Model calls of a task (the mean; they vary as 1 to 160 or so), and what each takes with the tools after it."""

PEAK = 1.6
"""How much more arrives at noon than on average."""

BEAT = 5.0
MEASURED = 150
LOCKED = frozenset({"reserve", "settle", "end"})
"""What one transaction of a run at a time may do: they count its money."""

Costs = dict[str, float]
"""Seconds of each kind of transaction, and of the steps before and after the run."""


def database_costs(url: str) -> Costs:
    """Measure what each transaction takes when nothing else happens: the fastest of twenty, as other programs run."""
    state = FleetState(FleetDatabase(url))
    run, found = "simulated", dict[str, list[float]]()

    def timed(name: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        found.setdefault(name, []).append(time.perf_counter() - began)

    state.open_run(BatchOptions(run=run), "own")
    state.add_tasks(run, [BatchTask(id=f"t{one}", prompt="x" * 2_000) for one in range(MEASURED)])
    engine = OwnEngine(state.database, "w")
    result = FleetResult(row=TaskRow(id="t", state="done"), patch=b"x" * 4_000, session="x" * 40_000)
    for _ in range(MEASURED):
        timed("beat", engine.beat)
        began = time.perf_counter()
        name = engine.claim(run, 1)
        found.setdefault("claim", []).append(time.perf_counter() - began)
        assert name is not None
        began = time.perf_counter()
        claim = state.hold(run, id_of(name), "w")
        found.setdefault("hold", []).append(time.perf_counter() - began)
        assert claim is not None
        timed("begin", lambda claim=claim: state.begin(claim, "p"))  # type: ignore[misc]
        timed("note", lambda claim=claim: state.note(claim, TaskBegun(digest="d", session="s"), "h"))  # type: ignore[misc]
        timed("step", lambda claim=claim: state.went(claim, "run"))  # type: ignore[misc]
        for cent in range(3):
            sums = {"spent": cent / 100, "step": 0.05}
            timed("reserve", lambda claim=claim, sums=sums: state.reserve(claim, claim.id, "h", sums))  # type: ignore[misc]
        timed("settle", lambda claim=claim: state.settle(run, claim.id, "h", 0.03))  # type: ignore[misc]
        timed("rests", lambda claim=claim: state.rests(claim))  # type: ignore[misc]
        timed("end", lambda claim=claim: state.end(claim, result))  # type: ignore[misc]
    timed("collect", lambda: state.results(run, 0))
    state.database.close()
    return {name: sorted(values)[len(values) // 20] for name, values in found.items()}


async def step_costs(folder: Path) -> Costs:
    """Measure what a real batch takes beside the model, one task at a time (seconds of this machine as it is now)."""
    place = Place(folder)
    place.prepare(tasks(4, check=CHECK))
    async with ScriptedServer(Solver()) as server:
        process = await place.program.start(*place.words(server.base_url, "--json", workers=1))
        assert process.stdout is not None
        begun: dict[str, tuple[str, float]] = {}
        found: dict[str, list[float]] = {}
        async for line in process.stdout:
            record, now = json.loads(line), time.monotonic()
            step = {"task_step": record.get("step"), "task_ended": "over"}.get(record["type"])
            if step is None or record.get("model_step"):
                continue
            before = begun.get("task")
            if before is not None:
                found.setdefault(before[0], []).append(now - before[1])
            begun["task"] = (str(step), now)
        await process.wait()
    return {name: statistics.median(found[name]) for name in ("prepare", "collect", "check")}


@dataclass
class Database:
    """A server: some transactions at once, each as long as measured; one at a time counts the money of a run."""

    costs: Costs
    servers: int
    runs: int
    beats: float
    free: list[float] = field(default_factory=list)
    locks: dict[int, float] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    busy: float = 0.0
    waits: list[float] = field(default_factory=list)
    by_minute: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.free = [0.0] * self.servers
        # Beats take their part all the time.
        self.slower = 1 / (1 - self.beats * self.costs["beat"] / self.servers)

    def ask(self, now: float, kind: str, run: int) -> float:
        """Do a transaction; gives when it is over."""
        start = max(now, self.free[0])
        if kind in LOCKED:
            start = max(start, self.locks.get(run, 0.0))
        over = start + self.costs[kind] * self.slower
        heapq.heapreplace(self.free, over)
        if kind in LOCKED:
            self.locks[run] = over
            self.waits.append(start - now)
        self.done[kind] += 1
        self.busy += self.costs[kind]
        self.by_minute[int(now // 60)] += 1
        return over


@dataclass(frozen=True)
class Day:
    """What came of a day."""

    ended: int
    longest_queue: int
    mean_queue: float
    waited: tuple[float, float]
    busy_workers: float
    a_second: float
    a_second_most: float
    database: float
    lock: float
    lock_waits: float


def day(costs: Costs, *, number: int, workers: int, servers: int, runs: int, seed: int, length: float = DAY) -> Day:
    """Simulate: tasks come over the day, most at noon; workers take the oldest one."""
    chance = random.Random(seed)
    database = Database(costs, servers, runs, workers / BEAT)
    arrivals = sorted(_moment(chance) * length for _ in range(number))
    events: list[tuple[float, int, str, int, int]] = []  # when, a number, what, the run, calls that are left
    idle, queue, queued_at = workers, list[float](), 0
    waits: list[float] = []
    area = last = worked = 0.0
    longest = ended = serial = 0

    def later(at: float, what: str, run: int, calls: int) -> None:
        nonlocal serial
        serial += 1
        heapq.heappush(events, (at, serial, what, run, calls))

    def begin(now: float) -> None:
        nonlocal idle
        idle -= 1
        run = chance.randrange(runs)
        at = now
        for kind in ("claim", "hold", "begin", "step", "note", "step"):
            at = database.ask(at, kind, run)
        later(at + costs["prepare"], "call", run, max(1, round(chance.lognormvariate(math.log(CALLS) - 0.32, 0.8))))

    coming = 0
    while coming < len(arrivals) or events:
        at_arrival = arrivals[coming] if coming < len(arrivals) else math.inf
        now = min(at_arrival, events[0][0] if events else math.inf)
        if now > length * 1.5:
            break
        waiting = len(queue) - queued_at
        area += waiting * (now - last)
        worked += (workers - idle) * (now - last)
        last = now
        if at_arrival <= now:
            coming += 1
            queue.append(now)
        else:
            _, _, what, run, calls = heapq.heappop(events)
            if what == "call" and calls:
                sent = database.ask(now, "reserve", run)
                later(sent + chance.expovariate(1 / SECONDS_A_CALL), "call", run, calls - 1)
            elif what == "call":
                at = now
                for kind in ("step", "step", "settle", "rests", "end"):
                    at = database.ask(at, kind, run)
                later(at + costs["collect"] + costs["check"], "over", run, 0)
            else:
                ended += 1
                idle += 1
        while idle and queued_at < len(queue):
            waits.append(now - queue[queued_at])
            queued_at += 1
            begin(now)
        longest = max(longest, len(queue) - queued_at)
    locked = sum(database.done[kind] * costs[kind] for kind in LOCKED) / runs
    total = sum(database.done.values()) / last + database.beats
    return Day(
        ended=ended,
        longest_queue=longest,
        mean_queue=area / last,
        waited=(_share(waits, 0.5), _share(waits, 0.95)),
        busy_workers=worked / last / workers,
        a_second=total,
        a_second_most=max(database.by_minute.values()) / 60 + database.beats,
        database=database.busy / last / servers + database.beats * costs["beat"] / servers,
        lock=locked / last,
        lock_waits=_share(database.waits, 0.95),
    )


def _moment(chance: random.Random) -> float:
    """Draw a moment of the day (0 to 1) by how much comes then."""
    while True:
        moment = chance.random()
        if chance.random() * PEAK < 1 - (PEAK - 1) * math.cos(2 * math.pi * moment):
            return moment


def _share(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0


def table(name: str, costs: Costs, servers: int, seed: int, *, steps: Costs, scales: tuple[int, ...]) -> Iterator[str]:
    """Give the lines of one database: the day, then hours of more and more workers until it breaks."""
    yield f"\n{name}, {servers} transactions side by side, times in ms: " + ", ".join(
        f"{kind} {costs[kind] * 1000:.2f}" for kind in sorted(costs) if kind not in steps
    )
    yield (
        "tasks/day workers runs | ended queue:longest mean wait:p50 p95 | "
        "workers db-ops/s:mean most db run-lock lock-wait:p95"
    )
    cases = [(1, 1, DAY), *((scale, runs, DAY / 24) for scale in scales for runs in (1, 16))]
    for scale, runs, length in cases:
        beats = WORKERS * scale / BEAT * costs["beat"] / servers
        if beats >= 1:
            yield f"{TASKS * scale} {WORKERS * scale} {runs} | it breaks: beats alone use {beats:.0%} of the database"
            continue
        number = round(TASKS * scale * length / DAY)
        came = day(costs, number=number, workers=WORKERS * scale, servers=servers, runs=runs, seed=seed, length=length)
        yield (
            f"{TASKS * scale} {WORKERS * scale} {runs}{'' if length == DAY else ' (an hour)'} | {came.ended} "
            f"{came.longest_queue} {came.mean_queue:.0f} {came.waited[0]:.1f}s {came.waited[1]:.0f}s | "
            f"{came.busy_workers:.0%} {came.a_second:.0f} {came.a_second_most:.0f} {came.database:.1%} {came.lock:.1%} "
            f"{came.lock_waits * 1000:.1f}ms"
        )


@contextmanager
def _databases(folder: Path) -> Iterator[list[tuple[str, str, int]]]:
    sqlite = ("SQLite", f"sqlite:///{folder}/fleet.db", 1)
    if missing("postgres") or missing("psycopg"):
        yield [sqlite]
        return
    with postgres() as url:
        yield [sqlite, ("PostgreSQL", url, 4)]


def main() -> int:
    """Measure, simulate, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scales", default="4,16", help="how many times as much, each for an hour")
    parser.add_argument("--database", choices=("SQLite", "PostgreSQL"), default="", help="only this one")
    arguments = parser.parse_args()
    scales = tuple(int(one) for one in arguments.scales.split(",") if one)
    with TemporaryDirectory(prefix="fleet-sim-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "batch").mkdir()
        steps = asyncio.run(step_costs(folder / "batch"))
        print("steps beside the run, measured: " + ", ".join(f"{one} {value:.2f} s" for one, value in steps.items()))
        with _databases(folder) as databases:
            for kind, url, servers in (one for one in databases if arguments.database in ("", one[0])):
                costs = {**database_costs(url), "collect": 0.0} | steps
                for line in table(kind, costs, servers, arguments.seed, steps=steps, scales=scales):
                    print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
