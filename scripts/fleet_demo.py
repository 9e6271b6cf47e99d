"""A fleet on PostgreSQL without a key: two workers do six tasks of a scripted model, and one of them is killed."""

import asyncio
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.e2e.batches import CHECK, Place, Solver, tasks
from tests.needed import missing
from tests.rehearsal.fleets import counted, descendants, postgres, send, until

from treadle.providers.scripted.scripted_server import ScriptedServer

NUMBER = 6
PATIENT = ("--adopt-after", "5")


async def show(place: Place, url: str) -> int:
    """Run it; gives the exit code of the batch."""
    place.prepare(tasks(NUMBER, check=CHECK))
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    async with ScriptedServer(Solver(seconds=0.5)) as server:
        say(f"treadle batch tasks.jsonl --out out --workers 0 --max-cost 1 --database {url}")
        words = place.words(server.base_url, "--database", url, "--max-cost", "1", *PATIENT, workers=0)
        batch = asyncio.create_task(place.program.run(*words))
        workers = [
            await place.program.start("worker", "--trust", "--database", url, "--workers", "2", *PATIENT)
            for _ in range(2)
        ]
        say(f"two workers: treadle worker --database {url} --workers 2")
        await until(lambda: len(server.requests) >= NUMBER)
        victim = workers[0]
        below = descendants(victim.pid)
        say(f"kill -9 of the worker {victim.pid} and its {len(below)} processes, in the middle of tasks")
        send(signal.SIGKILL, [*below, victim.pid])
        ended = await batch
        say(f"the batch has ended with {ended.code}")
        workers[1].send_signal(signal.SIGTERM)
        _, said = await workers[1].communicate()
        say(f"the other worker has ended with {workers[1].returncode} on SIGTERM")
        await victim.communicate()
    print(f"\n{ended.err}\n{ended.out}\nThe other worker:\n{said.decode()}")
    twice = [name for name, calls in place.calls().items() if any(times > 1 for times in calls.values())]
    print(f"{len(place.calls())} logs; with a step done twice: {len(twice)}. Counted: ${counted(url):.2f}.")
    return ended.code


def main() -> int:
    """Use a server of its own, or SQLite where none is installed."""
    with TemporaryDirectory(prefix="treadle-fleet-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        place = Place(Path(name) / "demo")
        place.folder.mkdir()
        if why := missing("postgres") or missing("psycopg"):
            print(f"{why}: the demo uses SQLite.")
            return asyncio.run(show(place, f"sqlite:///{place.folder}/fleet.db"))
        with postgres() as url:
            return asyncio.run(show(place, url))


if __name__ == "__main__":
    sys.exit(main())
