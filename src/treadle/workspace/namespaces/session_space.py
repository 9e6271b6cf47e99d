"""The namespaces of one session, from Treadle's side: a process that holds them, started with the first command."""

import socket
import subprocess
import sys
import threading

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.namespaces import make

_PATIENCE = 5.0  # seconds; it takes some 50 milliseconds
_MOST = 1024  # bytes of an answer


class SessionNamespaces:
    """What the commands of one session share: a network with nothing but loopback, and processes.

    May be used by several threads. When this process ends, however it does, so does all that is in them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._holder: Owner | None = None
        self.trouble = ""
        """Why there are none; empty while there are, and before it was tried."""

    def holder(self) -> Owner | None:
        """Give the process that holds them; starts it where none lives. None where none can be had: see `trouble`."""
        with self._lock:
            if self._holder is not None and lives(self._holder):
                return self._holder
            self._end()
            if not self.trouble:
                self._begin()
            return self._holder

    def living(self) -> Owner | None:
        """Give the process that holds them if there is one; starts nothing."""
        holder = self._holder
        return holder if holder is not None and lives(holder) else None

    def _begin(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_PATIENCE)
        command = (sys.executable, "-I", "-S", make.__file__, str(theirs.fileno()))
        try:
            with theirs:
                first = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            number, ready = ours.recv(_MOST), ours.recv(_MOST)
            first.wait(_PATIENCE)
            if not number.isdigit() or ready != b"ready":
                said = ready if number.isdigit() else number
                raise OSError(said.removeprefix(b"failed ").decode(errors="replace") or "it ended")
        except (OSError, subprocess.TimeoutExpired) as error:
            ours.close()
            self.trouble = f"they cannot be made here: {error}"
            return
        self._socket, self._holder = ours, owner_of(int(number))

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._holder = None

    def socket(self, family: int, kind: int) -> socket.socket:
        """Make a socket of the session's network, neither bound nor connected. Raises `OSError` where there is none."""
        with self._lock:
            if self._socket is None:
                raise OSError("the session has no network of its own")
            self._socket.send(b"socket %d %d" % (family, kind))
            answer, descriptors, _, _ = socket.recv_fds(self._socket, _MOST, 1)
            if not descriptors:
                raise OSError(answer.removeprefix(b"failed ").decode(errors="replace") or "the holder is gone")
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """End them with all that runs in them."""
        with self._lock:
            self._end()
            self.trouble = "the session is closed"
