"""What goes around a command: programs that run the guard, programs that run the command below it, and bounds."""

import os
from collections.abc import Sequence

from msgspec import Struct

from treadle.protocol.patterns import regex


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
_SHELL = "/bin/sh"
_NOT_SET_UP = regex(r"bwrap: Can't [^/\n]*(/[^\n]*): [^:\n]+")
SANDBOXES = ("bwrap: ", "sandbox-exec: ")
"""How a sandbox begins what it says when it could not start the command, as where there is no room for a process."""

TIMES_AGAIN = 2
"""How often a sandbox is set up again where a place that it was to cover went away meanwhile: sockets come and go."""

_BLOCK = 512  # bytes; in which a shell called `sh` counts a file's size


NO_TERMINAL = "it waits for keys of a terminal, and there is none: nobody can type into a command"


def describe_bound(name: str, number: int) -> str:
    """Say which bound a command exceeded, after "Stopped: "."""
    match name:
        case "memory":
            return f"it used more than {number / _GIB:.2g} GiB of memory, the most that a command may use"
        case "processes":
            return f"it ran more than {number:,} processes, the most that a command may run"
        case "disk":
            return f"the free disk space fell by more than {number / _GIB:.2g} GiB while it ran"
        case "terminal":
            return NO_TERMINAL
        case _:
            return f"it ran longer than {number:,} s, the longest that a command may run"


def advice_on(name: str) -> str:
    """Say what to do otherwise where a command exceeded this bound; empty for keys of a terminal."""
    match name:
        case "memory":
            return "Have it take less memory, such as by working on a part of the data after the other."
        case "processes":
            return "Have it start fewer processes at a time."
        case "disk":
            return "Have it write less, or delete what it no longer needs."
        case "output":
            return "Have it print less, or print to a file."
        case "seconds":
            return "Split it into parts that take less time each."
        case _:
            return ""


class Caps(Struct, frozen=True):
    """What the kernel bounds for a process, with all that it starts: files that are open, bytes of a file, tasks.

    0 leaves a bound as it is, and so does one above it. `opened` is a file that is open on descriptor 9, empty for
    none; `given` one that standard input is read from, and `printed` one that standard output goes to, which exists.
    """

    open_files: int = 0
    file: int = 0
    tasks: int = 0
    opened: str = ""
    given: str = ""
    printed: str = ""

    def listed(self) -> tuple[tuple[str, str], ...]:
        """Name them as `resource` does, in the order in which they are set; memory is never dumped."""
        limits = {"RLIMIT_NOFILE": self.open_files, "RLIMIT_FSIZE": self.file, "RLIMIT_NPROC": self.tasks}
        said = [(name, str(number)) for name, number in limits.items() if number]
        files = {"9": self.opened, "0": self.given, "1": self.printed}
        return (("RLIMIT_CORE", "0"), *said, *((name, path) for name, path in files.items() if path))

    def shell(self) -> tuple[str, ...]:
        """Write a shell that sets them and becomes the rest of the command line, for what no guard starts.

        The bound on tasks has one letter in dash and another in bash.
        """
        bounds = ["ulimit -c 0"]
        bounds += [f"ulimit -n {self.open_files}"] if self.open_files else []
        bounds += [f"ulimit -u {self.tasks} || ulimit -p {self.tasks}"] if self.tasks else []
        bounds += [f"ulimit -f {self.file // _BLOCK}"] if self.file else []
        quiet = " ".join(f"{{ {bound}; }} 2>/dev/null;" for bound in bounds)
        opened = 'exec 9<"$0"; ' if self.opened else ""
        return _SHELL, "-c", f'{quiet} {opened}exec "$@"', self.opened or _SHELL


class Wrapping(Struct, frozen=True):
    """Beginnings of two command lines: of the guard's, and of the command's own; each ends where the other goes on.

    The guard sets the `caps` before it becomes the command. `joins` are the namespaces of a session that it joins, as
    `namespaces/joining.py` reads them; what runs without a guard joins none.
    """

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    watch: Watch = NO_WATCH
    caps: Caps | None = None
    joins: str = ""

    def around(self, command: Sequence[str]) -> tuple[str, ...]:
        """Put the command line together for what runs without a guard."""
        caps = () if self.caps is None else self.caps.shell()
        return (*self.outer, *caps, *self.inner, *command)

    def lacks_place(self, output: str) -> bool:
        """Whether bubblewrap ended before its command began, because a place that it was to cover has gone.

        Looks it up. It did where its message is all the `output`, and the place has really gone: a program may print
        the same.
        """
        said = _NOT_SET_UP.fullmatch(output.strip())
        if said is None or os.path.lexists(said[1]):
            return False
        return any(word == said[1] or word.startswith(f"{said[1]}/") for word in self.inner)


UNWRAPPED = Wrapping()
"""Nothing around."""
