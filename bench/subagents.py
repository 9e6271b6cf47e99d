"""What five subagents cost beside one session: memory, the time until all asked their model, and the parent's steps."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import CallChanged, CallStatus, PhaseChanged, TurnEnded
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/scripted"
OF_CHILD = Texts(contains=("You are a subagent",))
STEPS = 20
_RUNS = 3


def _resident() -> float:
    """Give the megabytes that this process takes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def _script(children: int, agent: str) -> Script:
    tasks = [{"prompt": f"Wait {number}.", "agent": agent} for number in range(children)]
    calls = [MakeCall(name="read_file", arguments={"paths": [f"f{number}.py"]}) for number in range(STEPS)]
    wait = agent == "worker"
    begins = [MakeCall(name="use_subagents", arguments={"tasks": tasks, "wait": wait})] if children else calls[:1]
    return Script(
        turns=(
            Turn(when=Expectation(system=OF_CHILD), items=(Wait(seconds=600),)),
            Turn(items=tuple(begins)),
            *(Turn(items=(call,)) for call in calls),
            Turn(items=(SayText(text="Done."),)),
        )
    )


async def _measured(folder: Path, children: int, agent: str) -> None:
    """Print the megabytes of the process, the seconds until each child has asked its model, and those of a step."""
    async with ScriptedServer(_script(children, agent)) as server:
        settings = Settings(model=MODEL, base_url=server.base_url, mode=Mode.EDITS, tool_protocol=ToolProtocol.NATIVE)
        opening = Opening(
            workspace=folder, settings=settings, user_present=True, trust=session_trust(folder, once=True)
        )
        async with await open_session(opening) as live, live.follow() as feed:
            await live.post(Prompt(id="p", content=(Text(text="Go."),)), Source(kind="bench"))
            begun, steps, started, worked = 0.0, [], 0.0, 0.0
            async for one in feed:
                if isinstance(one, CallChanged) and one.status is CallStatus.RUNNING and not begun:
                    begun, worked = time.perf_counter(), time.process_time()
                    while sum("You are a subagent" in str(seen.body)[:4000] for seen in server.requests) < children:
                        await asyncio.sleep(0.005)
                    started, worked = time.perf_counter() - begun, time.process_time() - worked
                    if agent == "worker":
                        break
                if isinstance(one, PhaseChanged):
                    steps.append(time.perf_counter())
                if isinstance(one, TurnEnded):
                    break
            gap = (steps[-1] - steps[len(steps) // 2]) / (STEPS / 2) if len(steps) > STEPS else 0.0
            print(f"{_resident()} {started} {worked} {gap}", flush=True)
            os._exit(0)  # what they wait for is not waited for


def _run(folder: Path, children: int, agent: str) -> tuple[float, float, float, float]:
    with tempfile.TemporaryDirectory() as home:
        surroundings = {**os.environ, "TREADLE_HOME": f"{home}/treadle", "HOME": home}
        command = (sys.executable, "-m", "bench.subagents", str(folder), str(children), agent)
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    megabytes, seconds, worked, step = map(float, done.stdout.split())
    return megabytes, seconds, worked, step


def _least(folder: Path, children: int, agent: str) -> tuple[float, ...]:
    """Give the least of each figure over some runs: what else the machine does only adds to it."""
    return tuple(map(min, zip(*(_run(folder, children, agent) for _ in range(_RUNS)), strict=True)))


def main() -> None:
    """Print the figures, each beside that of a session without subagents."""
    if len(sys.argv) > 3:
        asyncio.run(_measured(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for number in range(200):
            (folder / f"f{number}.py").write_text("x = 1\n" * 200)
        one = _least(folder, 0, "explore")
        for agent in ("explore", "worker"):
            tree = _least(folder, 5, agent)
            print(f"1 + 5 {agent}: {tree[0]:.0f} MB, one session {one[0]:.0f} MB: {tree[0] / one[0]:.2f} times")
            print(f"1 + 5 {agent}: all five asked their model after {tree[1]:.2f} s, {tree[2]:.2f} s of processor time")
            if tree[3]:
                print(f"a step of the session beside five of {agent}: {tree[3] / one[3]:.2f} times one without them")


if __name__ == "__main__":
    main()
