"""What the process has from its beginning: the standard streams, also closed ones, and Ctrl-C while it loads."""

import errno
import io
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
"""`typing` takes longer to load than `--version` to answer."""
if TYPE_CHECKING:
    from typing import Any, TextIO

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.ENXIO, errno.EBADF})


def open_streams() -> None:
    """Make the three streams usable: one that is closed goes nowhere, and no character ends the program.

    A closed stream leaves its number free. The next file to be opened, such as the log, would get that number, and
    whatever is written to the stream would land in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or _open(0, "r")
    sys.stdout = _whole(sys.stdout) or _open(1, "w")
    sys.stderr = _whole(sys.stderr) or _open(2, "w")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _open(number: int, mode: str) -> "TextIO":
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


def _whole(stream: "TextIO | None") -> "TextIO | None":
    """Give a stream that writes all or fails: without a buffer, as PYTHONUNBUFFERED has it, the rest of a write that is
    cut, by a signal or a reader who leaves, is lost without a word.
    """
    if stream is None or not isinstance(stream.buffer, io.RawIOBase):
        return stream
    return open(stream.fileno(), "w", buffering=1, encoding=stream.encoding, closefd=False)


def is_unwritable(error: OSError) -> bool:
    """Whether it is about a stream: nobody is there any more, or its disk is full. One about a file names the file."""
    return error.filename is None and error.errno in _GONE | _FULL


def is_full(error: OSError) -> bool:
    """Whether there was no room for what was written."""
    return error.errno in _FULL


def is_hangup(error: OSError) -> bool:
    """Whether it was a terminal that is gone, not a pipe whose reader has left."""
    return error.errno != errno.EPIPE


def flush_streams() -> OSError | None:
    """Write out what is held back; gives the error of what cannot be written, which is dropped.

    Python would try again at its very end and exit with 120.
    """
    failed = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed = failed or error
            _drop(stream)
    return failed


def _drop(stream: "TextIO") -> None:
    """Let the rest of a stream go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    stream.flush()


_INTERRUPTED = 128 + signal.SIGINT


class Loading:
    """A block in which SIGINT ends the process: no exception is raised into what is being imported.

    Libraries in C do not stand one there: msgspec crashes where it comes while it looks at a type.
    """

    def __init__(self) -> None:
        self._before: Any = None

    def __enter__(self) -> None:
        with suppress(ValueError):  # not the main thread
            if (before := signal.getsignal(signal.SIGINT)) is signal.default_int_handler:
                signal.signal(signal.SIGINT, _end)
                self._before = before

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def _end(*_: object) -> None:
    os._exit(_INTERRUPTED)
