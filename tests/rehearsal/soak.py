"""The whole rehearsal, seeded: sessions of healthy work, loops, interrupts of the engine and of the program."""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.engine.long_session import WINDOW, work
from tests.fakes.clock import run_at_once
from tests.needed import missing
from tests.rehearsal.bills import billed_sessions
from tests.rehearsal.crashes import kill_sessions
from tests.rehearsal.histories import kill_histories
from tests.rehearsal.interrupts import interrupt_all
from tests.rehearsal.loops import LoopPlan, loop_plans
from tests.rehearsal.mutants import PACKAGES, sample
from tests.rehearsal.plans import WIRES, Plan, plans
from tests.rehearsal.program import interrupt_programs, program_plans, work_programs
from tests.rehearsal.rehearse import Verdict, rehearse_all
from tests.rehearsal.sessions import KEY
from tests.rehearsal.stacks import GOALS, MODES, compare, reach
from tests.rehearsal.surfaces import rehearse_surfaces
from tests.rehearsal.waiting import rehearse_waiting
from treadle.protocol.notifications import TurnStop
from treadle.protocol.permissions import Mode

SESSIONS, OVER_HTTP, PROGRAMS = 140, 40, 20
REPLAYS, INTERRUPTS_REPLAYED = 300, 112
INTERRUPTS, PROGRAM_INTERRUPTS = 2000, 200
MUTANTS = 40
BILLS = 200
HISTORIES, KILLS_EACH = 20, 10
LIVES, KILLS_OF_A_LIFE = 40, 5
SURFACES, SURFACE_STEPS = 200, 8
WAITS = 100
LONG_STEPS, LEAST_KEPT = 2000, 0.95


def main() -> int:
    """Run everything, or the parts that are named; gives 1 when anything went wrong."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=(*PARTS, "mutants"), default=(*PARTS, "mutants"), help="by default all of them"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="by default another one each time")
    parser.add_argument("--package", choices=PACKAGES, default="engine", help="where `mutants` puts its faults")
    parser.add_argument("--module", action="append", default=[], help="a file of that package, below the source")
    parser.add_argument("--count", type=int, default=MUTANTS, help="how many `mutants` tries")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    for name in arguments.parts:
        begun = time.monotonic()
        with _home() as folder:
            if name == "mutants":
                failed += sample(arguments.seed, arguments.count, arguments.package, arguments.module)
            else:
                failed += PARTS[name](arguments.seed, folder)
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


@contextmanager
def _home() -> Iterator[Path]:
    """Give a folder whose data directory is the program's."""
    with TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        os.environ.update({"TREADLE_HOME": str(Path(folder) / "home"), KEY: "key"})
        yield Path(folder)


def _sessions(seed: int, folder: Path) -> int:
    wanted = [*plans(seed, SESSIONS)]
    return _report("healthy sessions in process", asyncio.run(rehearse_all(wanted, folder)))


def _wires(seed: int, folder: Path) -> int:
    wanted = [*plans(seed + 1, OVER_HTTP, wires=WIRES)]
    return _report("healthy sessions over HTTP", asyncio.run(rehearse_all(wanted, folder)))


def _programs(seed: int, folder: Path) -> int:
    return _report("healthy sessions of the program", asyncio.run(work_programs(program_plans(seed, PROGRAMS), folder)))


def _replay(seed: int, folder: Path) -> int:
    """500 sessions of their own: each that anything rehearses is replayed strictly, and a difference is trouble."""
    wanted: list[Plan | LoopPlan] = [*plans(seed + 3, REPLAYS), *loop_plans(seed + 3)]
    failed = _report("sessions replayed", asyncio.run(rehearse_all(wanted, folder)))
    over_http = [*plans(seed + 4, OVER_HTTP, wires=WIRES)]
    failed += _report("sessions over HTTP replayed", asyncio.run(rehearse_all(over_http, folder / "http")))
    found = run_at_once(interrupt_all(seed + 3, INTERRUPTS_REPLAYED))
    troubles = [one.trouble for one in found if one.trouble]
    print("\n".join([*troubles, f"interrupted sessions replayed: {len(found) - len(troubles)} of {len(found)}"]))
    return failed + len(troubles)


def _loops(seed: int, folder: Path) -> int:
    return _report("loops", asyncio.run(rehearse_all(loop_plans(seed), folder)))


def _interrupts(seed: int, folder: Path) -> int:
    found = run_at_once(interrupt_all(seed, INTERRUPTS))
    return _times(
        "interrupts of the engine (by the clock of its loop)",
        [one.seconds for one in found],
        [one.trouble for one in found],
    )


def _long(seed: int, folder: Path) -> int:
    """2,000 steps in a window of 32,000 tokens: what the model still knows of the beginning, and what it costs."""
    worker, outcome, compactions = asyncio.run(work(LONG_STEPS))
    kept = 1 - len(worker.missing) / worker.asked_facts
    print(
        f"long session: {outcome.stop}, {worker.requests} requests, largest {worker.largest:,} of {WINDOW:,} tokens, "
        f"{compactions} compactions, {kept:.1%} of {worker.asked_facts} facts kept, "
        f"{worker.prefix_lost} times a prefix changed"
    )
    right = worker.largest <= WINDOW and not worker.broken and worker.prefix_lost <= compactions
    return 0 if right and kept >= LEAST_KEPT and outcome.stop is TurnStop.END_TURN else 1


def _histories(seed: int, folder: Path) -> int:
    """Work, undo, rewind, restore, compact and fork, with kill -9 at 200 random moments of it."""
    found = asyncio.run(kill_histories(seed, HISTORIES, KILLS_EACH, folder))
    troubles = [trouble for one in found for trouble in one.troubles]
    print("\n\n".join(troubles))
    kills, runs = sum(one.kills for one in found), sum(one.runs for one in found)
    print(f"histories: {len(found)}, {kills} kills in {runs} runs, {len(troubles)} wrong")
    return len(troubles)


