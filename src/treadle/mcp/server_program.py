"""The program of a server: started under a guard, which ends all of it with Treadle, and talked to over its pipes."""

import asyncio
import contextlib
import fcntl
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.confinement import Remark, Setup
from treadle.workspace.commands.hiding import Hide, as_it_is
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.process import Bounds, CommandProcess

_LEAST_DESCRIPTOR = 20  # above those that a sandbox is given
_READ_AHEAD = 1024 * 1024
_GRACE_AT_END = 1.0
_GRACE_AFTER_TERM = 0.5
_DRAIN = 0.2
_MOST_SEARCHED = 16_000
_LONGEST_SAID = 600
_SPOOLED = 4 * 1024 * 1024
_MOST_FILES = 3
"""Files of errors that are kept of each server."""


class ProgramStart(Struct, frozen=True, kw_only=True):
    """What is started: its words, its whole environment, and where. `spool` is for what it says on standard error.

    `set_up` says what goes around a shell line; it looks at the disk, and raises `ToolError`. `stopped` tells from that
    and what the program printed what was kept from it, and how to open that; empty for nothing.
    """

    argv: Sequence[str]
    variables: Mapping[str, str]
    directory: str
    shell: str
    spool: Path
    set_up: Callable[[str], Setup]
    stopped: Callable[[Setup, str], str] = lambda _setup, _said: ""
    hide: Hide = as_it_is


class _Moved:
    """Tells of the control files that were moved beside a program, each once; before anybody listens they wait."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._told = 0
        self._tell: Callable[[str], None] = self._waiting.append

    def tell_through(self, tell: Callable[[str], None]) -> None:
        """Tell from now on through this."""
        self._tell = tell
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            tell(text)

    def meanwhile(self, remarks: Sequence[Remark]) -> None:
        """Tell of what was found between calls; it comes once more with what is taken next."""
        found = _undone(remarks)
        self._told += len(found)
        for text in found:
            self._tell(text)

    def taken(self, remarks: Sequence[Remark]) -> tuple[str, ...]:
        """Tell of what is new, and give all of it."""
        found = _undone(remarks)
        for text in found[self._told :]:
            self._tell(text)
        self._told = 0
        return found


def _undone(remarks: Sequence[Remark]) -> tuple[str, ...]:
    return tuple(one.text for one in remarks if one.undone)


class ServerProgram:
    """A running program. Made by `start_program`."""

    def __init__(
        self,
        command: CommandProcess,
        launcher: Launcher,
        output: asyncio.StreamReader,
        pipes: tuple[int, asyncio.ReadTransport],
        *,
        stopped: Callable[[str], str],
        moved: _Moved,
    ) -> None:
        """`stopped` tells from what it printed what its sandbox kept from it, and how to open that."""
        self._moved = moved
        self._command = command
        self._launcher = launcher
        self._output = output
        self._input, self._listened = pipes
        self._stopped = stopped
        self._writing = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """Give what it prints next; nothing at its end, also where others hold its output open."""
        chunk = asyncio.ensure_future(self._output.read(64 * 1024))
        ended = asyncio.ensure_future(self._command.ended(_NEVER))
        try:
            await asyncio.wait((chunk, ended), return_when=asyncio.FIRST_COMPLETED)
            if not chunk.done():
                await asyncio.wait((chunk,), timeout=_DRAIN)
            return chunk.result() if chunk.done() else b""
        finally:
            chunk.cancel()
            ended.cancel()

    async def write(self, data: bytes) -> None:
        """Send bytes; waits while it takes none. Raises `OSError` when it takes none any more."""
        loop = asyncio.get_running_loop()
        async with self._writing:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[os.write(self._input, rest) :]
                except BlockingIOError:
                    writable = loop.create_future()
                    loop.add_writer(self._input, _settle, writable)
                    try:
                        await writable
                    finally:
                        loop.remove_writer(self._input)

    def tell_through(self, tell: Callable[[str], None], name: str) -> None:
        """Tell from now on of control files that it may have made and that were moved; of those before, at once.

        `name` is what the user calls it.
        """
        self._moved.tell_through(
            lambda text: tell(
                f"{text} The MCP server {name} was at work then and may have made it. "
                "If it is yours, move it back: it stays while the server does nothing."
            )
        )

    async def moved(self) -> tuple[str, ...]:
        """Look whether it made control files; gives a sentence for each that was moved since the last time."""
        return self._moved.taken(await self._command.settle(""))

    async def close(self) -> None:
        """End it and all that it started: by the end of its input, then by force. A cancel does not stop this."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close a server")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self.moved()  # before it wakes up to end: until then others made what is new
        asyncio.get_running_loop().remove_writer(self._input)
        os.close(self._input)
        self._input = -1
        await self._command.ended(_GRACE_AT_END)
        if self._command.alive:
            await self._command.stop("its session ended", grace=_GRACE_AFTER_TERM)
        await self._command.close()
        self._listened.close()
        self._launcher.close()

    def errors(self, *, served: bool) -> str:
        """Give how it ended, and the end of what it said on standard error.

        Of one that never `served` also what its sandbox kept from it: any other had what it needs.
        """
        said = self._command.take_output(_MOST_SEARCHED).strip()
        kept = "" if served or self._command.alive else self._stopped(said)
        return " ".join(filter(None, (self._command.describe(), kept, _end_of(said))))


