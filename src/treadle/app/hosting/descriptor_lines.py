"""Lines on file descriptors, read and written by threads of their own: no lock of a stream is held while one waits."""

import os
from collections.abc import Iterator
from contextlib import suppress

_CHUNK = 256 * 1024

MOST_UNREAD_BYTES = 256 * 1024 * 1024
"""Bytes that wait for a reader that does not read; one that lets more wait is treated as gone."""


def read_lines(source: int, longest: int) -> Iterator[bytes | None]:
    """Give each line without its end, None for one of more than `longest` bytes, until the other side is closed."""
    pieces: list[bytes] = []
    size = 0
    with suppress(OSError):
        while chunk := os.read(source, _CHUNK):
            first, *rest = chunk.split(b"\n")
            pieces.append(first)
            size += len(first)
            if size > longest:
                pieces.clear()
            for following in rest:
                yield b"".join(pieces) if size <= longest else None
                pieces, size = [following], len(following)
    if any(pieces):
        yield b"".join(pieces)


def write_whole(target: int, data: bytes) -> None:
    """Write all of it; raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]


def own_stdout() -> int:
    """Take standard output over: what else is written there goes to standard error from now on."""
    target = os.dup(1)
    os.dup2(2, 1)
    return target