def _crashes(seed: int, folder: Path) -> int:
    """Kill -9 at 200 moments with servers, trials being tried or kept, and questions of the brokers."""
    found = [
        asyncio.run(kill_sessions(f"{seed}-{number}", folder / str(number), KILLS_OF_A_LIFE, mode=mode))
        for number, mode in zip(range(LIVES), cycle((Mode.ASK, Mode.AUTO, Mode.EDITS)), strict=False)
    ]
    troubles = [trouble for one in found for trouble in one.troubles]
    met: Counter[str] = sum((one.met for one in found), Counter())
    print("\n".join([*troubles, *(f"  {count} {what}" for what, count in met.most_common())]))
    print(
        f"crashes: {sum(one.kills for one in found)} kills in {len(found)} sessions, {len(troubles)} wrong; all had "
        f"ended within {max(one.slowest for one in found) * 1000:.0f} ms"
    )
    return len(troubles)


def _stacks(seed: int, folder: Path) -> int:
    """Servers, databases, builds and environments in full, auto and ask: how many calls each takes."""
    goals = [goal for goal in GOALS if not any(map(missing, goal.needs))]
    left = [f"{goal.name}: {' '.join(filter(None, map(missing, goal.needs)))}" for goal in GOALS if goal not in goals]
    places = [(goal, mode, folder / f"{number}-{mode}") for number, goal in enumerate(goals) for mode in MODES]
    rows, wrong = compare([asyncio.run(reach(*place)) for place in places])
    print("\n".join((*wrong, *rows, *(f"left out: {one}" for one in left))))
    return len(wrong)


def _surfaces(seed: int, folder: Path) -> int:
    """Browsers, a second server and a terminal on one session, each cut off, suspended or killed at random."""
    failed, cuts, kills, loads = 0, 0, 0, 0
    for number in range(SURFACES):
        home = folder / str(number)
        os.environ["TREADLE_HOME"] = str(home / "home")
        found = asyncio.run(rehearse_surfaces(seed + number, home, SURFACE_STEPS))
        print("\n".join(found.troubles), end="\n" if found.troubles else "")
        failed += bool(found.troubles)
        cuts, kills, loads = cuts + found.cuts, kills + found.kills, loads + found.loads
    print(f"sessions with several surfaces: {SURFACES}, {cuts} cuts, {kills} kills, {loads} loads, {failed} wrong")
    return failed


def _waiting(seed: int, folder: Path) -> int:
    """What a person types while a session works, with stops and kills at random moments."""
    failed, messages, stops, kills = 0, 0, 0, 0
    for number in range(WAITS):
        home = folder / str(number)
        os.environ["TREADLE_HOME"] = str(home / "home")
        found = asyncio.run(rehearse_waiting(seed + number, home))
        print("\n".join(found.troubles), end="\n" if found.troubles else "")
        failed += bool(found.troubles)
        messages, stops, kills = messages + found.messages, stops + found.stops, kills + found.kills
    print(
        f"sessions with messages that wait: {WAITS}, {messages} messages, {stops} stops, {kills} kills, {failed} wrong"
    )
    return failed


def _program_interrupts(seed: int, folder: Path) -> int:
    found = asyncio.run(interrupt_programs(seed, PROGRAM_INTERRUPTS, folder))
    return _times("interrupts of the program", [one.seconds for one in found], [one.trouble for one in found])


def _bills(seed: int, folder: Path) -> int:
    """Interrupts at random moments over every wire API: what is reported as cost, and what the server counted."""
    found = asyncio.run(billed_sessions(seed, BILLS, folder))
    troubles = [one.trouble for one in found if one.trouble]
    print("\n".join(troubles), end="\n" if troubles else "")
    off = sorted(one.off for one in found if one.cut)
    print(
        f"bills: {len(found)} sessions, {len(off)} with a reply that was cut, {len(troubles)} wrong; their cost is off "
        f"by {off[len(off) // 2]:.1%} in the middle, {off[-1]:.1%} at most"
    )
    return len(troubles)


def _report(title: str, verdicts: Sequence[Verdict]) -> int:
    troubles = [verdict.trouble for verdict in verdicts if verdict.trouble]
    ends = Counter(end for verdict in verdicts for end in verdict.ends)
    steps = sum(verdict.steps for verdict in verdicts)
    print("\n\n".join(troubles))
    endings = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    print(
        f"{title}: {len(verdicts) - len(troubles)} of {len(verdicts)} as they should be; {steps} model calls; {endings}"
    )
    return len(troubles)


def _times(title: str, seconds: Sequence[float | None], troubles: Sequence[str]) -> int:
    taken = sorted(one for one in seconds if one is not None)
    found = [trouble for trouble in troubles if trouble]
    print("\n".join(found))
    middle, slowest = (taken[len(taken) // 2], taken[-1]) if taken else (0.0, 0.0)
    late = len(seconds) - len(taken) - len(found)
    print(
        f"{title}: {len(seconds)}, of which {late} came after the end; {len(found)} wrong; "
        f"median {middle * 1000:.0f} ms, slowest {slowest * 1000:.0f} ms"
    )
    return len(found)


PARTS = {
    "sessions": _sessions,
    "wires": _wires,
    "programs": _programs,
    "loops": _loops,
    "replay": _replay,
    "interrupts": _interrupts,
    "program-interrupts": _program_interrupts,
    "histories": _histories,
    "crashes": _crashes,
    "stacks": _stacks,
    "long": _long,
    "surfaces": _surfaces,
    "waiting": _waiting,
    "bills": _bills,
}

if __name__ == "__main__":
    sys.exit(main())
