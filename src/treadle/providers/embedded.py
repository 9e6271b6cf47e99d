"""A model on this machine without a server of the user's: llama.cpp in a child process of our own."""

import asyncio
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path

from treadle.protocol.models import ErrorKind, ModelRequest, StreamEvent, StreamFailure
from treadle.providers.embedded_api import EmbeddedApi
from treadle.providers.endpoint import Endpoint, StreamLimits
from treadle.providers.failures import failure
from treadle.providers.http_provider import HttpProvider
from treadle.providers.wire import CallFailedError
from treadle.workspace.commands.installed_programs import kill_program

NAME = "local"
LOAD_SECONDS = 300.0
_PATIENT = StreamLimits(first_byte=3600.0, idle=3600.0, progress=7_200.0, reply=43_200.0)
"""Reading a long prompt without a graphics card takes minutes; the person can interrupt at any time."""

_NOWHERE = Endpoint(name=NAME, base_url="http://127.0.0.1", limits=_PATIENT)


class EmbeddedProvider:
    """The `Provider` port for a GGUF file. The child starts with the first call and ends with `close`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._child: Process | None = None
        self._inner: HttpProvider | None = None
        self._starting = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model; see the port."""
        try:
            provider = await self._provider()
        except CallFailedError as failed:
            yield StreamFailure(error=failed.error)
            return
        async with aclosing(provider.stream(request)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()
        if child is not None:
            await _end(child)

    async def _provider(self) -> HttpProvider:
        async with self._starting:
            if self._inner is None or self._child is None or self._child.returncode is not None:
                await self.close()
                self._inner = await self._start()
            return self._inner

    async def _start(self) -> HttpProvider:
        """Start the child and wait until the model is loaded; raises `CallFailedError`."""
        key = secrets.token_hex(16)
        threads = max(1, (os.cpu_count() or 2) // 2)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-m",
            "treadle.providers.embedded_server",
            str(self._file),
            str(threads),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
        address = b""
        try:
            address = await _address(child, key)
        finally:
            if not address:
                await _end(child)
        if not address:
            why = f"{self._file} could not be loaded"
            raise CallFailedError(failure(_NOWHERE, ErrorKind.BAD_REQUEST, why))
        self._child = child
        place = Endpoint(name=NAME, base_url=f"{address.decode().strip()}/v1", api_key=key, limits=_PATIENT)
        return HttpProvider(place, EmbeddedApi(place))


async def _address(child: Process, key: str) -> bytes:
    """Give the child its key and wait for its address; empty where it ended, or took too long."""
    if child.stdin is None or child.stdout is None:
        return b""
    child.stdin.write(f"{key}\n".encode())
    with suppress(TimeoutError):
        async with asyncio.timeout(LOAD_SECONDS):
            async for line in child.stdout:
                if line.startswith(b"http://"):
                    return line
    return b""


async def _end(child: Process) -> None:
    kill_program(child)
    await child.wait()
