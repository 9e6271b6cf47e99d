"""Running the real program: its own data directory, no keys, a model over real HTTP on loopback."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.ready import TREADLE, treadle


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Program:
    """The program with a home of its own."""

    home: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
        return {**kept, "TREADLE_HOME": str(self.home), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", **self.extra}

    async def start(
        self, *arguments: str, command: Sequence[str] = TREADLE, cwd: Path | None = None, limit: int = 2**16
    ) -> asyncio.subprocess.Process:
        """Start it with pipes; `limit` is the longest line that can be read from them."""
        return await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=limit,
        )

    async def run(self, *arguments: str, command: Sequence[str] = (), cwd: Path | None = None) -> Ended:
        """Run it to its end."""
        process = await self.start(*arguments, command=command or treadle(), cwd=cwd)
        out, err = await process.communicate()
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())
