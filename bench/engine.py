"""The engine's own time for each step, its memory, and the resume of a long session."""

import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.__main__ import LOOK_FOR_CYCLES
from treadle.engine.core.past_history import read_past
from treadle.engine.ports import Output, Ports, Prepared, SharedSpent
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.policy.secrets import known_secrets
from treadle.protocol.events import Prompt, SessionStarted, Source
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Text
from treadle.protocol.models import (
    ModelChoice,
    ModelRequest,
    ModelSpec,
    ReplyStop,
    Spent,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    ToolProtocol,
)
from treadle.protocol.notifications import TurnEnded
from treadle.protocol.permissions import Decision, Mode, Situation, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
    result_text,
)
from treadle.protocol.usage import Usage
from treadle.providers.anthropic_messages import AnthropicMessages
from treadle.providers.endpoint import Endpoint
from treadle.store.appending import SessionLog
from treadle.store.sqlite import SessionRow, Store

STEPS = 1_010
WINDOWS = (5, 50, 300, 1_000)
RESULT = "x = 1\n" * 60
"""A tool result of 360 characters: with it, step 1,000 is a conversation that still fits a window of 200,000 tokens."""


class Steady:
    """A provider that writes the whole request in the real wire format and answers with one call."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._wire = AnthropicMessages(Endpoint(name="bench", base_url="http://127.0.0.1"))
        self.at: list[float] = []
        self.cpu: list[float] = []
        self.sent = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer at once."""
        self.sent = len(self._wire.prepare(request).body)
        self.at.append(time.perf_counter())
        self.cpu.append(time.process_time())
        number = len(self.at)
        yield StreamText(text=f"Step {number}: I look at the next file.")
        if number < self._steps:
            yield StreamCallStart(index=0, name="look", wire_id=f"toolu_{number}")
            yield StreamCallArguments(index=0, text=f'{{"path": "src/file_{number}.py"}}')
            yield StreamCallDone(index=0)
        stop = ReplyStop.TOOL_USE if number < self._steps else ReplyStop.END_TURN
        yield StreamStop(reason=stop, usage=Usage(input_tokens=100, output_tokens=20))

    async def close(self) -> None:
        """Nothing is held."""


class Look:
    """A tool that takes no time."""

    spec = ToolSpec(
        name="look",
        description="Looks.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        traits=ToolTraits(kind=ToolKind.READ, effect=ToolEffect.ONCE),
        risk=Risk.NONE,
    )

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Nothing to find out."""
        return Prepared(accesses=(), preview=Preview(title=f"Look at {arguments['path']}"), run=self._run)

    async def _run(self, output: Output) -> CallResult:
        output("looking")
        return result_text(Outcome.OK, RESULT)


class Nowhere:
    """No surroundings."""

    async def describe(self, *, first: bool, situation: Situation | None) -> str:  # noqa: ARG002 - nobody works here
        """Say nothing but the time's place."""
        return "Time: now" if not first else "Workspace: /bench"


class Purse:
    """No other session spends anything."""

    async def reserve(self, _: Spent, /, *, aside: bool = False) -> SharedSpent:  # noqa: ARG002 - the port
        """Spend nothing."""
        return SharedSpent()


def allow(*_: object, **__: object) -> Decision:
    """Allow everything."""
    return Decision(verdict=Verdict.ALLOW, risk=Risk.NONE, digest="d")


def make_ports(store: Store, provider: Steady) -> Ports:
    """Put a session's surroundings together."""
    return Ports(
        log=SessionLog(store, "bench"),
        environment=Nowhere(),
        judge=allow,
        redactor=lambda: known_secrets({}),
        tools={"look": Look()},
        left_out=lambda *_: {},
        provider=lambda _: provider,
        model=lambda _: ModelSpec(provider="bench", name="model"),
        system=lambda *_: (PromptPart(name="work", text="You are a coding agent."),),
        clock=lambda: time.time_ns() // 1_000_000,
        jitter=lambda: 0.5,
        shared_budgets=Purse(),
        remember=lambda _: None,
    )


async def work(folder: Path, steps: int) -> Steady:
    """Run a session of so many steps on a real log."""
    store = Store(folder / "bench.db")
    row = SessionRow(id="bench", workspace="/", model="b/m", title="", created_at=0, updated_at=0, events=0)
    await store.create(row)
    provider = Steady(steps)
    made = make_ports(store, provider)
    session = Session(Track(), made.clock)
    feed = session.follow()
    running = asyncio.create_task(session.run(made))
    await session.post(
        SessionStarted(
            choice=ModelChoice(model="b/m", tool_protocol=ToolProtocol.NATIVE),
            session_id="bench",
            workspace="/",
            mode=Mode.ASK,
            limits=Limits(max_repeats=10**9),
        )
    )
    await session.post(Prompt(id="p", content=(Text(text="go"),)), Source(kind="library"))
    async for notification in feed:
        if isinstance(notification, TurnEnded):
            break
    await session.close()
    await running
    store.close()
    return provider


def per_step(at: Sequence[float], step: int) -> float:
    """Give the median time from one request to the next around a step (seconds)."""
    around = range(max(1, step - 4), min(len(at), step + 6))
    return statistics.median(at[index] - at[index - 1] for index in around)


def resume(folder: Path) -> tuple[int, float]:
    """Read a long log and fold it; gives the number of events and seconds."""
    store = Store(folder / "bench.db")
    begun = time.perf_counter()
    count = store.find("bench").events
    Session(Track(read_past(store.read("bench"))), make_ports(store, Steady(1)).clock)
    taken = time.perf_counter() - begun
    store.close()
    return count, taken


RESIDENT = "resident = int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20"
"""A program that finds out what it holds in memory (MiB)."""


def resident() -> float:
    """Tell what this process holds in memory (MiB)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    """Print the figures."""
    if sys.argv[1:] == ["--memory"]:
        with tempfile.TemporaryDirectory() as temporary:
            asyncio.run(work(Path(temporary), 300))
        print(resident())
        return
    with tempfile.TemporaryDirectory() as temporary:
        provider = asyncio.run(work(Path(temporary), STEPS))
        first = per_step(provider.cpu, WINDOWS[0])
        print("engine time for each step, log and request bytes included   (budget 5 ms, flat)")
        for step in WINDOWS:
            taken, waited = per_step(provider.cpu, step), per_step(provider.at, step)
            ratio = f"{taken / first:5.2f}x of step {WINDOWS[0]}"
            print(
                f"  step {step:>5}   {taken * 1000:6.2f} ms of processor   {ratio}   ({waited * 1000:6.2f} ms in all)"
            )
        print(f"  the last request had {provider.sent:,} bytes")
        gc.set_threshold(*LOOK_FOR_CYCLES)
        resumes = [resume(Path(temporary)) for _ in range(5)]
        count, taken = resumes[0][0], statistics.median(seconds for _, seconds in resumes)
        print(
            f"resume of {count:,} events   {taken * 1000:6.1f} ms, "
            f"{taken / count * 1e7:5.1f} ms for 10,000   (budget 300 ms)"
        )
    memory = float(
        subprocess.run(
            [sys.executable, "-m", "bench.engine", "--memory"], check=True, capture_output=True, text=True
        ).stdout
    )
    bare = float(
        subprocess.run(
            [sys.executable, "-c", f"{RESIDENT}; print(resident)"], check=True, capture_output=True, text=True
        ).stdout
    )
    print(f"memory after 300 steps   {memory:6.1f} MB, {memory / bare:4.1f}x of a bare interpreter   (budget 80 MB)")


if __name__ == "__main__":
    main()
