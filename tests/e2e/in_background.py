"""Sessions in the background, as the real program starts, lists and stops them."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.e2e.process import Ended, Program
from tests.e2e.running import PATIENCE, model, processes
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.leases import number_here
from treadle.store.sqlite import Store

SAYS = Script(turns=(Turn(items=(SayText(text="It is 42."),)), Turn(items=(SayText(text="It still is."),))))
ASKS = Script(
    turns=(
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "one.txt", "content": "one\n"}),)),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "It is there."}),)),
        Turn(items=(SayText(text="And now?"),)),
    )
)
WORKS = Script(turns=(Turn(items=(SayText(text="One moment."), Wait(seconds=PATIENCE))),))
"""A model that does not come to an end."""


class InBackground:
    """A home and a project, with a scripted model; what still runs at the end is killed."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir(exist_ok=True)
        self.program = Program(self.home)
        self.model = model(server)
        self.server = server

    @property
    def flags(self) -> tuple[str, ...]:
        return (*self.model, "--directory", str(self.project))

    async def start(self, task: str = "Do it.", *more: str) -> str:
        """Start a session; gives its id, which is all that is printed."""
        ended = await self.program.run("--bg", task, *self.flags, *more)
        assert (ended.code, ended.out.count("\n")) == (0, 1), ended
        return ended.out.removesuffix("\n")

    async def run(self, *arguments: str) -> Ended:
        return await self.program.run(*arguments)

    async def listed(self, *more: str) -> dict[str, dict[str, Any]]:
        """What `treadle sessions --json` says, by id."""
        ended = await self.program.run("sessions", "--directory", str(self.project), "--json", *more)
        rows = [json.loads(line) for line in ended.out.splitlines()]
        return {row["id"]: row for row in rows}

    async def until(self, session: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the list says something of a session."""
        row: dict[str, Any] = {}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            row = (await self.listed()).get(session, {})
            if row and is_so(row):
                return row
            await asyncio.sleep(0.1)
        raise AssertionError(f"this came not: {row}")

    async def until_closed(self, session: str) -> dict[str, Any]:
        """Wait until it is not open; a list made while it closes may have read the log before that."""
        await self.until(session, lambda row: not row["open"])
        return (await self.listed())[session]

    async def until_waiting(self, session: str) -> dict[str, Any]:
        return await self.until(session, lambda row: row["state"] == "waiting")

    async def until_gone(self) -> None:
        """Wait until no process works in the project any more."""
        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(processes, str(self.project)):
                await asyncio.sleep(0.1)

    def worker(self, session: str) -> int:
        """The process that has a session open."""
        return self.workers()[session]

    def workers(self) -> dict[str, int]:
        """The processes that have sessions open."""
        if not (self.home / "sessions.db").exists():
            return {}
        store = Store(self.home / "sessions.db")
        try:
            rows = store.query("SELECT session_id, owner FROM leases")
            leased = store.leased()
        finally:
            store.close()
        return {row[0]: number_here(row[1]) or 0 for row in rows if row[0] in leased}


@asynccontextmanager
async def in_background(folder: Path, script: Script) -> AsyncIterator[InBackground]:
    """Have a model for sessions in the background; no process of them is left."""
    async with ScriptedServer(script) as server:
        place = InBackground(folder, server)
        try:
            yield place
        finally:
            for worker in place.workers().values():
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGCONT)
                    os.kill(worker, signal.SIGKILL)
