"""The network outside, for tests: a proxy of the person's through which every host is one small server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest


class Outside:
    """What was connected to, and what was asked there."""

    def __init__(self) -> None:
        self.connected: list[str] = []
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a CONNECT, and answer one request behind it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.connected.append(head.split()[1])
        if head.split()[1].startswith("missing."):
            writer.write(b"HTTP/1.1 502 No such host\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")[0])
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\nfrom it\n")
            except asyncio.IncompleteReadError:
                pass
        writer.close()


@asynccontextmanager
async def outside(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Outside]:
    """Serve it, and let the environment name it as the proxy."""
    found = Outside()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    try:
        yield found
    finally:
        server.close()
