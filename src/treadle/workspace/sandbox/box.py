"""The frame around a sandboxed command: what must be there before it and gone after it.

Run as `python -I -S box.py LOCK [OPTION VALUE]... -- program argument...`. The options are `--limit NAME=NUMBER` (a
resource limit), `--seccomp HEX` (a filter, given to the program on descriptor 9), `--file`, `--folder` and `--link`
(a protected path that is missing: a placeholder stands there while the program runs; or a link to keep). Everything on
standard input and output is the program's. Placeholders are shared by the programs of one folder that run at the same
time, which hold LOCK; the last one takes them away. `--lock` begins those of another folder, which has a lock of its
own. Should this be killed, the next one knows them by their mark.
"""

import fcntl
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator

_MARK = 1  # the time of last change of a placeholder: one second after 1970 began
_FILTER_FD = 9
_REFUSED = 126


class _Placeholders:
    """What stands in for protected paths that are missing, and the links that must stay."""

    def __init__(self, lock: str) -> None:
        self.lock = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        self.files: list[str] = []
        self.folders: list[str] = []
        self.links: dict[str, str] = {}

    def add_file(self, path: str) -> None:
        """Put an empty file where nothing is."""
        self.add_parents(path)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400))
        except FileExistsError:
            if not is_placeholder(path):
                return
        os.utime(path, (_MARK, _MARK))
        self.files.append(path)

    def add_folder(self, path: str) -> None:
        """Put an empty folder where nothing is."""
        self.add_parents(path)
        self.make_folder(path)

    def add_parents(self, path: str) -> None:
        """Make the folders above a path."""
        above = os.path.dirname(path)  # noqa: PTH120 - pathlib costs this program a third of its start
        if is_placeholder(above) or not os.path.lexists(above):
            self.add_parents(above)
            self.make_folder(above)

    def make_folder(self, path: str) -> None:
        """Make one folder, or take over the one that a killed program left."""
        try:
            os.mkdir(path, 0o700)  # noqa: PTH102 - as above
        except FileExistsError:
            if not is_placeholder(path):
                return
        if path not in self.folders:
            self.folders.append(path)

    def mark(self) -> None:
        """Mark the folders; later than all that is made in them."""
        for path in self.folders:
            os.utime(path, (_MARK, _MARK))

    @property
    def none(self) -> bool:
        """Whether there is nothing to do afterwards."""
        return not (self.files or self.folders or self.links)

    def remove(self) -> None:
        """Take away what still is as it was made, and put links back that were replaced, unless others run here."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for path in self.files:
            if is_placeholder(path):
                os.unlink(path)  # noqa: PTH108 - as above
        for path in reversed(self.folders):
            try:
                os.rmdir(path)  # noqa: PTH106 - as above
            except OSError:
                continue
        for path, target in self.links.items():
            if _target(path) != target:
                _restore(path, target)


def is_placeholder(path: str) -> bool:
    """Whether an empty file or a folder stands here that bears the mark."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    empty = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size == 0)
    return empty and found.st_mtime_ns == _MARK * 10**9


def _target(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - as above
    except OSError:
        return ""


def _restore(path: str, target: str) -> None:
    """Set aside what took the place of a link."""
    if os.path.lexists(path):
        os.rename(path, f"{path}.refused-{os.getpid()}")  # noqa: PTH104 - as above
    os.symlink(target, path)  # noqa: PTH211 - as above


def _set_limit(text: str) -> None:
    name, _, number = text.partition("=")
    which, wanted = getattr(resource, f"RLIMIT_{name}"), int(number)
    highest = resource.getrlimit(which)[1]
    bound = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
    resource.setrlimit(which, (bound, bound))


def _offer_filter(text: str) -> None:
    """Write the filter into a pipe whose other end the program inherits."""
    reading, writing = os.pipe()
    os.write(writing, bytes.fromhex(text))
    os.close(writing)
    os.dup2(reading, _FILTER_FD, inheritable=True)
    if reading != _FILTER_FD:
        os.close(reading)


def _run(argv: list[str]) -> int:
    """Start the program with our input and output, give those up, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(argv[0], argv)  # noqa: S606 - named by Treadle
        finally:
            os._exit(_REFUSED)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _options(arguments: list[str]) -> Iterator[tuple[str, str]]:
    return zip(arguments[::2], arguments[1::2], strict=True)


def _prepare(options: Iterator[tuple[str, str]], groups: list[_Placeholders]) -> None:
    for option, value in options:
        match option:
            case "--lock":
                groups.append(_Placeholders(value))
            case "--file":
                groups[-1].add_file(value)
            case "--folder":
                groups[-1].add_folder(value)
            case "--link":
                groups[-1].links[value] = _target(value)
            case "--limit":
                _set_limit(value)
            case "--seccomp":
                _offer_filter(value)
            case _:
                raise OSError(f"unknown option {option}")
    for placeholders in groups:
        placeholders.mark()


def main() -> None:
    """Do what the arguments say."""
    end = sys.argv.index("--")
    groups = [_Placeholders(sys.argv[1])]
    status = _REFUSED
    try:
        _prepare(_options(sys.argv[2:end]), groups)
        if all(placeholders.none for placeholders in groups):
            os.execv(sys.argv[end + 1], sys.argv[end + 1 :])  # noqa: S606 - named by Treadle
        status = _run(sys.argv[end + 1 :])
    except (OSError, ValueError) as error:
        os.write(2, f"The sandbox could not be set up: {error}\n".encode())
    for placeholders in groups:
        placeholders.remove()
    os._exit(abs(status))


if __name__ == "__main__":
    main()
