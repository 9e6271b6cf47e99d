"""Running one command in the namespaces of its session, from its guard; see there why so little is imported.

The process that joins stays outside of the namespace of processes: only what it starts is in it, and what is in it
sees bubblewrap, with a short command line. A command has a namespace of mounts of its own, which bubblewrap makes and
no process of the command can leave. It tells the command's processes from others, since those that lose their parent
pass to the session's first process.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator

from treadle.workspace.commands.meter import descendants, group_of, inner_number, process_name

_USERS, _PROCESSES, _NETWORK, _MEMORY, _MOUNTS = 0x10000000, 0x20000000, 0x40000000, 0x08000000, 0x00020000
_PRIVATE = 0x44000  # of mount(2), with all that is below
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_DEATH_SIGNAL = 1  # of prctl(2)
_REFUSED = 126
_SANDBOX = "/bwrap"
_LINE, _BEFORE, _READ_FIRST = "TREADLE_LINE", "TREADLE_BEFORE", "BASH_ENV"
_RUN_LINE = (
    f'set -- "${_LINE}" "${_BEFORE}"; unset {_LINE} {_BEFORE}; '
    f'if [ "$2" ]; then export {_READ_FIRST}="$2"; fi; exec "$0" -c "$1"'
)
"""What a shell runs that finds its line in a variable; what bash reads first is for the shell of the line alone."""

_MADE, _ENDED = b'"mnt-namespace": ', b"\nended "
_MOST = 4096
_NAMED_AT_MOST = 10
_WHILE = 2.0  # seconds that ending a command's processes may take
_TICK = 0.01
_QUIET = 3

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


class Joined:
    """One command in the namespaces of a holder; bubblewrap writes to `told` which namespace of mounts it made.

    `order` is the number of the holder, when it started in ticks since boot, and 1 where the command has the network of
    the system instead of the session's.
    """

    outside = 0
    """What a process in the namespace calls its parent that is outside of it, as long as that lives."""

    def __init__(self, order: bytes) -> None:
        self.holder, self.started, self.system_network = map(int, order.split())
        self.told = os.memfd_create("told")
        self.mounts = ""
        self.had_orphans = False

    def enter(self) -> None:
        """Join with this process; its children are in the namespace of processes. Raises `OSError`."""
        descriptor = os.pidfd_open(self.holder)
        with open(f"/proc/{self.holder}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs a third of a guard's start
            started = int(file.read().rpartition(b")")[2].split()[19])
        if started != self.started:
            raise ProcessLookupError("the session's namespaces are gone")
        wanted = _USERS | _PROCESSES | _MEMORY | (0 if self.system_network else _NETWORK)
        _checked(_libc.setns(descriptor, wanted), "setns")
        os.close(descriptor)

    def run(self, argv: list[str]) -> None:
        """Run the sandbox below this process, and end as it does. Never returns."""
        pid = os.fork()
        if pid == 0:
            try:
                _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() != self.outside:
                    os._exit(_REFUSED)
                self.show_processes()
                program = self.short(argv)
                os.execvp(program[0], program)  # noqa: S606 - named by Treadle
            except OSError as error:
                os.write(2, f"The sandbox could not be set up: {error}\n".encode())
            finally:
                os._exit(_REFUSED)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0:
            if status != -signal.SIGKILL:
                signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
        os._exit(status)

    def show_processes(self) -> None:
        """Show this process, and what it becomes, the processes of the session in the place of the system's."""
        _checked(_libc.unshare(_MOUNTS), "unshare")
        _mount("none", "/", "", _PRIVATE)
        _mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)

    def short(self, argv: list[str]) -> list[str]:
        """Hand bubblewrap its options in a file, the line in a variable, and have it say which mounts it made.

        What lists processes inside would show them otherwise, page after page, and `pkill -f` would end the sandbox in
        whose own line it is.
        """
        begin = next(number for number, word in enumerate(argv, 1) if word.endswith(_SANDBOX))
        end = argv.index("--", begin)
        options = os.memfd_create("options", 0)
        said = ("--info-fd", str(self.told), *argv[begin:end])
        os.write(options, b"".join(os.fsencode(word) + b"\0" for word in said))
        os.lseek(options, 0, os.SEEK_SET)
        os.set_inheritable(self.told, True)
        *words, shell, option, os.environ[_LINE] = argv[end:]
        os.environ[_BEFORE] = os.environ.pop(_READ_FIRST, "")
        return [*argv[:begin], "--args", str(options), *words, shell, option, _RUN_LINE, shell]

    def orphans(self) -> list[int]:
        """List the processes of the command that passed to the holder."""
        return [pid for pid, _ in self._met()]

    def _met(self) -> Iterator[tuple[int, int]]:
        """Meet each process of the command that passed to the holder, with its group.

        Those of a swarm live for a millisecond or two, less than a look through all processes takes: the holder's own
        children, of which each chain of them has one, are looked at first, and each at once.
        """
        self.mounts = self.mounts or self._made()
        met: set[int] = set()
        for look in (_children, descendants) if self.mounts else ():
            for pid in look(self.holder):
                with_it = group_of(pid)
                if pid not in met and _mounts_of(pid) == self.mounts:
                    met.add(pid)
                    self.had_orphans = True
                    yield pid, with_it

    def _made(self) -> str:
        """Read which namespace of mounts bubblewrap made; empty before."""
        number = os.pread(self.told, _MOST, 0).partition(_MADE)[2].split(b"\n")[0].split(b",")[0].strip(b" }")
        return f"mnt:[{number.decode()}]" if number.isdigit() else ""

    def ended(self) -> bytes:
        """Name the processes that were ended with a throw-away copy."""
        return os.pread(self.told, _MOST, 0).partition(_ENDED)[2]

    def end_orphans(self, *, tell: bool = False) -> None:
        """End what the command left behind, and perhaps tell the guard its names.

        What goes on after two seconds, however quickly it forks, ends with all that is in the namespaces.
        """
        left, until = self.orphans(), time.monotonic() + _WHILE
        if tell and left:
            names = ", ".join(f"{process_name(pid)} ({inner_number(pid)})" for pid in left[:_NAMED_AT_MOST])
            os.write(self.told, _ENDED + names.encode())
        # Looks in a row: one alone can miss what forks and ends at that moment.
        quiet = 0 if self.had_orphans else _QUIET
        while quiet < _QUIET:
            quiet = 0 if self.kill_orphans() else quiet + 1
            if time.monotonic() > until:
                _send(os.kill, self.holder)
                return
            time.sleep(_TICK)

    def kill_orphans(self) -> bool:
        """Kill what passed to the holder, by groups: those that fork too quickly to be met go with them."""
        killed = False
        for pid, with_it in self._met():
            killed = True
            if with_it > 1:  # no command shares a session, and so no group, with another one
                _send(os.killpg, with_it)
            _send(os.kill, pid)
        return killed


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    _checked(
        _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None), f"mount {target}"
    )


def _children(pid: int) -> list[int]:
    """List the children of a process of one thread in one look; empty where the kernel does not tell them."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:  # noqa: PTH123 - as above
            return [int(one) for one in file.read().split()]
    except OSError:
        return []


def _mounts_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115 - as above
    except OSError:
        return ""


def _send(send: Callable[[int, int], None], number: int) -> None:
    try:
        send(number, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
