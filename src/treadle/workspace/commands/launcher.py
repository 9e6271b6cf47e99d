"""Starting commands, each under a guard. One guard is kept ready: a command should not wait for an interpreter.

What runs them is loaded with the first command: opening a session does not wait for that.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.hiding import Hide, as_it_is
from treadle.workspace.commands.wrapping import UNWRAPPED, Wrapping

if TYPE_CHECKING:
    from treadle.workspace.commands.process import Bounds, CommandProcess, GuardProcess

_PAUSE = 0.05  # seconds after a command's start, so that it has the processor first
_FREE = Setup()
_LONGEST = 128 * 1024 - 1  # bytes; what Linux takes as one argument


class Launcher:
    """Starts shell lines in one directory with one environment, `variables`; long output goes to files in `spool`."""

    def __init__(
        self, *, shell: str, directory: str, variables: Mapping[str, str], spool: Path, hide: Hide = as_it_is
    ) -> None:
        self._shell = shell
        self._directory = directory
        self.variables: Mapping[str, str] = MappingProxyType(dict(variables))
        self._spool = spool
        self._hide = hide
        self._ready: GuardProcess | None = None
        self._later: asyncio.TimerHandle | None = None

    def start(
        self,
        line: str,
        bounds: "Bounds | None" = None,
        setup: Setup = _FREE,
        descriptors: Sequence[int] = (),
        *,
        cwd: str = "",
    ) -> "CommandProcess":
        """Start a line in its own session, without a terminal and with empty input; needs a running event loop.

        `setup` may put something around it and set variables. The line may use the open `descriptors`, and run in `cwd`
        instead of the directory. Raises `ToolError` when it cannot be started.
        """
        from treadle.workspace.commands.process import Bounds, CommandProcess

        raw, wrapping = _encoded(line), setup.wrapping
        if len(raw) > _LONGEST:
            raise ToolError(f"The command is longer than {_LONGEST:,} bytes. Write it to a file and run that.")
        folder = cwd or self._directory
        if not Path(folder).is_dir():
            raise ToolError(
                f"The command was not started: the workspace {folder} does not exist any more. Tell the user."
            )
        order = _order(raw, setup.variables, wrapping, folder)
        ready = None if wrapping.outer or descriptors else self._take_ready(order)
        used = ready or self._spawn_with(order, wrapping, descriptors)
        spool = self._spool / f"output-{os.urandom(6).hex()}.txt"
        command = CommandProcess(line, used, spool=spool, bounds=bounds or Bounds(), hidden=self._hide())
        command.settle_with(setup)
        setup.started(command.pid)
        self._put_off()
        if not descriptors:  # what is given some stays, and is not the first of many
            self._later = asyncio.get_running_loop().call_later(_PAUSE, self._prepare)
        return command

    def _put_off(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _prepare(self) -> None:
        if self._ready is None:
            with contextlib.suppress(ToolError):
                self._ready = self._spawn()

    def close(self) -> None:
        """End the guard that is ready for a command that will not come."""
        self._put_off()
        if self._ready is not None:
            _discard(self._ready)
            self._ready = None

    def _take_ready(self, order: bytes) -> "GuardProcess | None":
        ready, self._ready = self._ready, None
        if ready is None:
            return None
        try:
            _write(ready, order)
        except OSError:
            _discard(ready)
            return None
        return ready

    def _spawn_with(self, order: bytes, wrapping: Wrapping, descriptors: Sequence[int]) -> "GuardProcess":
        fresh = self._spawn(wrapping, descriptors)
        with contextlib.suppress(BrokenPipeError):  # a sandbox that cannot be set up says so in its output
            _write(fresh, order)
        return fresh

    def _spawn(self, wrapping: Wrapping = UNWRAPPED, descriptors: Sequence[int] = ()) -> "GuardProcess":
        from treadle.workspace.commands import guard
        from treadle.workspace.commands.process import GuardProcess

        try:
            read_end, write_end = os.pipe()
        except OSError as error:
            raise _not_started(error) from error
        try:
            process = subprocess.Popen(
                (*wrapping.outer, sys.executable, "-I", "-S", guard.__file__, self._shell),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=write_end,
                env=self.variables,
                start_new_session=True,
                pass_fds=tuple(descriptors),
            )
        except OSError as error:
            os.close(read_end)
            raise _not_started(error) from error
        finally:
            os.close(write_end)
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the guard is always started with pipes")
        return GuardProcess(process, process.stdin, process.stdout, os.fdopen(read_end, "rb", buffering=0))


def _order(line: bytes, variables: Mapping[str, str], wrapping: Wrapping, folder: str) -> bytes:
    """Write what a guard is to do: the line, its variables, bounds, what goes before the shell, and where to run."""
    watch = wrapping.watch
    bounds = (
        *(f"{name}={getattr(watch, name)}" for name in ("memory", "processes", "disk", "seconds")),
        "terminal=1",  # nobody can type
        *(f"folder={folder}" for folder in watch.folders),
    )
    caps = () if wrapping.caps is None else wrapping.caps.listed()
    parts = (
        line,
        _ended(f"{name}={value}" for name, value in variables.items()),
        _ended(bounds),
        _ended(wrapping.inner),
        _ended(f"{name}={value}" for name, value in caps),
        wrapping.joins.encode(),
        os.fsencode(folder),
    )
    return b" ".join(b"%d" % len(part) for part in parts) + b"\n" + b"".join(parts)


def _ended(texts: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _encoded(line: str) -> bytes:
    try:
        raw = os.fsencode(line)
    except UnicodeEncodeError as error:
        found = line[error.start]
        raise ToolError(f"The command holds {found!a}, which is an incomplete character. Write it without.") from error
    if b"\0" in raw:
        raise ToolError("The command has a NUL byte, and the shell would not see what follows. Write it without.")
    return raw


def _not_started(error: OSError) -> ToolError:
    return ToolError(
        f"The command could not be started: {error.strerror}. "
        "Stop commands in the background that are no longer needed, try again, or tell the user."
    )


def _write(to: "GuardProcess", order: bytes) -> None:
    rest = memoryview(order)
    while rest:
        rest = rest[to.orders.write(rest) :]


def _discard(unused: "GuardProcess") -> None:
    from treadle.workspace.commands.meter import remove_group

    unused.process.kill()
    unused.process.wait()
    remove_group(unused.process.pid)
    for pipe in (unused.orders, unused.report, unused.output):
        pipe.close()
