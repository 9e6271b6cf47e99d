"""After each test: no process is left that it started, however it tried to get away."""

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ready import keepers
from treadle.workspace.commands.meter import descendants

_SUBREAPER = 36
_PATIENCE = 30.0
"""Seconds that a process may take to go after the end of a test; nearly always it is gone by then."""


def command_line(pid: int) -> str:
    """Give the command line of a process; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Become the one that adopts orphans, so that also what daemonised is found; fails when something is left."""
    if not sys.platform.startswith("linux"):
        yield
        return
    prctl = ctypes.CDLL(None).prctl
    before = set(_started())
    prctl(_SUBREAPER, 1)
    try:
        yield
        left = _left(before)
    finally:
        prctl(_SUBREAPER, 0)
    assert not left, f"these processes were left behind: {left}"


def _started() -> list[int]:
    """List what this process started, and what those runs left that another process forked for it."""
    return [pid for root in (os.getpid(), *keepers()) for pid in descendants(root)]


def _left(before: set[int]) -> dict[int, str]:
    end = time.monotonic() + _PATIENCE
    while left := {pid: command_line(pid) for pid in _started() if pid not in before}:
        if time.monotonic() > end:
            return left
        _reap()
        time.sleep(0.02)
    return {}


def _reap() -> None:
    """Collect what was adopted and has ended: the first process of a namespace ends only after all that were in it."""
    with suppress(OSError):
        for pid in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


@pytest.fixture(autouse=True)
def no_orphans() -> Iterator[None]:
    """Check each test of a folder whose `conftest.py` imports this."""
    with nothing_left_behind():
        yield
