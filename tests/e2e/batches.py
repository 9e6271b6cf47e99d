"""Batches of tasks that a scripted model solves in four steps, and what their logs say of them."""

import asyncio
import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.process import Program
from treadle.protocol.events import CallFinished, CallProposed
from treadle.protocol.tools import Outcome
from treadle.protocol.usage import Usage
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import MakeCall, Pace, Refuse, Turn, Wait
from treadle.providers.scripted.seen_requests import SeenRequest
from treadle.store.sqlite import Store

CALL_COST = 0.01
"""US dollars that each answer of the model costs."""

SETTINGS = """
[models."anthropic-compatible/scripted"]
context_window = 200000
max_output = 4000
input_price = 1.0
output_price = 10.0
"""
USAGE = Usage(input_tokens=3_000, output_tokens=700)
EDIT = "------- SEARCH\n    return a - b\n=======\n    return a + b\n+++++++ REPLACE\n"
CHECK = "python3 -c 'import calc; assert calc.add(2, 3) == 5'"
STEPS = (
    MakeCall(name="read_file", arguments={"path": "calc.py"}),
    MakeCall(name="replace_in_file", arguments={"path": "calc.py", "diff": EDIT}),
    MakeCall(name="execute_command", arguments={"command": "cat calc.py"}),
    MakeCall(name="attempt_completion", arguments={"result": "Fixed."}),
)
_EDIT = 1


@dataclass
class Solver:
    """A model that fixes the task by where its conversation is, and makes an edit again that failed.

    `answered` counts the answers that it was paid for.
    """

    seconds: float = 0.0
    refusals: list[Refuse] = field(default_factory=list)
    answered: int = 0
    model: str = "scripted"
    at: dict[tuple[str, int], int] = field(default_factory=dict)

    def _step(self, seen: SeenRequest) -> int:
        """Give which of the steps is next; that of an answer is what it was when it was asked for before."""
        task, number = seen.last_user, seen.assistant_messages
        before = self.at.get((task, number - 1), number - 1)
        stays = seen.result_is_error and before == _EDIT and number < len(STEPS)
        return self.at.setdefault((task, number), min(before + (not stays), len(STEPS) - 1))

    def play(self, seen: SeenRequest) -> Performance:
        """Answer a request."""
        if self.refusals:
            return perform(Turn(items=(self.refusals.pop(),)), seen, Pace())
        self.answered += 1
        waits = (Wait(seconds=self.seconds),) if self.seconds else ()
        return perform(Turn(items=(*waits, STEPS[self._step(seen)]), usage=USAGE), seen, Pace())


@dataclass(frozen=True)
class Place:
    """A project with a mistake, and a batch of tasks that fix it."""

    folder: Path

    @property
    def program(self) -> Program:
        return Program(self.folder / "home")

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def prepare(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Make the project, and write the tasks."""
        project = self.folder / "project"
        project.mkdir()
        self.program.home.mkdir()
        (self.program.home / "config.toml").write_text(SETTINGS)
        (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        who = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
            subprocess.run([*who, *words], cwd=project, check=True)
        (self.folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in tasks))

    def words(self, address: str, *flags: str, workers: int = 4) -> tuple[str, ...]:
        """The command line."""
        model = ("--model", "anthropic-compatible/scripted", "--base-url", address)
        where = (str(self.folder / "tasks.jsonl"), "--out", str(self.out))
        return ("batch", *where, "--workers", str(workers), *model, "--trust", *flags)

    def rows(self, name: str = "results.jsonl") -> list[dict[str, Any]]:
        """The rows of a file, as far as they are written."""
        with suppress(FileNotFoundError):
            return [json.loads(line) for line in (self.out / name).read_text().splitlines()]
        return []

    def result(self, task: str) -> dict[str, Any]:
        (row,) = [row for row in self.rows() if row["id"] == task]
        return row

    def spent(self) -> float:
        """What all sessions have spent, without what is reserved: that may be too much, and is then not sent."""
        if not (self.program.home / "sessions.db").exists():
            return 0.0
        store = Store(self.program.home / "sessions.db")
        try:
            return float(sum(cost for (cost,) in store.query("SELECT cost FROM spending")))
        finally:
            store.close()

    def calls(self) -> dict[str, Counter[str]]:
        """How often each tool took effect, by the session."""
        store = Store(self.program.home / "sessions.db")
        try:
            return {row.id: self._calls(store, row.id) for row in store.sessions()}
        finally:
            store.close()

    def _calls(self, store: Store, session: str) -> Counter[str]:
        names, found = {}, Counter[str]()
        for event in store.read(session):
            match event.data:
                case CallProposed(call=call):
                    names[call.id] = call.name
                case CallFinished(call_id=call_id, result=result) if result.outcome is Outcome.OK:
                    found[names[call_id]] += 1
                case _:
                    pass
        return found


def tasks(number: int, **more: Any) -> list[dict[str, Any]]:
    """So many tasks on the project, as they were when it was committed."""
    return [
        {"id": f"t{one:02}", "prompt": f"Fix calc.py (task {one}).", "repo": "project", "commit": "main", **more}
        for one in range(number)
    ]


def children(pid: int) -> list[int]:
    """The workers of a batch."""
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


async def kill_at_random(process: asyncio.subprocess.Process, seed: int, kills: int) -> int:
    """Kill workers of a batch while it runs; gives how many were killed."""
    chance, killed = random.Random(seed), 0
    while process.returncode is None and killed < kills:
        await asyncio.sleep(chance.uniform(0.05, 0.5))
        if workers := children(process.pid):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed += 1
    return killed
