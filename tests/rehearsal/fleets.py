"""A fleet whose workers are killed and stopped at random: nothing may be lost, done twice, or spent beyond the limit.

`python -m tests.rehearsal.fleets --database URL` runs it once without kills and once with them, and prints what came.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.batches import CALL_COST, CHECK, SETTINGS, Place, Solver, children, tasks
from tests.e2e.process import Program
from tests.e2e.running import PATIENCE
from tests.needed import postgres_program
from tests.small_disk import fill, small_disk
from treadle.headless.fleet.fleet_database import FleetDatabase
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

ADOPT_AFTER = 3.0
ACTIONS = ("kill all", "kill worker", "kill task", "stop")


@dataclass
class Chaos:
    """Workers that come and go; `done` counts what was done to them."""

    place: Place
    url: str
    flags: tuple[str, ...]
    workers: int = 3
    tasks_each: int = 2
    kinds: tuple[str, ...] = ACTIONS
    done: Counter[str] = field(default_factory=Counter)
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    by_itself: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        """Start a worker."""
        words = ("worker", "--trust", "--database", self.url, "--workers", str(self.tasks_each), *self.flags)
        self.processes.append(await self.place.program.start(*words))

    async def disturb(self, chance: random.Random) -> None:
        """Do something to one worker, and start another one for each that is gone."""
        for _ in range(self.workers - sum(one.returncode is None for one in self.processes)):
            await self.begin()
        at_work = working(self.url)
        alive = [one for one in self.processes if one.returncode is None and one.pid in at_work]
        if not alive:  # on a slow machine it takes long until one has begun
            return
        process = chance.choice(alive)
        action = chance.choice(self.kinds)
        family = descendants(process.pid)
        if action == "kill task" and not family:
            return
        self.done[action] += 1
        match action:
            case "kill all":
                send(signal.SIGKILL, [process.pid, *family])
            case "kill worker":
                send(signal.SIGKILL, [process.pid])
            case "kill engine":  # a process of its own, the first one that a worker begins
                send(signal.SIGKILL, children(process.pid)[:1])
            case "kill task":
                send(signal.SIGKILL, [chance.choice(family)])
            case _:
                send(signal.SIGSTOP, [process.pid, *family])
                await asyncio.sleep(chance.uniform(0.3, 3) * ADOPT_AFTER)
                send(signal.SIGCONT, [process.pid, *family])
        if action in ("kill all", "kill worker"):
            await process.wait()
            await self.begin()

    async def end(self) -> list[int | None]:
        """Ask the workers to end; gives the exit codes of those that were there and had begun."""
        alive = [one for one in self.processes if one.returncode is None]
        for one in alive:
            one.send_signal(signal.SIGTERM)
        said = await asyncio.gather(*(one.communicate() for one in self.processes))
        by_itself = [
            f"{one.returncode}: {err.decode()[-600:]}"
            for one, (_, err) in zip(self.processes, said, strict=True)
            if one.returncode != -signal.SIGKILL and (one not in alive or one.returncode)
        ]
        self.by_itself = by_itself
        begun = {one.pid for one, (_, err) in zip(self.processes, said, strict=True) if b"this worker is" in err}
        return [one.returncode for one in alive if one.pid in begun]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


def working(url: str) -> set[int]:
    """The processes of the workers that have begun, and are not known to be gone."""
    database = FleetDatabase(url)
    try:
        names = database.transact(lambda one: one.all("SELECT worker FROM treadle_workers WHERE beats > 0"))
        return {int(name.split(":")[1]) for (name,) in names}
    finally:
        database.close()


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    found = children(pid)
    return [*found, *(below for one in found for below in descendants(one))]


def send(number: signal.Signals, pids: list[int]) -> None:
    """Send a signal to those that are there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@dataclass(frozen=True)
