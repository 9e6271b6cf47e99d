"""Run Treadle by a process that has it loaded: `front.py NAME ARGUMENT...` stands for `python -m treadle ARGUMENT...`.

`+NAME` gives the run the terminal of the streams, which is nobody's yet.

The run is a process of its own with the arguments, variables, folder and streams of this one, which hands on signals
and ends as the run ended. Where a stream is closed or, without the `+`, a terminal, a signal is ignored, Python would
start in another way, or nothing listens at that name, this process becomes `python -m treadle` itself.

Only what is built into Python is loaded here: this is started a thousand times.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

HANDED_ON = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)
TAKE_TERMINAL = 0x540E
"""`TIOCSCTTY`, whose module need not be loaded for it."""


def _as_usual(*, terminal: bool) -> bool:
    """Whether nothing of this process is special that the run would have to inherit."""
    try:
        if any(os.isatty(number) is not terminal or not os.fstat(number) for number in range(3)):
            return False
    except OSError:
        return False
    return all(_signal.getsignal(number) != _signal.SIG_IGN for number in HANDED_ON)


def _handed_on(name: str, arguments: list[str], *, terminal: bool) -> "_socket.socket | None":
    """Give the connection to the run; None when it has to be started here."""
    if not _as_usual(terminal=terminal):
        return None
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    try:
        request = marshal.dumps((arguments, dict(os.environ), os.getcwd(), terminal))  # noqa: PTH109
        connection.connect("\0" + name)
        connection.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        connection.sendall(request)
        return connection if connection.recv(1) == b"+" else None
    except OSError:
        return None


def main() -> None:
    """Run it, and end as it ended."""
    name = sys.argv[1]
    connection = _handed_on(name.removeprefix("+"), sys.argv[2:], terminal=name.startswith("+"))
    if connection is None:
        if name.startswith("+"):
            import fcntl

            fcntl.ioctl(0, TAKE_TERMINAL, 0)
        os.execv(sys.executable, [sys.executable, "-m", "treadle", *sys.argv[2:]])
    for number in HANDED_ON:
        _signal.signal(number, lambda number, _: connection.send(bytes((number,))))
    os.closerange(0, 3)
    ended = connection.recv(4)
    status = int.from_bytes(ended, "big") if len(ended) == 4 else _signal.SIGKILL
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
