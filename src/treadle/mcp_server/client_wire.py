"""Standard input and output as the wire of one client: neither ever blocks the loop, or keeps the program from ending.

The descriptors 0 and 1 lead elsewhere meanwhile, so that nothing but the protocol is on the wire.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Self

_LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is no message, and is left out."""

_AHEAD = 16
"""Lines that are read before the server takes them."""


class WireLines:
    """The lines that the client sends, read by a thread: an async iterator that ends with the client."""

    def __init__(self) -> None:
        """Take standard input over; it is read once somebody iterates."""
        self._fd = _taken_over(0, os.open(os.devnull, os.O_RDONLY))
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(_AHEAD)

    def __aiter__(self) -> Self:
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="mcp input", daemon=True).start()
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with os.fdopen(self._fd, "rb", closefd=False) as stream:
            try:
                while line := stream.readline(_LONGEST_LINE):
                    if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
                        line = _rest_of(stream.readline)
                    if not self._pass_on(line.decode(errors="replace"), loop):
                        return
            except OSError:
                pass  # the terminal is gone
        self._pass_on(None, loop)

    def _pass_on(self, line: str | None, loop: asyncio.AbstractEventLoop) -> bool:
        """Wait until there is room for a line; says whether anybody is left to take it."""
        try:
            asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()
        except (RuntimeError, CancelledError):  # the loop is closed, or closing
            return False
        return True


def _rest_of(readline: Callable[[int], bytes]) -> bytes:
    """Skip the rest of a line that is too long; gives what is no message, so that the client is answered."""
    while (more := readline(_LONGEST_LINE)) and not more.endswith(b"\n"):
        pass
    return b"{}\n"


class WireOutput:
    """Where the client reads; each text is written by a thread, one after the other."""

    def __init__(self) -> None:
        """Take standard output over."""
        self._fd = _taken_over(1, os.dup(2))
        self._texts: queue.SimpleQueue[tuple[str, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="mcp output", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a text; returns when the client has room for it. One that is gone takes nothing."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._texts.put((text, written))
        await written

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self) -> None:
        while True:
            text, written = self._texts.get()
            rest = memoryview(text.encode(errors="surrogatepass"))
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:
                pass  # the end of its input will be seen
            try:
                written.get_loop().call_soon_threadsafe(_done, written)
            except RuntimeError:  # the loop is closed
                return


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _taken_over(number: int, instead: int) -> int:
    """Move a standard stream to a descriptor of its own, which no child gets; `instead` takes its place."""
    own = os.dup(number)
    os.dup2(instead, number)
    os.close(instead)
    return own
