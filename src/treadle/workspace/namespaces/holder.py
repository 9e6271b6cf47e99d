"""The first process of a session's namespaces: while it lives they last, and what it leaves behind the kernel ends.

Run by `make.py` with a socket that keeps packets apart (SOCK_SEQPACKET). It says `ready`; then it answers each order
`socket FAMILY TYPE` by `given` with a socket of this network, neither bound nor connected, or by `failed`.
Nothing here connects, listens or reads for anybody inside. End of file, that is the death of Treadle, ends it, once
the guards have asked what runs here to end, as git takes its locks away only then; what does not end ends with it.

It stays as long as the session, and so it is short and loads nothing: it takes 2.9 MB of its own.
"""

import _socket
import os
import sys
import time

_MOST = 256  # bytes of an order
_INTEGER = 4  # bytes of a descriptor in a packet
_GRACE, _TICK = 0.7, 0.01  # seconds; guards wait for half of one before they kill


def _answer(sock: _socket.socket, order: bytes) -> None:
    _, family, kind = order.split()
    try:
        made = _socket.socket(int(family), int(kind))
    except OSError as error:
        sock.send(b"failed %s" % os.strerror(error.errno or 0).encode())
        return
    descriptor = made.fileno().to_bytes(_INTEGER, sys.byteorder)
    sock.sendmsg([b"given"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor)])
    made.close()


def _hold(sock: _socket.socket) -> None:
    """Be the first process: it handles no signal, so that none from inside reaches it."""
    sock.send(b"ready")
    while order := sock.recv(_MOST):
        _answer(sock, order)


def _wait_for_the_others() -> None:
    """Wait until nothing else is in the namespace, but not for long."""
    until = time.monotonic() + _GRACE
    try:
        while time.monotonic() < until:
            os.kill(-1, 0)
            time.sleep(_TICK)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    _hold(_socket.socket(fileno=int(sys.argv[1])))
    _wait_for_the_others()
    os._exit(0)
