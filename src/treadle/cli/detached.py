"""A process that outlives the one that started it, and its terminal; what it says until it has begun comes back."""

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper

_FEWEST = 4_096
"""Descriptors that are closed at least: the limit may have been lowered after some were opened."""

SayBegun = Callable[[str], None]
"""To be called once with the line that says that the work has begun."""


def run_detached(work: Callable[[SayBegun], int]) -> tuple[int, str]:
    """Do `work` in a process of its own, in a session of its own, and wait until it has begun or ended.

    Gives the exit code and the line that it began with, empty where it ended before. That process comes back from here
    when its work is done. What it writes to standard error until it has begun is written there; its standard output
    goes nowhere. Of what this process has open it keeps nothing.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it was ignored, nobody would learn how the process ended
    says, hears = os.pipe(), os.pipe()
    process = os.fork()
    if not process:
        return work(_leave(says[1], hears[1])), ""
    try:
        for writing in (says[1], hears[1]):
            os.close(writing)
        line = _first_line(says[0], hears[0])
    except KeyboardInterrupt:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
        raise
    if line:
        return 0, line
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    _pass_on(hears[0])
    return (code if code >= 0 else 128 - code), ""


class _Unheard(TextIOWrapper):
    """Standard error, also where nobody reads it any more."""

    def write(self, text: str, /) -> int:
        """Write, or forget it."""
        with suppress(OSError):
            return super().write(text)
        return len(text)


def _leave(says: int, hears: int) -> SayBegun:
    """Leave the terminal, and all that was open; gives what says that the work has begun."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    os.dup2(hears, 2)
    os.closerange(3, says)
    os.closerange(says + 1, max(os.sysconf("SC_OPEN_MAX"), _FEWEST))
    error = os.fdopen(2, "wb", buffering=0, closefd=False)
    sys.stderr = _Unheard(error, encoding="utf-8", errors="backslashreplace", write_through=True)

    def begun(line: str) -> None:
        with suppress(OSError):
            os.write(says, f"{line}\n".encode())
        os.close(says)
        _write_to_log()

    return begun


def _write_to_log() -> None:
    """Let standard error go to the program's log from now on, or nowhere."""
    from treadle.door.settings import program_log

    try:
        log = os.open(program_log(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 2)
    os.close(log)


def _first_line(says: int, hears: int) -> str:
    """Wait for the line, and pass on meanwhile what comes to standard error; empty where the process ends before."""
    said = b""
    listening = [says, hears]
    while True:
        ready, _, _ = select.select(listening, [], [])
        if hears in ready and not _write(os.read(hears, 65_536)):
            listening.remove(hears)
        if says in ready:
            data = os.read(says, 4_096)
            said += data
            if not data or said.endswith(b"\n"):
                break
    _pass_on(hears)
    return said.decode().strip()


def _pass_on(hears: int) -> None:
    """Pass on what there is by now: something that was started may keep the other end."""
    os.set_blocking(hears, False)
    with suppress(BlockingIOError):
        while _write(os.read(hears, 65_536)):
            pass


def _write(data: bytes) -> bool:
    with suppress(OSError):
        sys.stderr.buffer.write(data)
        sys.stderr.flush()
    return bool(data)
