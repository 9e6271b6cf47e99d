"""Looking at processes from outside, for tests."""

import asyncio
import itertools
import os
from pathlib import Path

_numbers = itertools.count(1)


def lasting() -> str:
    """Give a `sleep` that lasts, with an argument that no other process has."""
    return f"sleep {31_000_000 + os.getpid()}.{next(_numbers)}"


def living(line: str) -> int:
    """Count the processes whose command line is this one."""
    return len(numbers_of(line))


def numbers_of(line: str) -> list[int]:
    """Give the numbers of the processes whose command line is this one."""
    wanted = line.replace(" ", "\0").encode() + b"\0"
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found += [int(process.name)] if (process / "cmdline").read_bytes() == wanted else []
        except OSError:
            continue
    return found


async def until(line: str, count: int) -> int:
    """Wait, at most ten seconds, until so many processes have this command line, and count them."""
    for _ in range(500):
        if living(line) == count:
            break
        await asyncio.sleep(0.02)
    return living(line)
