"""Messages out of a stream of bytes, one a line: in time linear in the bytes, whatever their chunks, and bounded."""

import json
import re
from collections import deque
from typing import Any

import msgspec

MOST_OF_ONE = 4 * 1024 * 1024
"""Bytes of one message. To read one of many small parts holds the interpreter up for about 8 ms for each MiB."""

_KEPT = 4096
_ID = rb'"id"\s*:\s*(-?\d+|"[^"\\]{1,200}")'
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_ANSWERS = re.compile(rb'[^\[{]*\{[^\[{]*"(?:result|error)"\s*:')


def read_leniently(line: bytes) -> Any:
    """Read JSON as a program meant it that writes half characters, bytes that are no UTF-8, or a number that is none.

    The first two become replacement characters, the last one null. Raises `ValueError`, `RecursionError`.
    """
    found = json.loads(line.decode(errors="replace"), parse_constant=lambda _: None)
    text = json.dumps(found, ensure_ascii=False)
    return msgspec.json.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def answered_id(line: bytes) -> bytes:
    """Find, as JSON, the id that a message which cannot be read answers; empty where it seems to be no answer."""
    return _found_id(line, line[-_KEPT:]) if _ANSWERS.match(line[:_KEPT]) else b""


def _found_id(head: bytes, tail: bytes) -> bytes:
    found = _FIRST.match(head) or _LAST.search(tail)
    return found[1] if found is not None else b""


class TooLong:
    """A message beyond the bound, which was not kept: its `size` in bytes, and as JSON the id that it answers."""

    def __init__(self, size: int, head: bytes, tail: bytes) -> None:
        self.size = size
        self.answers = _found_id(head, tail)


class Frames:
    """Takes chunks and gives whole lines without their end; of a line that is too long only that there was one."""

    def __init__(self, most: int = MOST_OF_ONE) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail: deque[bytes] = deque()

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """Take a chunk; gives what it ends."""
        first, *rest = chunk.split(b"\n")
        self._add(first)
        found: list[bytes | TooLong] = []
        for line in rest:
            if (ended := self._end()) is not None:
                found.append(ended)
            self._add(line)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._pieces.append(piece)
            return
        if self._tail:
            self._tail.append(piece[-_KEPT:])
        else:
            kept, self._pieces = b"".join((*self._pieces, piece)), []
            self._head = kept[:_KEPT]
            self._tail.append(kept[-_KEPT:])
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) >= _KEPT:
            self._tail.popleft()

    def _end(self) -> bytes | TooLong | None:
        size, self._size = self._size, 0
        if size > self._most:
            over = TooLong(size, self._head, b"".join(self._tail))
            self._head = b""
            self._tail.clear()
            return over
        line, self._pieces = b"".join(self._pieces), []
        return line if line.strip() else None
