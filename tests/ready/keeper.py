"""Keeps Treadle loaded, and forks a process for each run that `front.py` hands on: `python keeper.py NAME OWNER`.

`OWNER` is a file descriptor: its end is the end of this. What a run leaves behind is adopted here, where
`tests.orphans` looks for it.
"""

import ctypes
import faulthandler
import fcntl
import gc
import io
import marshal
import os
import pkgutil
import selectors
import signal
import socket
import sys
import termios
from importlib import import_module
from typing import Any

_SUBREAPER = 36
_PATIENCE = 90.0
_LEFT_OUT = ("treadle.app.demo.project", "treadle.harbor", "treadle.pytest_plugin")
_OF_PYTHON = ("PYTHON", "LC_", "LANG")
"""How the names of variables begin that Python reads as it starts."""

_REGARDED = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Those of them that a run regards when it begins."""


def _load() -> None:
    import treadle

    for module in pkgutil.walk_packages(treadle.__path__, "treadle."):
        if not module.name.startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            import_module(module.name)
    import_module("treadle.__main__")
    # Each run would read the index of the code of all modules, which are loaded: a fifth of a short run.
    imports: Any = import_module("treadle.cli.import_cache")
    imports.install_import_cache = lambda source: imports.ImportCache("")
    # On a busy machine a server that a test waits for may take longer than a person wants to wait for the first answer.
    import_module("treadle.app.servers.session_servers").FIRST_WAIT = _PATIENCE  # type: ignore[attr-defined]


def _starts_alike(variables: dict[str, str]) -> bool:
    """Whether Python would have started with these variables as it did here."""
    read = [name for name in variables if name.startswith(_OF_PYTHON) and name not in _REGARDED]
    return all(variables[name] in (os.environ.get(name), "C.UTF-8") for name in read)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size and (part := connection.recv(size - len(parts))):
        parts += part
    return parts


def _stream(number: int, mode: str, *, now: bool = False) -> io.TextIOWrapper:
    """Make a stream anew: Python's own know what this process was started with."""
    file = io.FileIO(number, mode, closefd=False)
    buffered = io.BufferedReader(file) if mode == "r" else file if now else io.BufferedWriter(file)
    return io.TextIOWrapper(buffered, encoding="utf-8", write_through=now)


def _become(arguments: list[str], variables: dict[str, str], folder: str, streams: list[int]) -> None:
    """Be a run in a process of its own."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.dont_write_bytecode = bool(variables.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = [sys.modules["treadle.__main__"].__file__ or "", *arguments]
    sys.path[0] = folder
    whole = bool(variables.get("PYTHONUNBUFFERED"))
    sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w", now=whole), _stream(2, "w", now=whole)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    sys.stderr.reconfigure(line_buffering=True)
    faulthandler.register(signal.SIGUSR2, file=2)  # says where a run is that a test waits for
    import_module("treadle.__main__").main()


class Keeper:
    """The runs, and the connections to those who wait for them."""

    def __init__(self, name: str, owner: int) -> None:
        self._waiting: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + name)
        self._listener.listen(64)
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self._woken, self._wakes, self._owner = woken, wakes, owner
        for source in (self._listener, woken, owner):
            self._selector.register(source, selectors.EVENT_READ)

    def keep(self) -> None:
        """Run what is handed on until the owner is gone."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._owner:
                    return
                if key.fileobj is self._listener:
                    self._take()
                elif key.fileobj is self._woken:
                    self._woken.recv(4096)
                    self._reap()
                elif key.data in self._waiting:
                    self._hand_on(key.data)

    def _take(self) -> None:
        connection = self._listener.accept()[0]
        length, streams, _, _ = socket.recv_fds(connection, 8, 3)
        arguments, variables, folder, terminal = marshal.loads(_exactly(connection, int.from_bytes(length, "big")))
        pid = os.fork() if _starts_alike(variables) else -1
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if terminal:
                os.setsid()
                fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            _become(arguments, variables, folder, streams)
        for stream in streams:
            os.close(stream)
        if pid == -1:
            connection.close()
            return
        self._waiting[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        connection.sendall(b"+")

    def _hand_on(self, pid: int) -> None:
        """Hand on signals; who was killed takes the run along."""
        for number in self._waiting[pid].recv(64) or (signal.SIGKILL,):
            os.kill(pid, number)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if connection := self._waiting.pop(pid, None):
                self._selector.unregister(connection)
                with connection:
                    try:
                        connection.sendall(status.to_bytes(4, "big"))
                    except OSError:  # who waited was killed
                        continue


def main() -> None:
    """Load everything, say so, and go on without the one who started it."""
    name, owner = sys.argv[1], int(sys.argv[2])
    _load()
    gc.collect()
    gc.freeze()
    keeper = Keeper(name, owner)
    if os.fork():
        os._exit(0)
    print(os.getpid(), flush=True)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    keeper.keep()


if __name__ == "__main__":
    main()
