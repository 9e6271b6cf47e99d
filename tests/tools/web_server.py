"""A web server on loopback whose answers a test writes, and a resolver that knows only what the test says."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Page:
    """One answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/html; charset=utf-8"})


def redirect(location: str) -> Page:
    return Page(status=302, headers={"location": location})


@dataclass
class WebServer:
    """Serves pages by their path and keeps the requests, each as its first line and headers."""

    port: int
    pages: dict[str, Page]
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            self.requests.append((first, headers))
            page = self.pages.get(first.split()[1].partition("?")[0], Page(status=404, body=b"<p>not here</p>"))
            fields = {"content-length": str(len(page.body)), "connection": "close", **page.headers}
            shown = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            writer.write(f"HTTP/1.1 {page.status} X\r\n{shown}\r\n".encode() + page.body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side had enough
        finally:
            writer.close()


@asynccontextmanager
async def serving(pages: dict[str, Page]) -> AsyncIterator[WebServer]:
    web = WebServer(port=0, pages=pages)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        await server.wait_closed()


class Names:
    """A resolver that knows these names and counts how often it was asked; addresses resolve to themselves."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known = {name.replace("_", "."): addresses for name, addresses in known.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host[0].isdigit() or ":" in host:
            return [host]
        if host not in self.known:
            raise OSError(-2, "Name or service not known")
        return self.known[host]
