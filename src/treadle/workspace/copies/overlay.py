"""The frame of a command that works on a throw-away copy: makes the copy, runs, and keeps what was changed in it.

Run as `python -I -S overlay.py FOLDER -- program argument...`. FOLDER is private to Treadle; its file `job` says what
is copied (see `making.py`). In namespaces of its own this mounts a memory disk of bounded size on `FOLDER/mount`, and
there for each root number N an overlay `N/all`, whose changes go to `N/up`. The program finds them by these paths.
Its place is between the guard and the sandbox: standard input and output are the program's. When the program and all
that it left behind have ended, the changes are written to FOLDER as `upper.py` says, and only then does this end, with
the program's exit status. Where its parent ends first, it ends all of them. Whatever fails before the program starts is
said on standard error, with status 126.

Only the standard library, and sparingly: a command waits for this to start.
"""

import ctypes
import marshal
import os
import signal
import stat
import sys
import time
from _frozen_importlib_external import SourceFileLoader

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000  # of unshare(2)
_PRIVATE, _NO_SUID, _NO_DEVICES = 0x44000, 2, 4  # of mount(2); the first with all that is below
_DEATH_SIGNAL, _DROP_BOUND, _SUBREAPER = 1, 24, 36  # of prctl(2)
_MAPS_ROOT = 31  # a capability: root needs it to make the namespaces of the sandbox
_DROPPED = [number for number in range(64) if number != _MAPS_ROOT]
_COARSE_CLOCK = 5
_REFUSED = 126
_ORPHANED = signal.SIGUSR2
"""Sent by the kernel when the parent has ended."""

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

    from treadle.workspace.namespaces.joining_session import Joined

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(target: str, kind: str, options: str, flags: int) -> None:
    given = ("copy", target, kind, flags, options)
    raw = (os.fsencode(value) if isinstance(value, str) else ctypes.c_ulong(value) for value in given)
    _checked(_libc.mount(*raw), f"mount {kind or target}")


def _enter_namespaces(*, joined: bool) -> None:
    """Get a name space of mounts in which this user may mount; what has `joined` a session's namespaces may already."""
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_NEW_MOUNTS | (0 if joined else _NEW_USER)), "unshare")
    if not joined:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _mount("/", "", "", _PRIVATE)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - pathlib costs this program a third of its start
        file.write(text)


def _make_copies(job: "dict[str, Any]") -> None:
    """Mount everything, with the memory disk as the current directory; nothing of it outlives this process."""
    options = f"size={job['size']},nr_inodes={job['files']},mode=700"
    _mount("mount", "tmpfs", options, _NO_SUID | _NO_DEVICES)
    os.chdir("mount")
    for number, root in enumerate(job["roots"]):
        for name in ("", "/up", "/work", "/all", "/mask"):
            os.mkdir(f"{number}{name}", 0o700)  # noqa: PTH102 - as above
        masks = job["masks"][number]
        _mask_all(root, os.fsencode(f"{number}/mask"), masks)
        # By a descriptor: a path would have to be escaped twice.
        lower = os.open(root, os.O_PATH | os.O_DIRECTORY)
        _take_after(f"{number}/up", os.fstat(lower))
        layers = [f"{number}/mask"] if masks else []
        lowers = ":".join([*layers, f"/proc/self/fd/{lower}"])
        paths = f"lowerdir={lowers},upperdir={number}/up,workdir={number}/work,userxattr"
        _mount(f"{number}/all", "overlay", paths, _NO_SUID | _NO_DEVICES)
        os.close(lower)


