"""Treadle started without loading it again, which is most of what a short run costs.

A process of each worker has it loaded and forks for each run (`keeper.py`); a run is a process of its own, with its own
arguments, variables, folder and streams. What is about the start itself starts `python -m treadle`.
"""

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
_commands = [TREADLE]
_keepers: list[int] = []


def keepers() -> tuple[int, ...]:
    """The processes that have it loaded: one, or none."""
    return tuple(_keepers)


def treadle() -> tuple[str, ...]:
    """The command that runs it for a test that is not about its start."""
    return _commands[-1]


@pytest.fixture(scope="session", autouse=True)
def ready() -> None:
    """Have it loaded, for the tests of a folder whose `conftest.py` imports this."""
    if _keepers or not sys.platform.startswith("linux"):
        return
    name = f"treadle-ready-{os.getpid()}"
    ours, theirs = socket.socketpair()
    ours.detach()  # it is open as long as this process is
    command = (sys.executable, str(_HERE / "keeper.py"), name, str(theirs.fileno()))
    with theirs:
        said = subprocess.run(
            command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        ).stdout
    _keepers.append(int(said))
    _commands.append((sys.executable, "-I", "-S", str(_HERE / "front.py"), name))


@pytest.fixture
def started_anew() -> Iterator[None]:
    """Start it as a shell does: for a test that kills it, which ends what it started and not what runs for it."""
    _commands.append(TREADLE)
    yield
    _commands.pop()
