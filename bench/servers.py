"""MCP servers: results of any size take time in proportion, and never hold the session's loop up."""

import asyncio
import tempfile
import time
from pathlib import Path

from tests.mcp.hubs import call, fake, hub_of

SIZES = (1, 10, 50, 100)
"""Megabytes."""


async def _longest_stall(until: asyncio.Event) -> float:
    """Give the longest time for which the loop came to nothing else."""
    longest = 0.0
    while not until.is_set():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before - 0.001)
    return longest


async def _measure(folder: Path) -> None:
    async with hub_of(folder, fake()) as hub:
        per_megabyte = 0.0
        for size in (0, *SIZES):
            done = asyncio.Event()
            watching = asyncio.create_task(_longest_stall(done))
            started = time.perf_counter()
            if size:
                await call(hub, "mcp__fake__big", n=size * 1_000_000)
            else:
                await asyncio.sleep(1.0)
            took = time.perf_counter() - started
            done.set()
            stall = await watching
            if not size:
                print(f"longest stall of an idle loop      {stall * 1000:7.1f} ms")
                continue
            per_megabyte = per_megabyte or took
            ratio = took / size / per_megabyte
            print(
                f"a result of {size:3} MB                {took * 1000:7.1f} ms   {ratio:5.2f}x of 1 MB, each MB; "
                f"longest stall {stall * 1000:5.1f} ms (budget 50)"
            )


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder)))


if __name__ == "__main__":
    main()
