"""Shell commands: output as it comes, bounded memory, and nothing left behind."""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from msgspec import Struct

from treadle.workspace.commands.confinement import Remark, Settle, Setup
from treadle.workspace.commands.hiding import Hidden
from treadle.workspace.commands.meter import descendants, inner_number, is_ending, process_name, remove_group
from treadle.workspace.commands.pacing import Paced
from treadle.workspace.commands.pipes import describe_pipes
from treadle.workspace.commands.spool import Spool
from treadle.workspace.commands.wrapping import advice_on, describe_bound
from treadle.workspace.files.text import Decoder, HeadTail, ShortLines, erased, flowing

_Output = Callable[[str], None]

_CHUNK = 64 * 1024
_DRAIN = 0.2
_GRACE_ON_TIMEOUT = 3.0
_GRACE_ON_CANCEL = 0.5
_KILL_TIME = 2.5
_SETTLE_EVERY = 5.0
_NO_BOUND = 2**40
_NEWLINE = "\n"


class Bounds(Struct, frozen=True, kw_only=True):
    """How much output is kept for the model (characters, also of one line), shown live (characters), spooled and read.

    The last two are bytes.
    """

    kept: int = 16_000
    line: int = 2_000
    live: int = 1024 * 1024
    spooled: int = 64 * 1024 * 1024
    read: int = 10 * 1024**3


