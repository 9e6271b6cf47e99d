"""Makes the namespaces of a session: of users, processes, networks and System V memory.

Run as `python -I -S make.py DESCRIPTOR`, a socket that keeps packets apart (SOCK_SEQPACKET). It starts their first
process, `holder.py`, with the socket, says its number as the caller counts, and ends; or it says `failed` and why.
"""

import _socket
import ctypes
import fcntl
import os
import signal
import struct
import sys

_NAMESPACES = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000
"""Users, processes, network and System V memory, as unshare(2) numbers them."""
_SET_FLAGS, _UP, _RUNNING = 0x8914, 0x1, 0x40  # of netdevice(7)
_NEW_ROUTE, _MADE_NOW = 24, 0x605  # of rtnetlink(7): a request that creates, to be acknowledged
_LOCAL_TABLE, _BY_ADMIN, _ON_HOST, _LOCAL, _TARGET, _DEVICE, _LOOPBACK = 255, 4, 254, 2, 1, 4, 1
_ADDRESSES, _BITS = bytes((198, 18, 0, 0)), 15  # see names.py
_HOLDER = f"{__file__.removesuffix('make.py')}holder.py"


def _unshare() -> None:
    """Make the namespaces; the user stays who it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NAMESPACES) < 0:
        raise OSError(ctypes.get_errno(), f"unshare: {os.strerror(ctypes.get_errno())}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - a command waits, and pathlib takes its time
            file.write(text)


def _raise_loopback() -> None:
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(sock.fileno(), _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP | _RUNNING))
    sock.close()


def _own_addresses() -> None:
    """Have all of 198.18.0.0/15 lead to this network's loopback: `ip route add local 198.18.0.0/15 dev lo`."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, 0)
    route = struct.pack("8BI", _socket.AF_INET, _BITS, 0, 0, _LOCAL_TABLE, _BY_ADMIN, _ON_HOST, _LOCAL, 0)
    attributes = struct.pack("HH4s", 8, _TARGET, _ADDRESSES) + struct.pack("HHi", 8, _DEVICE, _LOOPBACK)
    size = 16 + len(route) + len(attributes)
    sock.send(struct.pack("IHHII", size, _NEW_ROUTE, _MADE_NOW, 1, 0) + route + attributes)
    if error := -struct.unpack_from("i", sock.recv(4096), 16)[0]:
        raise OSError(error, f"route: {os.strerror(error)}")
    sock.close()


def main() -> None:
    """Make them."""
    sock = _socket.socket(fileno=int(sys.argv[1]))
    try:
        _unshare()
        _raise_loopback()
        _own_addresses()
        os.chdir("/")
        pid = os.fork()
        if pid:
            sock.send(b"%d" % pid)
        else:
            for number in (
                signal.SIGINT,
                signal.SIGCHLD,
            ):  # the first is not handled, and the kernel buries who is left
                signal.signal(number, signal.SIG_IGN)
            os.setsid()
            os.execv(sys.executable, [sys.executable, "-I", "-S", _HOLDER, sys.argv[1]])  # noqa: S606 - named here
    except OSError as error:
        sock.send(b"failed %s" % str(error).encode())
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
