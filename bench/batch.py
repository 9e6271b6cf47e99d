"""Many tasks at once: the memory of each beyond the first, and the processor time of each, with a model that waits.

`ARGS=batch`: a batch of 50 tasks with 50 workers, and one of one task; the model answers each call after some seconds.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.batches import Place, Solver, tasks
from tests.rehearsal.fleets import descendants

from treadle.providers.scripted.scripted_server import ScriptedServer

AT_ONCE = 50
_WAITS = 15.0
"""Seconds before each answer: so long that all tasks wait at the same time."""

_CHECK = "grep -q 'a + b' calc.py"
_LOOKS = 2.0


def pss(process: int) -> int:
    """The memory of a process (bytes), with its part of what it shares; 0 where it is gone."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return 0


async def measured(number: int) -> tuple[int, float]:
    """Run a batch of so many tasks side by side; gives the most memory (bytes) and its processor time (seconds)."""
    with TemporaryDirectory(prefix="bench-batch-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        place = Place(Path(name))
        place.prepare(tasks(number, check=_CHECK))
        async with ScriptedServer(Solver(seconds=_WAITS)) as server:
            words = (sys.executable, "-m", "treadle", *place.words(server.base_url, workers=number))
            most = [0]
            process = subprocess.Popen(words, env=place.program.environment, stderr=subprocess.DEVNULL)
            spent = asyncio.create_task(asyncio.to_thread(os.wait4, process.pid, 0))
            while not spent.done():
                most.append(sum(map(pss, (process.pid, *descendants(process.pid)))))
                await asyncio.wait([spent], timeout=_LOOKS)
            _, status, usage = await spent
        ends = [row["state"] for row in place.rows()]
        if status or ends != ["done"] * number:
            raise SystemExit(f"status {status}, {ends}")
    return max(most), usage.ru_utime + usage.ru_stime


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures."""
    number = int(next(iter(arguments), AT_ONCE))
    (first, alone), (all_of_them, together) = asyncio.run(measured(1)), asyncio.run(measured(number))
    print(f"one task                    {first / 1e6:8.0f} MB {alone:8.2f} s of processor time")
    print(f"{number} tasks at once           {all_of_them / 1e6:8.0f} MB {together:8.2f} s of processor time")
    more = number - 1
    print(
        f"each task beyond the first  {(all_of_them - first) / more / 1e6:8.1f} MB {(together - alone) / more:8.2f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
