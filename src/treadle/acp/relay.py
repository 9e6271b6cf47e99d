"""Runs in a terminal of the client: shows the output of a command that Treadle runs elsewhere, and ends as that does.

It runs alone, with nothing but the standard library: `relay.py SOCKET`. Each piece of output is its length in four
bytes and its text; a piece of no length ends it, and one byte with the exit status follows.
"""

import os
import socket
import sys

_HEAD = 4


def _read(stream: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = stream.recv(min(size, 65536))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def show(address: str) -> int:
    """Show what comes from a socket; returns the exit status of the command, 1 where Treadle is gone."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(address)
        try:
            while size := int.from_bytes(_read(stream, _HEAD), "big"):
                rest = memoryview(_read(stream, size))
                while rest:
                    rest = rest[os.write(1, rest) :]
            return _read(stream, 1)[0]
        except EOFError:
            return 1


if __name__ == "__main__":
    sys.exit(show(sys.argv[1]))
