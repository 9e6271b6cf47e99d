"""Loaded into the program as `sitecustomize`: notes every name that is looked up and every address that is called."""

import os
import sys
from typing import Any

_WATCHED = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
    }
)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _WATCHED:
        address = arguments[-1] if event in ("socket.connect", "socket.sendto", "socket.sendmsg") else arguments
        line = f"{event} {address[0]} {address[1]}" if isinstance(address, tuple) else f"{event} {address!r}"
        os.write(_LOG, f"{line}\n".encode())


_LOG = os.open(os.environ["TREADLE_SOCKET_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
sys.addaudithook(_watch)
