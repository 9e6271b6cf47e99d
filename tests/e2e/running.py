"""A program that runs: what it says as it goes, signals to it, and what it leaves behind."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.process import Ended, Program
from treadle.protocol.events import Event
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store

PATIENCE = 90.0
"""Seconds until a test gives up waiting for something."""

_GONE_SECONDS = 30.0
"""Seconds that a process may take to go after it was killed."""

LINE = 2**24


@dataclass
class Running:
    """A program that writes one JSON object a line."""

    process: asyncio.subprocess.Process
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Read on until a record of this type, with these values, comes."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            async for line in self.process.stdout:
                record: dict[str, Any] = json.loads(line)
                self.seen.append(record)
                if record["type"] == kind and all(record.get(name) == value for name, value in fields.items()):
                    return record
        raise AssertionError(f"no {kind} came, only {[record['type'] for record in self.seen]}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def end(self) -> Ended:
        """Wait for the end; what was not read yet comes with it."""
        async with asyncio.timeout(PATIENCE):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return Ended(self.process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def running(program: Program, *arguments: str) -> AsyncIterator[Running]:
    """Start the program with one JSON object a line; it is killed with the block at the latest."""
    process = await program.start(*arguments, "--output-format", "stream-json", limit=LINE)
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def model(server: ScriptedServer, wire: str = "anthropic") -> tuple[str, ...]:
    """The flags that choose the scripted model, over one of the wire APIs."""
    path = "" if wire == "anthropic" else "/v1"
    provider = "anthropic-compatible" if wire == "anthropic" else "openai-compatible"
    return ("--model", f"{provider}/{server.model}", "--base-url", server.base_url + path)


def log_of(home: Path) -> list[Event]:
    """The events of the only session of a home."""
    store = Store(home / "sessions.db")
    try:
        (row,) = store.sessions()
        return list(store.read(row.id))
    finally:
        store.close()


def processes(marker: str) -> list[str]:
    """The command lines of all live processes that hold a text."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


def left_of(marker: str) -> list[str]:
    """The command lines of those that are still there after a while: a process that was killed takes a moment to go."""
    end = time.monotonic() + _GONE_SECONDS
    while (left := processes(marker)) and time.monotonic() < end:
        time.sleep(0.02)
    return left
