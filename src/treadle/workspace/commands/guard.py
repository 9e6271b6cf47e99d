"""The parent of one command: a tiny program that outlives nothing and lets nothing outlive Treadle.

Run as `python -I -S guard.py SHELL`. Its standard input is at once its order and its lifeline: first the lengths of
the seven parts of the order, in a line of their own, then the shell line, its variables (`NAME=VALUE`), bounds
(`NAME=NUMBER`, and `folder=PATH` of which the free space is watched), the words that go before the shell, a sandbox,
and what the kernel bounds (`RLIMIT=NUMBER`, and `DESCRIPTOR=PATH` for a file to open, on 1 to write to); each of these
is ended by NUL; the namespaces that it joins, if any (see `namespaces/joining.py`), and the folder to run in. Then
comes perhaps `stop SECONDS`, which ends all that it started (TERM, then KILL after that time), as do the signal USR1,
of another Treadle, and end of file, that is the death of this one. The command runs in a session of its own, and the
guard becomes the reaper of everything it leaves behind, also of what daemonises. What exceeds a bound is ended with
all the rest, and the guard reports `bound NAME NUMBER`. On its standard output the guard reports `exit STATUS` when
the command itself ends (negative: the signal's number), with the status of each part of its pipes, each pipe but the
last ended by a semicolon, if bash tells them, then `left NUMBER...` with the processes that go on or
`ended NAME (NUMBER), ...` with those that ended with its throw-away copy, and closes it when none is left. Standard
error is the command's output.

Only the standard library, and sparingly: a command may wait for this to start, and `contextlib` alone would add a
quarter to that.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable

if __name__ == "__main__":
    sys.path.append(__file__.removesuffix("/treadle/workspace/commands/guard.py"))

from treadle.workspace.commands.meter import Lid, Meter, descendants, process_name
from treadle.workspace.commands.pipe_statuses import ask_for_pipes, pipe_statuses

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

    from treadle.workspace.namespaces.joining_session import Joined

Prctl = Callable[[int, int], int]

_SUBREAPER, _DEATH_SIGNAL = 36, 1  # numbers of prctl(2)
_SANDBOX = "bwrap"
_FRAME = f"{__file__.removesuffix('commands/guard.py')}copies/overlay.py"
_GRACE_AFTER_TREADLE = 0.5
_GRACE_WHEN_ASKED = 3.0
_GIVE_UP = 2.0
_TO_FINISH = 0.3
"""Seconds that git has before it is asked to end, so that a commit is whole: its index follows on its references."""
_TICK = 10  # milliseconds
_IDLE = 1000  # milliseconds between looks at a group, only where nothing adopts orphans


class _Guard:
    """One command and what became of it."""

    def __init__(
        self,
        argv: list[str],
        directory: str,
        prctl: Prctl | None,
        *,
        meter: Meter,
        pipes: int,
        caps: list[str],
        joined: "Joined | None",
    ) -> None:
        self.prctl = prctl
        self.caps = caps
        self.joined = joined
        self.meter = meter
        meter.processes = self.processes
        self.adopts = self.prctl is not None and self.prctl(_SUBREAPER, 1) == 0
        self.shell_ended = False
        self.pipes = pipes
        self.shell = self.start(argv, directory)

    def start(self, argv: list[str], directory: str) -> int:
        """Fork the command; only its descendants hold the output from here on."""
        guard = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.write(2, f"The command could not be started: {error.strerror}\n".encode())
            _report(b"exit 126\n")
            os._exit(1)
        if pid == 0:
            self.become(argv, directory, guard)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 2)
        os.close(null)
        return pid

    def become(self, argv: list[str], directory: str, guard: int) -> None:
        """Turn the forked child into the command. Never returns."""
        try:
            os.setsid()
            if self.prctl is not None:
                self.prctl(_DEATH_SIGNAL, signal.SIGKILL)
                if os.getppid() != guard:
                    os._exit(1)
            _be_first_to_go()
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(2, 1)
            signal.set_wakeup_fd(-1)
            for number in (
                signal.SIGPIPE,
                signal.SIGINT,
                signal.SIGTERM,
                signal.SIGHUP,
                signal.SIGCHLD,
                signal.SIGUSR1,
            ):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(directory)
            _cap(self.caps)
            if self.joined is not None:
                self.joined.enter()
            _run_here(argv, self.joined)
            os.execvp(argv[0], argv)  # noqa: S606 - the shell itself, named by Treadle
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def processes(self) -> list[int]:
        """List what the command started and still runs."""
        own = descendants(os.getpid())
        return own if self.joined is None else [*own, *self.joined.orphans()]

    def reap(self) -> bool:
        """Collect what has ended and report the command's own end; False when nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self.left()
            if pid == 0:
                return True
            if pid == self.shell:
                self.shell_ended = True
                _report(b"exit %d %s\n" % (os.waitstatus_to_exitcode(status), pipe_statuses(self.pipes)))
                self.tell_of_the_rest()

    def tell_of_the_rest(self) -> None:
        """Report what passed to the holder of the namespaces, and goes on or was ended."""
        if self.joined is not None:
            if orphans := self.joined.orphans():
                _report(b"left %s\n" % b" ".join(b"%d" % one for one in orphans))
            if ended := self.joined.ended():
                _report(b"ended %s\n" % ended)

    def left(self) -> bool:
        """Whether something goes on that is no child of this process."""
        if self.joined is not None:
            return bool(self.joined.orphans())
        return not self.adopts and self.group_lives()

    def group_lives(self) -> bool:
        """Whether the command's process group has members."""
        try:
            os.killpg(self.shell, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def ask(self, asked: set[int], waited: float) -> None:
        """Ask every descendant to end, and note it in `asked`; git only after it has had time to finish.

        A sandbox is not asked: it would kill at once what is in it. It ends with what is in it.
        """
        for pid in self.processes() or [-self.shell]:
            if pid in asked or ((name := process_name(pid)).startswith("git") and waited < _TO_FINISH):
                continue
            asked.add(pid)
            if name != _SANDBOX:
                _signal(pid, signal.SIGTERM)

    def kill_all(self) -> None:
        """Kill everything, a sandbox first: with it all that is in it ends at once, however quickly it forks."""
        for pid in [pid for pid in descendants(os.getpid()) if process_name(pid) == _SANDBOX]:
            _signal(pid, signal.SIGKILL)
        self.stop(0)

    def stop(self, grace: float) -> None:
        """End everything: ask with TERM, and after `grace` seconds, or less when told so again, do it with KILL."""
        asked: set[int] = set()
        start = time.monotonic()
        poll = select.poll()
        poll.register(0, select.POLLIN)
        while self.reap() and (waited := time.monotonic() - start) < grace + _GIVE_UP:
            if waited < grace:
                self.ask(asked, waited)
            else:
                if self.joined is not None:
                    self.joined.kill_orphans()
                for pid in self.processes() or [-self.shell]:
                    _signal(pid, signal.SIGKILL)
            if poll.poll(_TICK):
                order = os.read(0, 64).split()
                grace = min(grace, waited + _grace_of(order))
                if not order:
                    poll.unregister(0)
        if self.joined is not None:
            self.joined.end_orphans()

    def watch(self, wakeup: int) -> None:
        """Wait until nothing is left, or until somebody wants it so."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        while self.reap():
            watched = self.adopts and self.joined is None
            pause = None if watched or not self.shell_ended else _IDLE
            ready = dict(poll.poll(pause if self.meter.pause is None else self.meter.pause))
            if exceeded := self.meter.look():
                _report(b"bound %s\n" % exceeded.encode())
                self.stop(_GRACE_WHEN_ASKED) if exceeded.startswith("terminal") else self.kill_all()
                return
            if wakeup in ready and signal.SIGUSR1 in os.read(wakeup, 4096):
                self.stop(_GRACE_WHEN_ASKED)
                return
            if 0 in ready:
                self.stop(_grace_of(os.read(0, 64).split()))
                return


def _cap(caps: list[str]) -> None:
    """Have the kernel bound this process and all that it starts; a shell that does it takes a millisecond longer."""
    for cap in caps:
        name, _, value = cap.partition("=")
        if name.isdigit():
            file = os.open(value, os.O_WRONLY if name == "1" else os.O_RDONLY)
            os.dup2(file, int(name))
            os.close(file)
        else:
            _limit(name, int(value))


def _limit(name: str, number: int) -> None:
    """Set a bound, unless it is above the one that is set already."""
    import resource

    kind = getattr(resource, name)
    try:
        most = resource.getrlimit(kind)[1]
        if most == resource.RLIM_INFINITY or number <= most:
            resource.setrlimit(kind, (number, number))
    except (OSError, ValueError):
        return


def _run_here(argv: list[str], joined: "Joined | None") -> None:
    """Be the frame of a throw-away copy in this interpreter, if that is wanted: starting another one takes longer."""
    if argv[1:4] == ["-I", "-S", _FRAME]:
        sys.argv = argv[3:]
        _load_frame().main(joined)
    if joined is not None:
        joined.run(argv)


def _join(order: bytes) -> "Joined | None":
    """Get ready to join the namespaces that an order names, if it names any."""
    if not order:
        return None
    from treadle.workspace.namespaces.joining_session import Joined

    return Joined(order)


def _load_frame() -> "Any":
    """Load the frame of a throw-away copy; no package is, since importing one would load all of it."""
    if not _frame:
        from _frozen_importlib_external import SourceFileLoader

        module: Any = type(sys)("overlay")
        module.__file__ = _FRAME
        SourceFileLoader("overlay", _FRAME).exec_module(module)
        _frame.append(module)
    return _frame[0]


_frame: "list[Any]" = []


def _make_use_of_the_wait() -> None:
    """Load, as long as no order has come, what a command on a throw-away copy would wait for."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    if sys.platform.startswith("linux") and not poll.poll(0):
        import resource  # noqa: F401 - as the frame, it is wanted in a hurry

        import treadle.workspace.namespaces.joining_session  # noqa: F401

        _load_frame().load_reader()


def _be_first_to_go() -> None:
    """Let the kernel, when memory runs out, end the command rather than Treadle."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - as above
            file.write("500")
    except OSError:
        return


def _grace_of(order: list[bytes]) -> float:
    """Read the seconds of a `stop` order; end of file is the shortest one."""
    return float(order[1]) if order else _GRACE_AFTER_TREADLE


def _report(line: bytes) -> None:
    try:
        os.write(1, line)
    except OSError:
        return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _load_prctl() -> Prctl | None:
    """Find prctl(2), which the standard library does not wrap; None on other systems than Linux."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl: Prctl = ctypes.CDLL(None).prctl
    return prctl


def _read_order() -> list[bytes] | None:
    """Wait for the parts of the order; None when Treadle needs no command any more."""
    header = b""
    while not header.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return None
        header += byte
    lengths = [int(length) for length in header.split()]
    order = b""
    while missing := sum(lengths) - len(order):
        data = os.read(0, missing)
        if not data:
            return None
        order += data
    parts = []
    for length in lengths:
        parts.append(order[:length])
        order = order[length:]
    return parts


def _is_alone(parent: int) -> bool:
    """Whether Treadle is gone; one that was just killed is still the parent for a moment, but holds no pipe."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return os.getppid() != parent or (bool(poll.poll(0)) and not os.read(0, 64))


def main() -> None:
    """Wait for a command and run it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wakeup, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    prctl, lid, parent = _load_prctl(), Lid(), os.getppid()
    _make_use_of_the_wait()
    order = _read_order()
    if order is not None:
        line, variables, bounds, words, caps, namespaces, folder = order
        for variable in variables.split(b"\0")[:-1]:
            name, _, value = variable.partition(b"=")
            os.environb[name] = value
        (shell,), directory = sys.argv[1:], os.fsdecode(folder)
        inner = [os.fsdecode(word) for word in words.split(b"\0")[:-1]]
        meter = Meter(os.fsdecode(bounds).split("\0")[:-1], lid)
        text = os.fsdecode(line)
        pipes = ask_for_pipes(text, shell)
        capped = os.fsdecode(caps).split("\0")[:-1]
        argv, joined = [*inner, shell, "-c", text], _join(namespaces)
        guard = _Guard(argv, directory, prctl, meter=meter, pipes=pipes, caps=capped, joined=joined)
        guard.watch(wakeup)
    if _is_alone(parent):  # else Treadle removes the group, and does not wait for this to leave it
        lid.leave()
    os._exit(0)  # nothing to tidy up, and somebody waits


if __name__ == "__main__":
    main()