class Came:
    """What came of a run. `calls` of the model were answered; `repeated` are tools that took effect twice in a log.

    `fell` are workers that ended though nobody killed them. `hardships` say what else was done, and what should have
    come of it and did not.
    """

    code: int
    seconds: float
    rows: int
    states: dict[str, int]
    lost: list[str]
    twice: list[str]
    repeated: list[str]
    broken: list[str]
    counted: float
    calls: int
    disturbed: dict[str, int]
    ends: list[int | None]
    fell: list[str]
    hardships: list[str]
    said: str

    def faults(self, number: int, cap: float) -> list[str]:
        """Say what should not have come."""
        named = ((name, getattr(self, name)) for name in ("lost", "twice", "repeated", "broken", "fell"))
        wrong = [f"{name}: {value}" for name, value in named if value]
        wrong += [one for one in self.hardships if one.startswith("not ")]
        if any(state.startswith("error") for state in self.states):
            wrong.append(f"{self.states}: {self.said[-4000:]}")
        if self.code != 0 or self.rows != number:
            wrong.append(f"exit code {self.code}, {self.rows} of {number} rows: {self.said[-2000:]}")
        if self.counted > cap or self.calls * CALL_COST > cap + 1e-9:
            wrong.append(f"{self.counted} counted and {self.calls} calls with a limit of {cap}")
        if any(self.ends):
            wrong.append(f"workers ended with {self.ends}")
        return wrong


async def run_fleet(
    place: Place,
    url: str,
    flags: tuple[str, ...],
    *,
    number: int,
    cap: float,
    seed: int | None = None,
    every: float = 3.0,
    pause: float = 0.1,
    kinds: tuple[str, ...] = ACTIONS,
    most: int = 1_000_000,
    hard: bool = False,
) -> Came:
    """Run a batch with three workers; with a seed they are disturbed.

    With `hard`, too, a server of the database is restarted in the middle, and the disk of a fourth worker is full.
    """
    place.prepare(tasks(number, check=CHECK))
    solver = Solver(seconds=pause)
    async with ScriptedServer(solver) as server:
        chaos = Chaos(place, url, flags, kinds=kinds)
        ready, over = asyncio.Event(), asyncio.Event()
        others = asyncio.create_task(_hardships(place, url, flags, number, (ready, over)) if hard else _none(ready))
        await ready.wait()
        began = time.monotonic()
        more = ("--max-cost", str(cap), "--database", url, *flags)
        batch = asyncio.create_task(place.program.run(*place.words(server.base_url, *more, workers=0)))
        for _ in range(chaos.workers):
            await chaos.begin()
        chance = random.Random(seed)
        while not batch.done():
            if seed is None:
                await asyncio.wait([batch])
            else:
                await asyncio.wait([batch], timeout=chance.uniform(0.5, 1.5) * every)
                if not batch.done() and chaos.done.total() < most:
                    await chaos.disturb(chance)
        ended = await batch
        seconds = time.monotonic() - began
        over.set()
        hardships = await others
        ends = await chaos.end()
    rows = place.rows()
    ids = Counter(row["id"] for row in rows)
    return Came(
        code=ended.code,
        seconds=seconds,
        rows=len(rows),
        states=dict(Counter(f"{row['state']} {row['kind']}".strip() for row in rows)),
        lost=[f"t{one:02}" for one in range(number) if f"t{one:02}" not in ids],
        twice=[name for name, times in ids.items() if times > 1],
        repeated=[f"{name}: {tool}" for name, calls in place.calls().items() for tool, n in calls.items() if n > 1],
        broken=broken_logs(place, number),
        counted=counted(url),
        calls=solver.answered,
        disturbed=dict(chaos.done),
        ends=ends,
        fell=chaos.by_itself,
        hardships=hardships,
        said=f"{ended.out}{ended.err}",
    )


async def _hardships(
    place: Place, url: str, flags: tuple[str, ...], number: int, events: tuple[asyncio.Event, asyncio.Event]
) -> list[str]:
    """Have a worker whose disk is full until all is over, and restart the server in the middle of it."""
    ready, over = events
    done = []
    with small_disk(place.folder / "small", 16) as disk:
        other = Program(disk / "home")
        other.home.mkdir()
        (other.home / "config.toml").write_text(SETTINGS)
        worker = await other.start("worker", "--trust", "--database", url, *flags)
        await until(lambda: worker.pid in working(url))
        fill(disk)
        ready.set()
        while not over.is_set() and len(place.rows()) < number / 2:
            await asyncio.sleep(0.2)
        if url.startswith("postgresql"):
            await asyncio.to_thread(restart, url)
            done.append("the database was restarted")
        await over.wait()
        worker.send_signal(signal.SIGTERM)
        said = (await worker.communicate())[1].decode()
        took = "cannot be written: No space left on device. This worker waits" in said
        done.append(f"{'' if took else 'not '}left to others by a worker with a full disk: {said[-600:]}")
        if worker.returncode:
            done.append(f"not ended as it should: {worker.returncode}")
    return done


