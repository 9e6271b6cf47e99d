"""What goes around a command: programs that run the guard, programs that run the command below it, and bounds."""

from collections.abc import Sequence

from msgspec import Struct


class Watch(Struct, frozen=True):
    """What the guard ends a command for, with all that it started; 0 for no bound.

    `memory` and `disk` are bytes: what its processes take together, and by how much the free space of the file systems
    of `folders` may fall meanwhile.
    """

    memory: int = 0
    processes: int = 0
    disk: int = 0
    seconds: int = 0
    folders: tuple[str, ...] = ()


NO_WATCH = Watch()
_GIB = 1024**3


def describe_bound(name: str, number: int) -> str:
    """Say which bound a command exceeded, after "Stopped: "."""
    match name:
        case "memory":
            return f"it used more than {number / _GIB:.2g} GiB of memory, the most that a command may use"
        case "processes":
            return f"it ran more than {number:,} processes, the most that a command may run"
        case "disk":
            return f"the free disk space fell by more than {number / _GIB:.2g} GiB while it ran"
        case _:
            return f"it ran longer than {number:,} s, the longest that a command may run"


class Wrapping(Struct, frozen=True):
    """Beginnings of two command lines: of the guard's, and of the command's own; each ends where the other goes on."""

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    watch: Watch = NO_WATCH

    def around(self, guard: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
        """Put the command line together."""
        return (*self.outer, *guard, *self.inner, *command)


UNWRAPPED = Wrapping()
"""Nothing around."""
