"""Programs that Treadle uses itself: small ones, started with pipes and never left behind, and where Chromium is."""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence

from treadle.workspace.commands.variables import child_variables

_BUFFER = 1024 * 1024

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The names under which it is installed."""


def chromium_program(variables: Mapping[str, str]) -> str:
    """Find Chromium: what `TREADLE_CHROMIUM` names, or a usual name on the PATH; empty where there is none."""
    named = variables.get("TREADLE_CHROMIUM", "")
    found = (shutil.which(name, path=variables.get("PATH")) for name in ((named,) if named else CHROMIUM))
    return next(filter(None, found), "")


@contextlib.asynccontextmanager
async def program(*argv: str, cwd: str | None = None, memory: int = 0) -> AsyncIterator[Process]:
    """Start a program with pipes and the variables of children; with `memory`, it may take so many bytes and no more.

    What it maps of files is not counted, and where the system knows no such limit there is none.
    At the end of the block it is killed and gone, also when that is by a cancel.
    """
    process = await _started(argv, cwd)
    if memory and hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError):  # it has ended already
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (memory, memory))
    try:
        yield process
    finally:
        await asyncio.shield(_ended(process))


async def _started(argv: Sequence[str], cwd: str | None) -> Process:
    """Start a program. A cancel waits until it is started: asyncio would end it as `kill_program` must not."""
    variables = child_variables(os.environ)
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_BUFFER, env=variables, cwd=cwd
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _ended(await starting)
        raise


async def _ended(process: Process) -> None:
    kill_program(process)
    # What is still in the pipes has to be taken out, or the end of the process goes unnoticed.
    await process.communicate()


def kill_program(process: Process) -> None:
    """Kill a program that may have ended.

    Not by `process.kill`: that asks for the exit status behind the back of asyncio, which then says on standard error
    that the process is unknown, and takes 255 for its status.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def stream(pipe: asyncio.StreamReader | None) -> asyncio.StreamReader:
    """Say that a pipe of `program` is there."""
    if pipe is None:
        raise AssertionError("programs are always started with pipes")
    return pipe
