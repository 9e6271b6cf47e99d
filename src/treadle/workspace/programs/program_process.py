"""One running program: started shut off from everything, spoken to line by line, and ended with all that it has."""

import asyncio
import contextlib
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from signal import SIGKILL
from typing import IO, Any

import msgspec
from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.programs import program_runner
from treadle.workspace.sandbox.backend import Backend, SandboxState, probe
from treadle.workspace.sandbox.seccomp import filter_program
from treadle.workspace.sandbox.wrap import running_tasks

MOST_COMPUTING = 60
"""How long a program may compute without a call."""

_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache")
_RUNNER = "/run/program_runner.py"
_TMP = "/tmp"  # noqa: S108 - one of its own
_TMP_BYTES = 64 * 1024**2
_TASKS = 64
_LONGEST_LINE = 64 * 1024**2
_ISOLATED = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"),
    *("--cap-drop", "ALL", "--clearenv", "--hostname", "program"),
)
_LEAVES = {
    Backend.LANDLOCK: "Landlock does not hide which files there are, and a program could outlive its end",
    Backend.SEATBELT: "sandbox-exec does not hide which files there are, and a program could outlive its end",
}
"""Why what confines commands does not shut a program off."""

_VARIABLES = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": _TMP, "HOME": _TMP}


class ProgramCall(Struct, frozen=True):
    """A call of a program."""

    name: str
    arguments: dict[str, Any]


class ProgramSaid(Struct, frozen=True, kw_only=True):
    """What a program says: the `calls` that it waits for, or that it is over, with the `error`, and `why` in a line."""

    calls: tuple[ProgramCall, ...] = ()
    error: str | None = None
    why: str = ""


class ProgramResult(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    text: str
    failed: bool


def why_no_programs() -> str:
    """Say why a program cannot be shut off from everything here; empty where it can."""
    state = probe()
    if state.backend is not Backend.BUBBLEWRAP:
        leaves = f"; {_LEAVES[state.backend]}" if state.backend is not None else ""
        return f"it needs bubblewrap{leaves}{f' ({state.reason})' if state.reason else ''}"
    return "" if filter_program(platform.machine(), ()) else f"the processor {platform.machine()} is not known"


def shut_off(state: SandboxState, filter_descriptor: int) -> tuple[str, ...]:
    """Build the command line of a program that sees Python and nothing else."""
    prefix = os.path.realpath(sys.base_prefix)
    shown = (*_SYSTEM, prefix) if not prefix.startswith("/usr") else _SYSTEM
    return (
        *(state.program, *_ISOLATED),
        *(part for name, value in _VARIABLES.items() for part in ("--setenv", name, value)),
        *("--setenv", "LD_LIBRARY_PATH", f"{prefix}/lib"),  # of a Python that was moved
        *(part for path in shown for part in ("--ro-bind-try", path, path)),
        *("--ro-bind", program_runner.__file__, _RUNNER),
        *("--proc", "/proc", "--dev", "/dev", "--size", str(_TMP_BYTES), "--tmpfs", _TMP, "--chdir", _TMP),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--seccomp", str(filter_descriptor), "--"),
        *(os.path.realpath(sys.executable), "-s", "-S", "-P", _RUNNER),
    )


class ProgramProcess:
    """A program that runs; what it prints is kept in a file that has no name."""

    def __init__(self, process: asyncio.subprocess.Process, printed: IO[bytes]) -> None:
        self._process = process
        self._printed = printed

    async def begin(self, code: str, tools: Mapping[str, Sequence[str]]) -> None:
        """Give it the program, and the tools with their required parameters."""
        await self._say({"code": code, "tools": tools, "tasks": running_tasks() + _TASKS})

    async def said(self) -> ProgramSaid:
        """Wait for its next calls, or its end."""
        assert self._process.stdout is not None  # noqa: S101 - it was started so
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), MOST_COMPUTING)
        except TimeoutError:
            return ProgramSaid(error=f"It was stopped: it computed for {MOST_COMPUTING} seconds without a call.")
        except ValueError:
            return ProgramSaid(error="It was stopped: the arguments of a call are too long.")
        if not line.endswith(b"\n"):
            status = await self._process.wait()
            return ProgramSaid(error=f"It was ended from outside, or by its own limits (status {status}).")
        try:
            return msgspec.json.decode(line, type=ProgramSaid)
        except msgspec.DecodeError as error:
            return ProgramSaid(error=f"It was stopped: it wrote where only its calls are written ({error}).")

    async def answer(self, results: Sequence[ProgramResult]) -> None:
        """Give it what came of its calls."""
        await self._say({"results": [{"text": one.text, "failed": one.failed} for one in results]})

    async def _say(self, what: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was started so
        with contextlib.suppress(ConnectionError):  # it has ended, which is read where it would speak
            self._process.stdin.write(msgspec.json.encode(what) + b"\n")
            await self._process.stdin.drain()

    def printed(self, most: int) -> str:
        """Give what it printed so far; of more than so many characters the beginning and the end."""
        text = os.pread(self._printed.fileno(), os.fstat(self._printed.fileno()).st_size, 0).decode(errors="replace")
        if len(text) <= most:
            return text
        first, last = most * 2 // 3, most // 3
        left = len(text) - first - last
        return f"{text[:first]}\n[{left:,} characters are left out here: print less]\n{text[-last:]}"

    async def end(self) -> None:
        """End it with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, SIGKILL)
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()

    def close(self) -> None:
        """Forget what it printed."""
        self._printed.close()


async def run_shut_off(code: str, tools: Mapping[str, Sequence[str]]) -> ProgramProcess:
    """Start a program, which is shut off from everything. Raises `ToolError` where that cannot be."""
    why = await asyncio.to_thread(why_no_programs)
    if why:
        raise ToolError(f"Programs cannot run here: {why}. Make the calls one by one.")
    printed = tempfile.TemporaryFile()  # noqa: SIM115 - the program has it as long as it runs
    read, write = os.pipe()
    try:
        os.write(write, filter_program(platform.machine(), ()))
        os.close(write)
        process = await asyncio.create_subprocess_exec(
            *shut_off(probe(), read),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=printed,
            pass_fds=(read,),
            process_group=0,
            env={},
            limit=_LONGEST_LINE,
        )
    except BaseException as error:
        printed.close()
        if isinstance(error, OSError):
            raise ToolError(
                f"The program was not started: {error}. Make the calls one by one, and tell the user."
            ) from error
        raise
    finally:
        os.close(read)
    running = ProgramProcess(process, printed)
    await running.begin(code, tools)
    return running