def _mask_all(root: bytes, layer: bytes, masks: list[tuple[bytes, bytes | None]]) -> None:
    """Fill the layer that covers the original: files with other content, and empty folders (None)."""
    above: dict[bytes, None] = {}
    for path, content in masks:
        if not os.path.lexists(root + b"/" + path):
            continue
        parts = path.split(b"/")
        folders = [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
        for folder in folders:
            if folder not in above:
                os.mkdir(layer + b"/" + folder, 0o700)  # noqa: PTH102 - as above
        above.update(dict.fromkeys(folders))
        if content is None:
            os.mkdir(layer + b"/" + path, 0o700)  # noqa: PTH102 - as above
            os.setxattr(layer + b"/" + path, "user.overlay.opaque", b"y")
        else:
            with open(layer + b"/" + path, "xb") as file:  # noqa: PTH123 - as above
                file.write(content)
        _take_after(layer + b"/" + path, os.lstat(root + b"/" + path))
    for folder in above:
        _take_after(layer + b"/" + folder, os.lstat(root + b"/" + folder))
    if above or masks:
        _take_after(layer, os.lstat(root))


def _take_after(path: str | bytes, like: os.stat_result) -> None:
    """Give a copy the mode and the times of its original: a merged folder has those of its uppermost layer."""
    os.chmod(path, stat.S_IMODE(like.st_mode))  # noqa: PTH101 - as above
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))


def _start(program: list[str], joined: "Joined | None") -> int:
    """Fork the program, without rights over these namespaces; it ends when this process does."""
    parent = os.getpid() if joined is None else joined.outside
    pid = os.fork()
    if pid == 0:
        try:
            _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
            signal.signal(_ORPHANED, signal.SIG_DFL)
            if os.getppid() != parent:
                os._exit(_REFUSED)
            if joined is not None:
                joined.show_processes()
                program = joined.short(program)
            for number in _DROPPED:
                _libc.prctl(_DROP_BOUND, number, 0, 0, 0)
            os.chdir("/")
            os.environ["GIT_OPTIONAL_LOCKS"] = "0"  # else git that only looks writes its index anew
            os.execvp(program[0], program)  # noqa: S606 - named by Treadle
        except OSError as error:
            os.write(2, f"The sandbox could not be set up: {error}\n".encode())
        finally:
            os._exit(_REFUSED)
    return pid


def _end_all(_number: int, _frame: object) -> None:
    """End all that was started, and this: nobody waits for it any more.

    Killed with the one that makes its namespaces, bubblewrap's first process in them would wait forever for that one.
    """
    try:
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123 - as above
                children = file.read().split()
            for one in children:
                os.kill(int(one), signal.SIGKILL)  # even one that has ended, until it is waited for
            os.waitpid(-1, 0)
    finally:  # there is none any more, or the kernel does not tell them: then they end with this one, as far as they do
        os._exit(_REFUSED)


def _wait(pid: int) -> int:
    """Leave the output to the program, and wait until it and all that it left behind are gone; gives its status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null, fd)
    status = _REFUSED
    while True:
        try:
            ended, how = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if ended == pid:
            status = os.waitstatus_to_exitcode(how)


def load_reader() -> "Any":
    """Load what reads the changes; who has time before the command does it then."""
    if not _reader:
        path = os.path.join(os.path.dirname(__file__), "upper.py")  # noqa: PTH118, PTH120 - as above
        module: Any = type(sys)("upper")
        SourceFileLoader("upper", path).exec_module(module)
        _reader.append(module)
    return _reader[0]


_reader: "list[Any]" = []


def main(joined: "Joined | None" = None) -> None:
    """Do what the arguments say; this process may have `joined` the namespaces of a session."""
    end = sys.argv.index("--")
    _libc.prctl(_DEATH_SIGNAL, _ORPHANED)
    try:
        os.chdir(sys.argv[1])
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        with open("job", "rb") as file:  # noqa: PTH123 - as above
            job = marshal.load(file)  # noqa: S302 - Treadle's own, of a moment ago
        start = time.clock_gettime_ns(_COARSE_CLOCK)
        _enter_namespaces(joined=joined is not None)
        _make_copies(job)
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        signal.signal(_ORPHANED, _end_all)
        pid = _start(sys.argv[end + 1 :], joined)
    except (OSError, ValueError) as error:
        os.write(2, f"The sandbox could not be set up: {error}\n".encode())
        os._exit(_REFUSED)
    status = _wait(pid)
    if joined is not None:
        joined.end_orphans(tell=True)
    load_reader().keep(folder, job, start)
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
