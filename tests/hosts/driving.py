"""A host on the lines themselves."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.hosts.place import Host

BOTH = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
ASKS = ("--permission-prompt-tool", "stdio")
PATIENCE = 90.0


class Driver:
    """A host that writes and reads lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.frames: list[dict[str, Any]] = []

    def say(self, *frames: Any) -> None:
        assert self.process.stdin is not None
        for frame in frames:
            line = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
            self.process.stdin.write(line + b"\n")

    def ask(self, text: str, **more: Any) -> None:
        self.say({"type": "user", "message": {"role": "user", "content": text}, **more})

    def control(self, subtype: str, **more: Any) -> None:
        self.say({"type": "control_request", "request_id": subtype, "request": {"subtype": subtype, **more}})

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            async for line in self.process.stdout:
                frame: dict[str, Any] = json.loads(line)
                self.frames.append(frame)
                if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                    return frame
        raise AssertionError(f"no {kind} came, only {[one['type'] for one in self.frames]}")

    async def until_any(self, *kinds: str) -> dict[str, Any]:
        """Wait for a frame of one of these kinds."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            async for line in self.process.stdout:
                self.frames.append(json.loads(line))
                if self.frames[-1]["type"] in kinds:
                    return self.frames[-1]
        raise AssertionError(f"none of {kinds} came")

    async def end(self) -> tuple[int, str]:
        """Wait for the end; gives the exit code and standard error."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            async for line in self.process.stdout:
                self.frames.append(json.loads(line))
            said = await self.process.stderr.read()
            return await self.process.wait(), said.decode()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]


@asynccontextmanager
async def driving(host: Host, environment: dict[str, str], *flags: str) -> AsyncIterator[Driver]:
    process = await asyncio.create_subprocess_exec(
        str(host.cli),
        *flags,
        cwd=host.folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(host.home), **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**22,
    )
    try:
        yield Driver(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
