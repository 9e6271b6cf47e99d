"""One port for TLS and HTTP: the first byte of each connection tells, and who says nothing keeps nobody out."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn import Config

from treadle.app.hosting import http_serving
from treadle.app.hosting.certificate import page_certificate
from treadle.app.hosting.http_serving import listen
from treadle.protocol.errors import ConfigError
from treadle.web.listening import PageServer

MOST_WAITING = 300
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


async def _scheme(request: Request) -> Response:
    return PlainTextResponse(request.url.scheme)


@pytest.mark.parametrize(
    ("host", "port", "fix"),
    [
        ("127.0.0.1", 99_999, "Choose another port"),
        ("127.0.0.1", -1, "Choose another port"),
        ("127.0.0.1", None, "Choose another port"),
        ("192.0.2.1", 0, "Use --host with an address that this computer has"),
        ("nowhere.invalid", 0, "Use --host with an address that this computer has"),
        ("2001:db8::1", 0, "Use --host with an address that this computer has"),
    ],
)
def test_who_cannot_listen_is_told_whether_the_port_or_the_address_is_wrong(
    host: str, port: int | None, fix: str
) -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(ConfigError) as found:
        listen(host, taken.getsockname()[1] if port is None else port)
    assert found.value.code == "port-unusable"
    assert found.value.fix.startswith(fix)
    assert "Errno" not in found.value.why


@asynccontextmanager
async def served(*, with_tls: bool) -> AsyncIterator[int]:
    """Serve the scheme that a request came by; gives the port."""
    listening = listen("127.0.0.1", 0)
    context = page_certificate(["127.0.0.1"]).context() if with_tls else None
    server = PageServer(Config(Starlette(routes=[Route("/", _scheme)]), log_config=None, lifespan="off"), context)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve([listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.end()
            await serving
            listening.close()


async def test_a_reply_has_the_date_on_which_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    dates = iter(("Sat, 28 Nov 2026 10:00:00 GMT", "Sun, 29 Nov 2026 10:00:00 GMT"))
    monkeypatch.setattr(http_serving, "formatdate", lambda **_: next(dates))
    async with served(with_tls=False) as port:
        for day in ("Sat, 28", "Sun, 29"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            head = (await reader.read()).decode()
            writer.close()
            assert re.findall(r"(?im)^date: (.*)\r$", head) == [f"{day} Nov 2026 10:00:00 GMT"]


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Ask on an open connection; gives the body of the answer."""
    writer.write(REQUEST)
    answer = await reader.read()
    writer.close()
    return answer.decode().rpartition("\r\n\r\n")[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))


async def test_one_port_speaks_what_each_connection_speaks() -> None:
    async with served(with_tls=True) as port:
        plain = await asked(*await asyncio.open_connection("127.0.0.1", port))
        private = await asked(*await asyncio.open_connection("127.0.0.1", port, ssl=_trusting()))
        assert (plain, private) == ("http", "https")


async def test_without_a_certificate_nothing_but_http_is_spoken() -> None:
    async with served(with_tls=False) as port:
        assert await asked(*await asyncio.open_connection("127.0.0.1", port)) == "http"
        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=_trusting())


async def test_who_goes_without_a_word_or_speaks_no_tls_leaves_the_port_to_the_others() -> None:
    async with served(with_tls=True) as port:
        _, gone = await asyncio.open_connection("127.0.0.1", port)
        gone.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16no handshake\r\n\r\n")
        assert not (await reader.read()).startswith(b"HTTP")
        writer.close()
        assert await asked(*await asyncio.open_connection("127.0.0.1", port, ssl=_trusting())) == "https"


async def test_of_those_that_say_nothing_the_oldest_ends_for_a_new_one() -> None:
    async with AsyncExitStack() as stack, served(with_tls=True) as port:
        waiting = []
        for _ in range(MOST_WAITING + 1):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            waiting.append((reader, writer))
        assert await waiting[0][0].read() == b""
        assert await asked(*waiting[1]) == "http"
        assert await asked(*waiting[-1]) == "http"
        assert not any(reader.at_eof() for reader, _ in waiting[2:-1])
