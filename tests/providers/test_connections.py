"""Which connections serve an address, and how a packed body is unpacked by those of the lower library."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.providers.endpoint import Endpoint
from treadle.providers.http_connections import ConnectionFailedError, Connections, Trouble, is_plain_url, nothing
from treadle.providers.http_provider import open_connections
from treadle.providers.library_connections import LibraryConnections
from treadle.providers.plain_connections import PlainConnections

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://api.example.com", True),
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("https://example.com/model/a%3Ab/converse-stream?alt=sse", True),
        ("https://user:word@example.com/v1", False),
        ("https://example.com:99999/v1", False),
        ("https://example.com:/v1", False),
        ("https://münchen.example/v1", False),
        ("https://example.com/a b", False),
        ("https://example.com/a/../v1", False),
        ("https://example.com/v1#part", False),
        ("HTTPS://example.com/v1", False),
        ("ftp://example.com/v1", False),
        ("https:///v1", False),
        ("example.com", False),
        ("http://[::1", False),
    ],
)
def test_an_address_is_plain_where_every_library_reads_it_the_same(url: str, plain: bool) -> None:
    assert is_plain_url(url) is plain


@given(st.text())
def test_whatever_is_given_as_an_address_is_judged(url: str) -> None:
    assert is_plain_url(url) in (True, False)
    assert is_plain_url(f"https://{url}") in (True, False)


def endpoint(base_url: str = "https://example.com/v1", proxy: str = "") -> Endpoint:
    return Endpoint(name="x", base_url=base_url, proxy=proxy)


async def test_a_proxy_and_an_unusual_address_go_through_the_http_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_connections(endpoint(), None, here=False), PlainConnections)
    behind = [endpoint(proxy="http://127.0.0.1:9"), endpoint("https://user:word@example.com/v1")]
    assert all(isinstance(open_connections(one, None, here=False), LibraryConnections) for one in behind)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert isinstance(open_connections(endpoint(), None, here=False), LibraryConnections)
    assert isinstance(open_connections(endpoint(), None, here=True), PlainConnections)


@asynccontextmanager
async def answering(body: bytes, encoding: str) -> AsyncIterator[str]:
    """Serve one body, in small pieces, to every request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nX-Twice: a\r\nx-twice: b\r\nContent-Encoding: {encoding}\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode())
        for start in range(0, len(body), 7):
            writer.write(body[start : start + 7])
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def body_of(connections: Connections, url: str, sent: Callable[[], None] = nothing) -> tuple[int, str, bytes]:
    response = await connections.post(url, {"x-one": "1"}, b"{}", sent)
    try:
        return response.status, response.headers["x-twice"], b"".join([chunk async for chunk in response.chunks()])
    finally:
        await response.close()
        await connections.close()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("kind", [PlainConnections, LibraryConnections])
@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("identity", b"x" * 100),
        ("gzip", gzip.compress(b"x" * 100)),
        ("deflate", zlib.compress(b"x" * 100)),
        ("deflate", raw_deflate(b"x" * 100)),
    ],
    ids=["plain", "gzip", "zlib", "deflate"],
)
async def test_both_kinds_of_connections_unpack_a_body_alike(kind: type, encoding: str, packed: bytes) -> None:
    async with answering(packed, encoding) as url:
        assert await body_of(connections_of(kind, url), url) == (200, "a, b", b"x" * 100)


@pytest.mark.parametrize("kind", [PlainConnections, LibraryConnections])
async def test_both_kinds_of_connections_say_that_a_packed_body_is_damaged(kind: type) -> None:
    async with answering(b"this is not packed at all, it is text", "gzip") as url:
        with pytest.raises(ConnectionFailedError) as raised:
            await body_of(connections_of(kind, url), url)
    assert raised.value.trouble is Trouble.COMPRESSION


@pytest.mark.parametrize("kind", [PlainConnections, LibraryConnections])
async def test_both_kinds_of_connections_say_that_nobody_answers(kind: type) -> None:
    url = "http://127.0.0.1:9/v1"
    with pytest.raises(ConnectionFailedError) as raised:
        await body_of(connections_of(kind, url), url)
    assert raised.value.trouble is Trouble.UNREACHED


@pytest.mark.parametrize("kind", [PlainConnections, LibraryConnections])
async def test_both_kinds_of_connections_say_once_when_a_request_has_left(kind: type) -> None:
    said: list[str] = []
    async with answering(b"x", "identity") as url:
        await body_of(connections_of(kind, url), url, lambda: said.append("sent"))
        assert said == ["sent"]


def connections_of(kind: type, url: str) -> Connections:
    if kind is PlainConnections:
        return PlainConnections(None, connect_seconds=5.0)
    return LibraryConnections(endpoint(url), None, here=True)
