"""The store: appending 10,000 events of a real run, the size of their file, and the time and memory of a resume.

`TREADLE_BENCH_AGAINST=REVISION make bench ARGS=store` measures another revision of Treadle beside this one.
"""

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EVENTS = 10_000
STEPS = 1_700
"""Steps of a run that logs about so many events."""

_SIZES = (60, 600, 1_500, 2_400, 6_000)
"""Characters of tool results, in turn: most of a log is short rows, most of its bytes are long ones."""

_ROUNDS = 5
_HERE = Path(__file__).resolve().parents[1]


def _run_session(folder: Path) -> None:
    """Make the log of a session in the real engine; it is what the other parts measure."""
    import bench.engine
    from treadle.protocol.tools import CallResult, Outcome, result_text

    number = iter(range(10**9))

    async def look(_: object, output: object) -> CallResult:  # noqa: ARG001 - as the tool's own
        return result_text(Outcome.OK, "x = 1\n" * (_SIZES[next(number) % len(_SIZES)] // 6))

    bench.engine.Look._run = look  # type: ignore[method-assign,assignment]  # noqa: SLF001
    asyncio.run(bench.engine.work(folder, STEPS))


def _append(folder: Path) -> dict[str, float]:
    """Log the same events again, each in a transaction of its own."""
    from treadle.store.sqlite import SessionRow, Store

    store = Store(folder / "bench.db")
    events = list(store.read("bench"))[:EVENTS]
    store.close()
    again = Store(folder / "again.db")

    async def log() -> float:
        row = SessionRow(id="bench", workspace="/", model="b/m", title="", created_at=0, updated_at=0, events=0)
        await again.create(row)
        begun = time.process_time()
        for event in events:
            await again.append("bench", [event], durable=False)
        return time.process_time() - begun

    taken = asyncio.run(log())
    again.close()
    size = (folder / "again.db").stat().st_size
    bytes_of_rows = sum(len(data) for (data,) in _data(folder / "again.db"))
    return {"append": taken * 1000, "size": size / 1e6, "data": bytes_of_rows / 1e6, "events": len(events)}


def _data(path: Path) -> list[tuple[bytes]]:
    import sqlite3

    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT data FROM events").fetchall()
    connection.close()
    return rows


def _reader() -> Any:
    """Find what reads a log in the Treadle that is measured, which may be an older one."""
    try:
        from treadle.engine.core.past_history import read_past
    except ImportError:
        from treadle.engine.history import read_past  # type: ignore[import-not-found,no-redef]
    return read_past


def _read(folder: Path) -> dict[str, float]:
    """Open the log and read it, without and with what the engine makes of it."""
    read_past = _reader()
    from treadle.store.sqlite import Store

    gc.set_threshold(50_000, 50, 50)
    found: dict[str, list[float]] = {"read": [], "resume": []}
    for _ in range(5):
        for name, times in found.items():
            begun = time.process_time()
            store = Store(folder / "again.db")
            events = store.read(store.find("bench").id)
            if name == "read":
                deque(events, 0)
            else:
                read_past(events)
            times.append((time.process_time() - begun) * 1000)
            store.close()
    return {name: min(times) for name, times in found.items()}


def _hold(folder: Path) -> dict[str, float]:
    """Read the log once, and tell the peak of memory, and what the engine's own part of it is."""
    read_past = _reader()
    from treadle.store.sqlite import Store

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before = peak()
    store = Store(folder / "again.db")
    past = read_past(store.read("bench"))
    store.close()
    return {"memory": peak() - before, "messages": float(len(past.notifications))}


def _worker(part: str, folder: Path) -> None:
    if part == "run":
        _run_session(folder)
        return
    print(json.dumps({"append": _append, "read": _read, "hold": _hold}[part](folder)))


def _ask(part: str, folder: Path, root: Path) -> dict[str, float]:
    """Run a part under the Treadle of that folder."""
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    command = [sys.executable, str(Path(__file__).resolve()), "--part", part, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout or "{}")
    return found


def _measure(folder: Path, root: Path) -> dict[str, float]:
    for leftover in folder.glob("again.db*"):
        if leftover.is_file():
            leftover.unlink()
    return _ask("append", folder, root) | _ask("read", folder, root) | _ask("hold", folder, root)


def _checkout(revision: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", revision, "src", "bench"], cwd=_HERE, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder


_LINES = (
    ("append", "appending 10,000 events, each in a transaction", "ms of processor", ""),
    ("size", "the file with them", "MB", ""),
    ("read", "opening the log and reading them", "ms", ""),
    ("resume", "the same, with the conversation made of them", "ms", "budget 150 ms"),
    ("memory", "peak memory of that", "MB", ""),
)


def main() -> None:
    """Print the figures, and those of the other revision beside them."""
    against = os.environ.get("TREADLE_BENCH_AGAINST", "")
    with tempfile.TemporaryDirectory() as temporary:
        roots = {"here": _HERE} | ({against: _checkout(against, Path(temporary))} if against else {})
        folders = {name: Path(temporary, f"logs of {name}") for name in roots}
        for name, root in roots.items():
            folders[name].mkdir()
            _ask("run", folders[name], root)
        rounds = [{name: _measure(folders[name], root) for name, root in roots.items()} for _ in range(_ROUNDS)]
    best = {name: {key: min(one[name][key] for one in rounds) for key in rounds[0][name]} for name in roots}
    here = best["here"]
    print(f"{here['events']:,.0f} events with {here['data']:.1f} MB of data, {here['messages']:,.0f} notifications")
    for key, what, unit, budget in _LINES:
        beside = ""
        if against:
            beside = f"   {here[key] / best[against][key]:5.2f}x of {best[against][key]:,.1f} {unit} at {against}"
        print(f"  {what:<48}{here[key]:>9,.1f} {unit}{beside}{f'   ({budget})' if budget else ''}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        _worker(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
