"""Checkpoints of 20,000 files beside `git add -A && git write-tree`, and what 1,000 of a small project take."""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from treadle.workspace.checkpoints.store import open_checkpoints

_FILES = 20_000
_ROUNDS = 9
_CHANGED = 5
_CHECKPOINTS = 1_000
_WORDS = [bytes(random.Random(seed).choices(b"abcdefghijklmnopqrstuvwxyz", k=2 + seed % 9)) for seed in range(5_000)]


def _text(chance: random.Random, size: int) -> bytes:
    lines: list[bytes] = []
    while size > 0:
        lines.append(b" ".join(chance.choices(_WORDS, k=8)) + b"\n")
        size -= len(lines[-1])
    return b"".join(lines)


def _write(root: Path, files: int, size: int) -> list[Path]:
    chance = random.Random(1)
    paths = []
    for number in range(files):
        path = root / f"part{number % 10}" / f"package{number % 1000}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_text(chance, chance.randrange(size // 2, size * 3 // 2)))
        paths.append(path)
    return paths


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _row(what: str, ours: float, plain: float) -> None:
    print(f"{what:<72} {ours * 1000:7.1f} ms {plain * 1000:7.1f} ms {ours / plain:5.2f} x")


def _speed(folder: Path) -> None:
    """Both look at the same files, in turn, git with a folder of its own."""
    root = folder / "root"
    paths = _write(root, _FILES, 3_750)
    (root / ".gitignore").write_text("*.log\nbuild/\n/dist\n__pycache__/\n*.pyc\n")
    time.sleep(0.2)
    environment = {**os.environ, "GIT_DIR": str(folder / "git"), "GIT_WORK_TREE": str(root)}
    subprocess.run(["git", "init", "-q"], env=environment, check=True)
    line = "git add -A && git write-tree >/dev/null"

    def git() -> object:
        return subprocess.run(["sh", "-c", line], env=environment, cwd=root, check=True)

    store = open_checkpoints(folder / "store", str(root))
    os.sync()
    first = _timed(lambda: store.take("bench/first"))
    os.sync()
    _row("the first checkpoint of 20,000 files | git", first, _timed(git))
    ours, theirs, cold = [], [], []
    for number in range(_ROUNDS):
        for path in paths[number * 7 : number * 7 + _CHANGED]:
            path.write_bytes(path.read_bytes() + b"changed\n")
        time.sleep(0.1)
        theirs.append(_timed(git))
        ours.append(_timed(lambda: store.take("bench/later")))
        store.close()
        fresh = open_checkpoints(folder / "store", str(root))
        cold.append(_timed(lambda fresh=fresh: fresh.take("bench/cold")))  # type: ignore[misc]
        fresh.close()
    _row("a later one with 5 changed files | git", min(ours), min(theirs))
    _row("one with no changes in a new process | git", min(cold), min(theirs))
    store.close()


def _space(folder: Path) -> None:
    root = folder / "root"
    paths = _write(root, 1_000, 5_000)
    chance = random.Random(2)
    store = open_checkpoints(folder / "store", str(root))
    store.take("bench/start")
    store.prune(10**12)
    start, new = store.size(), 0
    for number in range(_CHECKPOINTS):
        for path in chance.sample(paths, 2):
            data = path.read_bytes()
            at = chance.randrange(len(data))
            path.write_bytes(data[:at] + _text(chance, 80) + data[at:])
            new += path.stat().st_size
        store.take(f"bench/{number}")
    store.prune(10**12)
    taken = store.size() - start
    print(f"1,000 checkpoints of a 5 MB project, in bytes | the new versions {taken:>20,} {new:,} {taken / new:.2f} x")
    store.close()


def main() -> None:
    """Print each figure: ours, git's or the plain size, the ratio."""
    for part in (_speed, _space):
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder).resolve())
