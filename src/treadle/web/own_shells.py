"""The person's own shells, one for a session's folder: no model sees them, and they are off until switched on."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.patterns import regex
from treadle.web.signals import Signal

_KEPT = 200_000
"""Bytes of what a shell printed that a page which comes later is shown."""

_ASKS = regex(rb"\x1b\[\??6n|\x1b\[[>=]?0?c")
"""What programs ask a terminal: where the cursor is, and what it is."""

_MOST = 20
_PIECE = 65_536
_PATIENCE = 1.0
_LOOK = 0.5
"""Seconds between two looks whether a shell that somebody sees has ended."""

_IN_A_TERMINAL = (
    "import fcntl, os, signal, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "for one in signal.valid_signals():\n"
    "    if signal.getsignal(one) is signal.SIG_IGN: signal.signal(one, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], [sys.argv[2]])"
)
"""What begins a shell: the page ignores that a terminal hangs up, and Python broken pipes, which no shell should."""


class PageShell:
    """A shell on a terminal: what it printed last, and how much that was in all."""

    def __init__(self, folder: str, columns: int, rows: int) -> None:
        self.printed = b""
        self.total = 0
        self.ended = False
        self._changed = Signal()
        self._typed = b""
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self.resize(columns, rows)
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", _IN_A_TERMINAL, shell, f"-{Path(shell).name}"),
                cwd=folder,
                env={**os.environ, "TERM": "xterm-256color"},
                stdin=slave,
                stdout=slave,
                stderr=slave,
            )
        except OSError as error:
            os.close(self._master)
            raise ConfigError("shell", "The shell cannot be started.", why=str(error), fix="Set SHELL.") from error
        finally:
            os.close(slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self._master, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # nobody has the terminal any more
            piece = b""
        if piece:
            self.total += len(piece)
            self.printed = (self.printed + piece)[-_KEPT:]
        else:
            self._end()
        self._changed.set()

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        self.ended = True

    def has_ended(self) -> bool:
        """Whether the shell has ended: what it began in the background may have the terminal still."""
        if not self.ended and self._process.poll() is not None:
            self._read()  # its last words
            self._end()
        return self.ended

    def type(self, text: str) -> None:
        """Type into it; what it does not take yet waits."""
        self._typed += text.encode(errors="replace")
        self._write()

    def _write(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_writer(self._master)
        if self.ended:
            return
        with suppress(BlockingIOError, OSError):
            self._typed = self._typed[os.write(self._master, self._typed) :]
        if self._typed:
            loop.add_writer(self._master, self._write)

    def resize(self, columns: int, rows: int) -> None:
        """Say how large the terminal is."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def output(self) -> AsyncIterator[bytes]:
        """Give what it printed last, and what it prints, until it ends."""
        event, told = asyncio.Event(), self.total
        with self._changed.notifying(event):
            yield _ASKS.sub(b"", self.printed)  # these were answered when they came
            over = False
            while not over:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await event.wait()
                event.clear()
                over = self.has_ended()
                new, told = self.total - told, self.total
                if new:
                    yield self.printed[max(0, len(self.printed) - new) :]

    async def close(self) -> None:
        """End it and all that it runs, as a terminal that is closed does."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._master)
        loop.remove_writer(self._master)
        if self._process.poll() is None:  # else its number may be another one's
            self._hang_up()
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _PATIENCE)
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        if not self.ended:
            self.ended = True
            self._changed.set()
        os.close(self._master)

    def _hang_up(self) -> None:
        """Tell the shell, and the job that has the terminal, that it is gone: the shell tells its other jobs."""
        job = 0
        with suppress(OSError):
            job = os.tcgetpgrp(self._master)  # 0 where no job has it yet: with that, it would be those of Treadle
        for group in {self._process.pid, job} - {0}:
            for number in (signal.SIGHUP, signal.SIGCONT):  # what is stopped hears it, too
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)


class OwnShells:
    """The shells of sessions by their ids; none until they are switched on, for as long as Treadle serves the page."""

    def __init__(self) -> None:
        self.on = False
        self._open: dict[str, PageShell] = {}

    @property
    def sessions(self) -> Sequence[str]:
        """The sessions whose shells are open."""
        return tuple(self._open)

    def find(self, session_id: str) -> PageShell:
        """Give the shell of a session; raises `SessionError` where it has none."""
        found = self._open.get(session_id)
        if found is None or not self.on:
            raise SessionError("shell-closed", "No shell is open in this session.", fix="Open one under Terminal.")
        return found

    async def open(self, session_id: str, folder: str, columns: int, rows: int) -> PageShell:
        """Give the shell of a session, a new one where it has none that runs. Raises `TreadleError`."""
        if not self.on:
            raise ConfigError("shell-off", "Shells of your own are switched off.", fix="Switch them on under Terminal.")
        over = [self._open.pop(one) for one in list(self._open) if self._open[one].has_ended()]
        await asyncio.gather(*(one.close() for one in over))
        found = self._open.get(session_id)
        if found is None:
            if len(self._open) >= _MOST:
                raise ConfigError("shell", f"{_MOST} shells are open.", fix="Close some: type exit in them.")
            found = self._open[session_id] = PageShell(folder, columns, rows)
        return found

    async def close_one(self, session_id: str) -> None:
        """End the shell of a session, if it has one."""
        found = self._open.pop(session_id, None)
        if found is not None:
            await found.close()

    async def close(self) -> None:
        """End all of them, and switch them off."""
        self.on = False
        opened, self._open = self._open, {}
        await asyncio.gather(*(one.close() for one in opened.values()))
