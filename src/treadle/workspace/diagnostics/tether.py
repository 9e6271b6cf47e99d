"""Programs that end when Treadle does, however that ends."""

import os
import sys
from collections.abc import Sequence
from signal import SIGKILL, Signals

from treadle.workspace.diagnostics import die_with_parent


def tethered(command: Sequence[str], number: Signals = SIGKILL) -> tuple[str, ...]:
    """Give the command line of a program that is sent this signal where this process ends first, on Linux."""
    return (sys.executable, "-I", "-S", die_with_parent.__file__, f"{os.getpid()}:{int(number)}", *command)
