"""Where the processor time of a step goes, by part of the program, from samples of the real program.

What a short run takes is subtracted from what a long one takes: what remains is that of the steps between.
"""

import atexit
import json
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import FrameType

from bench.peers import AGENTS, LENGTHS, Agent, Seen, run

ROUNDS = 3
EVERY = 0.001
"""Seconds of processor time between two samples; the system may take fewer."""

PARTS = (
    ("policy/secret", "redaction"),
    ("app/session/known_values", "redaction"),
    ("policy/", "judging"),
    ("app/security/", "judging"),
    ("app/session/commands/judging", "judging"),
    ("app/session/commands/policy_judge", "judging"),
    ("providers/", "connection and reply"),
    ("app/models/", "connection and reply"),
    ("parsing/", "connection and reply"),
    ("engine/runtime/reply_reader", "connection and reply"),
    ("engine/runtime/model_call", "connection and reply"),
    ("store/", "log"),
    ("tools/", "the tool itself"),
    ("workspace/environment", "the next request"),
    ("workspace/", "the tool itself"),
    ("context/", "the next request"),
    ("engine/runtime/assembling", "the next request"),
    ("engine/runtime/model_requests", "the next request"),
    ("engine/runtime/window", "the next request"),
    ("engine/runtime/feeds", "what is told and printed"),
    ("headless/", "what is told and printed"),
    ("engine/", "the machine and its tasks"),
)
"""What the innermost module of ours in a stack belongs to; the first that fits."""
LOOP = "event loop and threads"
OTHER = "other"
_WAITING = ("selectors.py", "threading.py", "thread.py", "queue.py")


def part_of(frame: FrameType | None) -> str:
    """Name the part of the program that a stack is in."""
    inner = frame
    while inner is not None:
        _, ours, module = inner.f_code.co_filename.rpartition("src/treadle/")
        if ours and not module.startswith(("cli/", "__main__", "app/session/live")):
            return next((part for beginning, part in PARTS if module.startswith(beginning)), OTHER)
        inner = inner.f_back
    return LOOP


def busy(here: FrameType | None) -> FrameType | None:
    """Find the stack that works: of the main thread, or of another one while it waits."""
    if here is None or not here.f_code.co_filename.endswith(_WAITING):
        return here
    others = (frame for thread, frame in sys._current_frames().items() if thread != threading.main_thread().ident)  # noqa: SLF001 - the only way to them
    return next((frame for frame in others if not frame.f_code.co_filename.endswith(_WAITING)), here)


def sampled() -> None:
    """Run the program as it is, and write at its end how often each part was met."""
    seen: Counter[str] = Counter()

    def take(_: int, frame: FrameType | None) -> None:
        seen[part_of(busy(frame))] += 1

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        Path(os.environ["SAMPLES"]).write_text(json.dumps(seen))

    atexit.register(write)
    signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    sys.argv = ["treadle", *sys.argv[1:]]
    runpy.run_module("treadle", run_name="__main__", alter_sys=True)


def samples(agent: Agent, steps: int, seen: Seen) -> Counter[str]:
    """Take the samples of one run."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "samples"
        ours = {"SAMPLES": str(file), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        begin = [sys.executable, "-c", "from bench.step import sampled; sampled()"]
        run(
            replace(
                agent,
                command=lambda home, url: [*begin, *agent.command(home, url)[3:]],
                variables=lambda home, url: {**agent.variables(home, url), **ours},
            ),
            steps,
            seen,
        )
        return Counter(json.loads(file.read_text()))


def main() -> None:
    """Print the figures."""
    agent = next(agent for agent in AGENTS if agent.name == "treadle")
    few, many = LENGTHS
    short, long = Seen(), Seen()
    found: Counter[str] = Counter()
    for _ in range(ROUNDS):
        found.update(samples(agent, many, long))
        found.subtract(samples(agent, few, short))
    total = sum(found.values())
    step = (sum(long.used) - sum(short.used)) / ROUNDS / (many - few)
    print(f"processor time of a step   {step * 1000:6.2f} ms, from {total:,} samples")
    for part, count in found.most_common():
        print(f"  {part:<28} {count / total:5.0%}   {count / total * step * 1000:6.2f} ms")


if __name__ == "__main__":
    main()
