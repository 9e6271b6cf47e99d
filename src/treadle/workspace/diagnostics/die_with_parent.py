"""Turns into a program that dies with Treadle: `python -I -S die_with_parent.py PARENT:SIGNAL PROGRAM ARGUMENT...`.

A language server talks over its own standard input and output, so that nothing can stand above it and watch. Only the
standard library, and little of it: a server waits for this to start. Exit status 127: the program cannot be started.
"""

import ctypes
import os
import sys

_DEATH_SIGNAL = 1  # a number of prctl(2)
_CANNOT = 127


def main() -> None:
    """Ask the kernel to be killed with the parent where it can do that, and become the program."""
    tied, *argv = sys.argv[1:]
    parent, _, number = tied.partition(":")
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(number))
        if os.getppid() != int(parent):
            os._exit(1)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the command of the user's settings
    except OSError:
        os._exit(_CANNOT)


if __name__ == "__main__":
    main()
