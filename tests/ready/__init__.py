"""Treadle started without loading it again, which is most of what a short run costs.

A process of each worker has it loaded and forks for each run (`keeper.py`); a run is a process of its own, with its own
arguments, variables, folder and streams. What is about the start itself starts `python -m treadle`, and with `ANEW` in
the environment all tests do.
"""

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TREADLE = (sys.executable, "-m", "treadle")
"""The command that starts it as a shell does."""

_HERE = Path(__file__).parent
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_commands: list[tuple[str, ...]] = [TREADLE]
_keepers: list[int] = []


def keepers() -> tuple[int, ...]:
    """The processes that have it loaded: one, or none."""
    return tuple(_keepers)


def treadle() -> tuple[str, ...]:
    """The command that runs it for a test that is not about its start."""
    if not _keepers and sys.platform.startswith("linux") and "ANEW" not in os.environ:
        name = f"treadle-ready-{os.getpid()}"
        _keepers.append(_keeper(name))
        _commands.insert(1, (sys.executable, "-I", "-S", str(_HERE / "front.py"), name))
    return _commands[-1]


def terminal_ready() -> tuple[str, ...]:
    """The same for a run on a terminal, which becomes its own; empty where each is started as a shell does."""
    command = treadle()
    return (*command[:-1], f"+{command[-1]}") if command != TREADLE else ()


def _keeper(name: str) -> int:
    """Have it loaded by a process that is no child of this one: tests look for all that theirs started."""
    prctl, adopts = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(_GET_SUBREAPER, ctypes.byref(adopts))
    ours, theirs = socket.socketpair()
    ours.detach()  # it is open as long as this process is
    command = (sys.executable, str(_HERE / "keeper.py"), name, str(theirs.fileno()))
    prctl(_SET_SUBREAPER, 0)
    try:
        with theirs:
            said = subprocess.run(
                command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
            ).stdout
    finally:
        prctl(_SET_SUBREAPER, adopts.value)
    return int(said)


@pytest.fixture
def started_anew() -> Iterator[None]:
    """Start it as a shell does: for a test that kills it, which ends what it started and not what runs for it."""
    treadle()
    _commands.append(TREADLE)
    yield
    _commands.pop()
