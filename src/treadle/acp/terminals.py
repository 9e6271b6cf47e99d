"""Commands in a terminal of the client: Treadle runs them, confined as ever, and the terminal shows their output.

What the client starts there is only what shows it (`relay`): the client's process would run a command outside of the
sandbox and with the client's environment.
"""

import asyncio
import sys
import tempfile
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from treadle.acp import relay
from treadle.acp.client import EditorClient
from treadle.acp.rpc import ClientGoneError, RpcError
from treadle.present.escape import printable

_KEPT_BYTES = 1024 * 1024
_PATIENCE = 5.0
"""Seconds that the terminal's program has to come up, and to show the end of the output and end."""


class ShownCommand:
    """One command in a terminal of the client. `terminal` is its id, empty where the client has given it none.

    One whose program does not come up is `lost`: it shows nothing, and is given back.
    """

    def __init__(self, client: EditorClient, folder: str) -> None:
        self._client = client
        self._folder = folder
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._writer: asyncio.StreamWriter | None = None
        self._came_up, self._finished = asyncio.Event(), asyncio.Event()
        self._status = 0
        self.terminal = ""
        self.lost = False

    @property
    def was_seen(self) -> bool:
        """Whether the terminal has shown anything."""
        return self._writer is not None

    async def run(self) -> None:
        """Show the command until it is finished; a client that gives no terminal is shown it in another way."""
        with suppress(RpcError, ClientGoneError, OSError), tempfile.TemporaryDirectory(prefix="treadle-") as place:
            address = str(Path(place) / "s")  # OSError where that is longer than a socket's may be
            server = await asyncio.start_unix_server(self._welcome, address)
            try:
                command = [sys.executable, "-I", "-S", relay.__file__, address]
                async with asyncio.timeout(_PATIENCE):
                    self.terminal = await self._client.create_terminal(command, self._folder, _KEPT_BYTES)
                await self._shown()
            finally:
                server.close()
                if self._writer is not None:
                    self._writer.close()

    def show(self, text: str) -> None:
        """Show output."""
        data = printable(text).encode(errors="replace")
        if data:
            self._send(len(data).to_bytes(4, "big") + data)

    def finish(self, status: int) -> None:
        """The command has ended with this status."""
        if not self._finished.is_set():
            self._status = status
            self._send(bytes(4) + bytes([status & 0xFF]))
            self._finished.set()

    def _send(self, data: bytes) -> None:
        """Pass a piece on; of what waits for a terminal that shows nothing the end is kept."""
        if self._writer is None:
            self._pieces.append(data)
            self._kept += len(data)
            while self._kept > _KEPT_BYTES and len(self._pieces) > 1:
                self._kept -= len(self._pieces.popleft())
        elif not self._writer.is_closing() and (
            self._finished.is_set() or self._writer.transport.get_write_buffer_size() < _KEPT_BYTES
        ):
            self._writer.write(data)

    async def _welcome(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None:
            writer.close()
            return
        self._writer = writer
        self._came_up.set()
        writer.writelines(self._pieces)
        self._pieces.clear()

    async def _shown(self) -> None:
        """Show the command to its end in the terminal, and give it back then: the client keeps what it shows.

        A program that ends before it has shown anything, or is not there in time, shows nothing of it.
        """
        ends = asyncio.create_task(self._terminal_ends(self.terminal), name="acp terminal ends")
        try:
            await _first(self._came_up.wait(), ends)
            if self.was_seen:
                await self._finished.wait()
                await asyncio.wait({ends}, timeout=_PATIENCE)
            else:
                self.terminal, self.lost, lost = "", True, self.terminal
                await self._give_back(lost)
                return
        finally:
            ends.cancel()
        await self._give_back(self.terminal)

    async def _terminal_ends(self, terminal: str) -> None:
        """Wait until its program has ended; a client that cannot say that is waited for as long as usual."""
        try:
            await self._client.wait_for_terminal(terminal)
        except (RpcError, ClientGoneError):
            await asyncio.sleep(_PATIENCE)

    async def _give_back(self, terminal: str) -> None:
        async with asyncio.timeout(_PATIENCE):
            await self._client.release_terminal(terminal)


async def _first(wanted: Coroutine[Any, Any, Any], other: asyncio.Task[None]) -> None:
    """Wait until one of two has ended, as long as is usual at most."""
    waiting = asyncio.ensure_future(wanted)
    try:
        await asyncio.wait({waiting, other}, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