async def _none(ready: asyncio.Event) -> list[str]:
    ready.set()
    return []


def restart(url: str) -> None:
    """Restart a server that `postgres` runs; its connections break."""
    data = Path(url.partition("host=")[2]).parent / "data"
    _quietly((*_server_user(), postgres_program("pg_ctl"), "-D", str(data), "-w", "-t", "120", "-m", "fast", "restart"))


def _server_user() -> tuple[str, ...]:
    return ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


def broken_logs(place: Place, number: int) -> list[str]:
    """Name the logs whose chain does not hold, as of two writers, and tasks with a second session."""
    store = Store(place.program.home / "sessions.db")
    try:
        sessions = [row.id for row in store.sessions() if row.title]  # one that was killed before it began has none
        broken = [name for name in sessions if store.verify(name) is not None]
        return broken + ([] if len(sessions) == number else [f"{len(sessions)} sessions of {number}"])
    finally:
        store.close()


def counted(url: str) -> float:
    """What counts against the limits of all runs (US dollars)."""
    database = FleetDatabase(url)
    try:
        return float(database.transact(lambda one: one.one("SELECT SUM(total) FROM treadle_runs"))[0]) / 1e9
    finally:
        database.close()


def _quietly(words: tuple[str, ...]) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server of PostgreSQL of our own; gives its address. Where we are root, it runs as a normal user."""
    with TemporaryDirectory(prefix="treadle-pg-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        yield from _served(Path(name))


def _served(folder: Path) -> Iterator[str]:
    data, socket = folder / "data", folder / "socket"
    user = _server_user()
    for one in (data, socket):
        one.mkdir()
    if user:
        for one in (folder, data, socket):
            os.chown(one, 65534, 65534)
    words = ("-D", str(data), "-U", "treadle", "-A", "trust", "--no-sync")
    _quietly((*user, postgres_program("initdb"), *words))
    start = f"-k {socket} -c listen_addresses=''"
    control = (*user, postgres_program("pg_ctl"), "-D", str(data), "-w", "-t", "120")
    _quietly((*control, "-l", str(folder / "server.log"), "-o", start, "start"))
    try:
        yield f"postgresql://treadle@/postgres?host={socket}"
    finally:
        _quietly((*control, "-m", "immediate", "stop"))


async def compare(arguments: argparse.Namespace) -> int:
    """Run without kills and with them; gives 1 where something went wrong."""
    flags = ("--engine", arguments.engine, "--adopt-after", str(ADOPT_AFTER))
    came: list[Came] = []
    cap = arguments.tasks * 4 * CALL_COST * 3
    with TemporaryDirectory(prefix="fleet-", dir=arguments.under, ignore_cleanup_errors=True) as name:
        for seed in (None, arguments.seed)[arguments.only_kills :]:
            folder = Path(name) / str(seed)
            folder.mkdir()
            with database(arguments.database, folder) as url:
                one = await run_fleet(
                    Place(folder),
                    url,
                    flags,
                    number=arguments.tasks,
                    cap=cap,
                    seed=seed,
                    every=arguments.every,
                    most=arguments.most,
                    kinds=tuple(arguments.kinds),
                    hard=arguments.hard and seed is not None,
                )
            came.append(one)
            print(json.dumps({"seed": seed, **{k: v for k, v in vars(one).items() if k != "said"}}), flush=True)
            for fault in one.faults(arguments.tasks, cap):
                print(f"FAULT {fault}", flush=True)
    times = came[-1].seconds / came[0].seconds
    print(f"{arguments.database} {arguments.engine}: {times:.2f} times as long as without kills")
    return int(any(one.faults(arguments.tasks, cap) for one in came))


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of an empty database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/fleet.db"
    else:
        with postgres() as url:
            yield url


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--engine", default="dbos")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--every", type=float, default=3.0)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--kinds", nargs="+", choices=ACTIONS, default=ACTIONS, help="what is done to workers")
    parser.add_argument("--hard", action="store_true", help="restart the database, and fill a worker's disk, too")
    parser.add_argument("--only-kills", action="store_true")
    parser.add_argument("--under", default="/var/tmp")
    return asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
