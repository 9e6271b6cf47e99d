"""The page's server inside the test, at a real socket: asked byte by byte, or as a browser that was let in."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from treadle.app.hosting.http_serving import listen
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.page_keys import Entrance, Keys
from treadle.web.serving_page import serve_at

PATIENCE = 90.0


@dataclass(frozen=True)
class Answered:
    """What came back: the status, the headers in lower case, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Asked:
    """A server to ask."""

    port: int
    keys: Keys
    book: SessionBook
    cookie_name: str

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def enter(self, *, paired: bool = False) -> Entrance:
        """Let a browser in."""
        entrance = self.keys.let_in(self.keys.new_link(paired=paired))
        assert entrance is not None
        return entrance

    def headers(self, entrance: Entrance | None, **more: str) -> dict[str, str]:
        """The headers that the page sends; `more` are others, an empty one leaves a header out."""
        own = {"host": self.host, "origin": f"http://{self.host}", "content-type": "application/json"}
        own |= {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
        if entrance is not None:
            own |= {"cookie": f"{self.cookie_name}={entrance.cookie}", "x-treadle-key": entrance.key}
        own |= {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in own.items() if value}

    def path(self, path: str, entrance: Entrance | None = None) -> str:
        """Where the page has something; what needs nobody is outside of its own path, too."""
        outside = path in ("/login", "/healthz") or (entrance is None and path.startswith("/static"))
        return path if outside else self.keys.base + path

    async def ask(
        self, path: str, entrance: Entrance | None = None, *, method: str = "GET", body: Any = None, **more: str
    ) -> Answered:
        """Ask for a path; `body` is sent as JSON, or as it is."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {self.path(path, entrance)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers(entrance, **more).items()]
        if body is not None:
            lines.append(f"content-length: {len(content)}")
        return await self.raw("\r\n".join([*lines, "connection: close", "", ""]).encode() + content)

    async def raw(self, request: bytes) -> Answered:
        """Send bytes, and read what comes back until the connection ends."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")[:-2]
                headers = dict(line.lower().split(": ", 1) for line in lines)
                length = headers.get("content-length")
                if length is not None and not request.startswith(b"HEAD"):
                    body = await reader.readexactly(int(length))
                else:
                    body = b"" if request.startswith(b"HEAD") else await reader.read()
                return Answered(int(first.split()[1]), headers, body)
            finally:
                await _closed(writer)

    def client(self, entrance: Entrance) -> httpx2.AsyncClient:
        """A client that is let in."""
        base = f"http://{self.host}{self.keys.base}"
        return httpx2.AsyncClient(base_url=base, headers=self.headers(entrance), timeout=PATIENCE)


@asynccontextmanager
async def asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, clock: Callable[[], float] = time.monotonic, **flags: Any
) -> AsyncIterator[Asked]:
    """Serve with a home of its own; `flags` are settings as of the command line."""
    monkeypatch.setenv("TREADLE_HOME", str(home))
    folder = home.parent / "ws"
    folder.mkdir(exist_ok=True)
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    keys = Keys()
    async with SessionBook(folder, flags, trust=True) as book:
        name = f"treadle-{port}"
        application, streams = web_application(book, keys, [f"127.0.0.1:{port}"], cookie=name, clock=clock)
        serving = asyncio.create_task(serve_at([listening], application, streams))
        while not await _reached(port):
            await asyncio.sleep(0.01)
        try:
            yield Asked(port, keys, book, name)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def _reached(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    await _closed(writer)
    return True


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()  # what is collected open later fails some other test