def _watch(pipe: IO[bytes], take: Callable[[bytes], None], end: Callable[[], None]) -> None:
    """Hand on what a pipe brings until it ends."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        data = os.read(pipe.fileno(), _CHUNK)
        if data:
            take(data)
            return
        loop.remove_reader(pipe.fileno())
        pipe.close()
        end()

    loop.add_reader(pipe.fileno(), on_readable)


_NAMED_EACH = 3
"""Processes of one program that are named one by one."""
_MOST_NAMED = 20


class GuardProcess(Struct, frozen=True):
    """The process above a command, and its pipes: orders to it, reports of it, and the output of the command."""

    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    report: IO[bytes]
    output: IO[bytes]


class CommandProcess:
    """One command, running or ended. Made by `Launcher.start`."""

    def __init__(self, line: str, guard: GuardProcess, *, spool: Path, bounds: Bounds, hidden: Hidden) -> None:
        self.line = line
        self.status: int | None = None
        self.why_stopped = ""
        self.advice = ""  # what helps against the bound that it exceeded
        self._guard = guard
        self._bounds = bounds
        self._decoder = Decoder()
        self._hidden = hidden
        self._lines = ShortLines(bounds.line)
        self._kept = HeadTail(bounds.kept)
        self._pipes: list[list[int]] = []
        self._memory_kills = _kills_for_memory()
        self._spared_memory = False
        """Whether the kernel is known to have ended no process for want of memory while this one ran."""
        self._left: list[int] = []
        self.ended_with_it = ""  # names of processes that it left, and that ended with its throw-away copy
        self._spool = Spool(spool, bounds.spooled)
        self._bytes = 0
        self._live: Paced | None = None
        self._settled: Callable[[str], str] = flowing
        self._started = time.monotonic()
        self._gone: list[Callable[[], None]] = []
        self.listeners: list[_Output] = []  # an empty text says that `flush` may bring more
        self._settle: Settle | None = None
        self.setup = Setup()
        self._later: asyncio.TimerHandle | None = None
        self._looking: asyncio.Future[tuple[Remark, ...]] | None = None
        self._said: list[Remark] = []
        self._ended = asyncio.Event()
        self._silent = asyncio.Event()
        self._alone = asyncio.Event()
        _watch(guard.output, self._on_output, self._on_silence)
        _watch(guard.report, self._on_report, self._on_alone)

    def _on_output(self, data: bytes) -> None:
        self._bytes += len(data)
        self._keep(self._hidden.feed(self._decoder.feed(data)))
        if self._bytes > self._bounds.read and not self.why_stopped:
            self.why_stopped = f"it printed more than {self._bounds.read:,} bytes"
            self.advice = advice_on("output")
            self._order(_GRACE_ON_CANCEL)

    def _keep(self, text: str) -> None:
        for listener in self.listeners:
            listener(text)
        if not text:
            return
        self._spool.add(erased(text).encode(errors="replace"))
        self._kept.add(self._lines.feed(text))
        if self._kept.overflowed or self._lines.cut:
            self._spool.open()
        if self._live is not None:
            self._live.add(self._settled(text))

    def _on_silence(self) -> None:
        self._keep(self._hidden.feed(self._decoder.feed(b"", final=True)) + self._hidden.finish())
        self._spool.close()
        self._silent.set()

    def _on_report(self, data: bytes) -> None:
        for line in data.splitlines():
            if line.startswith(b"exit "):
                _, status, *pipes = line.split(b" ", 2)
                self.status = int(status)
                self._pipes = [[*map(int, one.split())] for one in b"".join(pipes).split(b";") if one.strip()]
                if signal.SIGKILL in (-self.status, self.status - 128) and self._memory_kills is not None:
                    self._spared_memory = _kills_for_memory() == self._memory_kills
                self._ended.set()
            elif line.startswith(b"left "):
                self._left = [int(pid) for pid in line.split()[1:]]
            elif line.startswith(b"ended "):
                self.ended_with_it = line.removeprefix(b"ended ").decode(errors="replace")
            elif line.startswith(b"bound "):
                _, name, number = line.decode().split()
                self.advice = self.advice or advice_on(name)
                self.why_stopped = self.why_stopped or describe_bound(name, int(number))

    def _on_alone(self) -> None:
        self._guard.process.wait()
        remove_group(self.pid)
        self._guard.orders.close()
        self._ended.set()
        self._alone.set()
        for callback in self._gone:
            callback()

    @property
    def pid(self) -> int:
        """The process id of the guard, above all that the command started."""
        return self._guard.process.pid

    @property
    def running(self) -> bool:
        """Whether the command itself still runs."""
        return not self._ended.is_set()

    @property
    def alive(self) -> bool:
        """Whether the command or anything that it left behind still runs."""
        return not self._alone.is_set()

    @property
    def processes(self) -> tuple[int, ...]:
        """List what runs of it; what passed to the first process of the session's only as it was when it ended."""
        return (*descendants(self.pid), *self._left)

    @property
    def left_behind(self) -> tuple[str, ...]:
        """Name what outlived the command, with ids as the session sees them; many of one program by their number."""
        if self.running or not self.alive:
            return ()
        programs: dict[str, list[int]] = {}
        for pid in self.processes:
            if (name := process_name(pid)) and not is_ending(pid):
                programs.setdefault(name, []).append(pid)
        named = [one for name, pids in programs.items() for one in _named(name, pids)]
        more = len(named) - _MOST_NAMED
        return (*named[:_MOST_NAMED], *([f"{more:,} more programs"] if more > 0 else []))

    @property
    def unread(self) -> bool:
        """Whether there is output that was not taken yet."""
        return not self._kept.empty or not self._lines.empty

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def keep_output(self) -> str | None:
        """Keep all output in a file from here on, also while it is short; gives the path."""
        self._spool.open_for_others()
        return None if self._spool.path is None else str(self._spool.path)

    def when_gone(self, callback: Callable[[], None]) -> None:
        """Call back once neither the command nor anything that it left behind runs; at once where that is so."""
        if self.alive:
            self._gone.append(callback)
        else:
            callback()

    def flush(self) -> None:
        """Hand on what is held back because it may be the beginning of a secret, but for a word that may go on."""
        if text := self._hidden.flush():
            self._keep(text)

    def settle_with(self, setup: Setup) -> None:
        """Look from time to time, while the command runs, at what it did."""
        self._settle, self.setup = setup.settle, setup
        self._look_later()

    def _look_later(self) -> None:
        self._later = asyncio.get_running_loop().call_later(_SETTLE_EVERY, self._look)

    def _look(self) -> None:
        if self._settle is None or not self.alive:
            return
        loop = asyncio.get_running_loop()
        self._looking = loop.run_in_executor(None, functools.partial(self._settle, "", ended=False))
        self._looking.add_done_callback(self._looked)

    def _looked(self, looking: "asyncio.Future[tuple[Remark, ...]]") -> None:
        if not looking.cancelled() and looking.exception() is None:
            self._said += looking.result()
            self.setup.meanwhile(looking.result())
        if self._settle is not None:
            self._look_later()

    async def settle(self, output: str) -> tuple[Remark, ...]:
        """Look at what the command did, for the last time when all of it has ended; gives remarks about it."""
        if self._looking is not None:
            await asyncio.wait({self._looking})  # what it found is said with this
        settle, ended = self._settle, not self.alive
        if settle is None:
            return ()
        if ended:
            self._settle = None
            if self._later is not None:
                self._later.cancel()
        said = await asyncio.to_thread(settle, output, ended=ended)
        earlier, self._said = self._said, []
        return (*earlier, *said)

    def show(self, output: _Output | None, settled: Callable[[str], str] = flowing) -> None:
        """Send output from here on to `output` too, at a pace that it can follow.

        `settled` says what becomes of its carriage returns and backspaces.
        """
        self._settled = settled
        if self._live is not None:
            self._live.close()
        self._live = None if output is None else Paced(output, self._bounds.live)

    async def ended(self, seconds: float) -> bool:
        """Wait for the command itself, and a moment for its last output; False when it still runs after `seconds`.

        Children may hold the output open for ever, so its end is not waited for.
        """
        try:
            async with asyncio.timeout(seconds):  # `wait_for` loses a cancellation that comes with the end
                await self._ended.wait()
        except TimeoutError:
            return False
        await self.drain()
        return True

    async def drain(self) -> None:
        """Wait a moment for the last output of a command that has ended, and for the end of what it left behind."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN):
                await self._silent.wait()
                await self._alone.wait()

    async def finish(self, seconds: float, *, keep: bool = False) -> None:
        """Wait for the end, and bring it about after `seconds`, or with `keep` let it go on then.

        When this is cancelled everything is ended within a second.
        """
        try:
            if not await self.ended(seconds) and not keep:
                await self.stop(f"it ran longer than {seconds:g} s")
            elif self.why_stopped:  # all that it started is being killed, which takes a moment
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_KILL_TIME):
                        await self._alone.wait()
        except asyncio.CancelledError:
            await asyncio.shield(self.stop("it was cancelled", grace=_GRACE_ON_CANCEL))
            raise

    @property
    def output_file(self) -> str:
        """The path of the file with all output; empty while there is none, since little was printed."""
        return "" if self._spool.path is None else str(self._spool.path)

    def take_output(self, size: int = _NO_BOUND) -> str:
        """Give the output since the last time, its middle left out when it has more bytes (UTF-8) than `size`."""
        self.flush()
        self._kept.add(self._lines.finish())
        if self._kept.exceeds(size) or self._lines.cut:
            self._spool.open()
        self._spool.flush()
        path = self._spool.path
        capped = f" (first {self._bounds.spooled:,} bytes)" if self._spool.size >= self._bounds.spooled else ""
        where = f"; the whole output{capped} is in {path}" if path else ""
        cut, self._lines.cut = self._lines.cut, False
        output = self._kept.take(where, size)
        if not cut or where in output:
            return output
        return f"{output}{'' if output.endswith(_NEWLINE) else _NEWLINE}[long lines are cut{where}]"

    async def stop(self, why: str, *, grace: float = _GRACE_ON_TIMEOUT) -> None:
        """End the command and everything it started: TERM, and KILL after `grace` seconds."""
        self.why_stopped = self.why_stopped or why
        self._order(grace)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace + _KILL_TIME):
                await self._alone.wait()
        await self.drain()

    def _order(self, grace: float) -> None:
        if not self._guard.orders.closed:
            with contextlib.suppress(OSError):
                self._guard.orders.write(b"stop %.1f\n" % grace)

    async def close(self) -> None:
        """End everything within a second and give back the pipes."""
        if self.alive:
            await self.stop("Treadle stopped it" if self.running else "", grace=_GRACE_ON_CANCEL)
        if left := await self.settle(""):
            self.setup.unsaid(left)
        self._settle = None
        for pipe in (self._guard.output, self._guard.report):
            if not pipe.closed:
                asyncio.get_running_loop().remove_reader(pipe.fileno())
                pipe.close()
        self._guard.orders.close()
        self._spool.close()

    def describe(self) -> str:
        """Say in a sentence how the command ended, or that it runs."""
        if self.running:
            return "Still running."
        if self.why_stopped:
            return f"Stopped: {self.why_stopped}."
        if self.status is None:
            return "Ended, with an unknown exit status: its guard process was killed."
        if self.status < 0:
            return f"Killed by {self._signal_name(-self.status)}."
        if self.status > 128 and self._signal_name(self.status - 128):
            return f"Exit status {self.status} (128 + {self._signal_name(self.status - 128)})."
        return f"Exit status {self.status}{describe_pipes(self.line, self._pipes)}."

    def _signal_name(self, number: int) -> str:
        """Name a signal, and say what is behind it; empty when there is none of this number."""
        try:
            name = signal.Signals(number).name
        except ValueError:
            return ""
        if number != signal.SIGKILL:
            return name
        if self._spared_memory:
            return f"{name}, by a program: the kernel ended none for want of memory"
        return f"{name}, perhaps because memory ran out"


def _named(name: str, pids: list[int]) -> list[str]:
    return [f"{len(pids):,} × {name}"] if len(pids) > _NAMED_EACH else [f"{name} ({inner_number(one)})" for one in pids]


def _kills_for_memory() -> int | None:
    """Count the processes that the kernel has ended for want of memory; None where it does not say."""
    try:
        with open("/proc/vmstat", "rb") as file:  # noqa: PTH123 - before each command
            return int(file.read().partition(b"\noom_kill ")[2].split(None, 1)[0])
    except (OSError, IndexError, ValueError):
        return None
