"""Trying out a sandbox: a command that runs for a moment, and never longer than the program."""

import atexit
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from signal import SIGKILL


def run_trial(command: Sequence[str], variables: Mapping[str, str], seconds: float) -> tuple[int, str]:
    """Run a command; gives its status and what it said on standard error.

    Its group is ended with the program, and after `seconds`: bubblewrap waits forever for the process that began it if
    that ends before the new namespaces are made. Raises `OSError` or `subprocess.TimeoutExpired`.
    """
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=silent, stdout=silent, stderr=subprocess.PIPE, env=variables, process_group=0
    ) as trial:
        end = partial(_end, trial.pid)
        atexit.register(end)
        try:
            _, said = trial.communicate(timeout=seconds)
        except BaseException:
            end()
            raise
        finally:
            atexit.unregister(end)
    return trial.returncode, said.decode(errors="replace").strip()


def _end(group: int) -> None:
    with suppress(OSError):
        os.killpg(group, SIGKILL)