_NEVER = 10.0**9


def _end_of(said: str) -> str:
    """Give the last whole words of a text."""
    if len(said) <= _LONGEST_SAID:
        return said
    return f"… {said[-_LONGEST_SAID:].split(None, 1)[-1]}"


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def start_program(start: ProgramStart) -> ServerProgram:
    """Start a program; needs a running event loop. Raises `ToolError`, `OSError`, or `ValueError` for a NUL in it."""
    line = f"cd {shlex.quote(start.directory)} && exec {shlex.join(start.argv)}"
    moved = _Moved()
    setup = msgspec.structs.replace(start.set_up(line), meanwhile=moved.meanwhile, unsaid=moved.taken)
    _keep_newest(start.spool)
    launcher = Launcher(
        shell=start.shell, directory=start.directory, variables=start.variables, spool=start.spool, hide=start.hide
    )
    ours, theirs = _pipes()
    try:
        to, out = theirs
        command = launcher.start(
            f"{line} <&{to} >&{out} {to}<&- {out}>&-", Bounds(spooled=_SPOOLED), setup, descriptors=theirs
        )
    except BaseException:
        for each in ours:
            os.close(each)
        raise
    finally:
        for each in theirs:
            os.close(each)
    command.keep_output()
    reader = asyncio.StreamReader(limit=_READ_AHEAD)
    listening, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours[1], "rb", buffering=0)
    )
    return ServerProgram(
        command, launcher, reader, (ours[0], listening), stopped=partial(start.stopped, setup), moved=moved
    )


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Make the two pipes: our ends, to write and to read, and the program's, to read and to write."""
    made: list[int] = []
    try:
        for _ in range(2):
            made += os.pipe()
        made[0] = _moved(made[0])
        made[3] = _moved(made[3])
    except OSError as error:
        for each in made:
            os.close(each)
        raise ToolError(f"It could not be started: {error.strerror}. Close other programs, and try again.") from error
    os.set_blocking(made[1], False)
    return (made[1], made[2]), (made[0], made[3])


def _moved(descriptor: int) -> int:
    found = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR)
    os.close(descriptor)
    return found


def _keep_newest(spool: Path) -> None:
    """Remove the oldest files of errors, so that there is place for one more."""
    with contextlib.suppress(OSError):
        files = sorted(spool.glob("output-*"), key=lambda file: file.stat().st_mtime)
        for file in files[: max(0, len(files) - _MOST_FILES + 1)]:
            file.unlink()
