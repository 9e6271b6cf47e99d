"""The gateway that carries a browser's connections."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from treadle.workspace.network.checked_addresses import HostPort
from treadle.workspace.network.gateway import Gateway


@asynccontextmanager
async def gateway(**names: str) -> AsyncIterator[tuple[Gateway, int]]:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return [names[host.replace(".", "_")]]

    carrying = Gateway(resolver, closed=("quiet.test",))
    port = urlsplit(await carrying.start()).port or 0
    try:
        yield carrying, port
    finally:
        await carrying.close()


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that answers what it is sent, after a greeting."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello|" + await reader.read(1000))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def ask(port: int, request: str, *, more: bytes = b"") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = b""
    if more:
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.write(more)
    answer += await reader.read(-1)
    writer.close()
    return answer


async def test_a_request_goes_on_in_the_servers_own_form() -> None:
    async with echo() as server, gateway(a_test="127.0.0.1") as (carrying, port):
        carrying.allow(HostPort("a.test", server))
        head = f"GET http://a.test:{server}/x?y HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\n"
        assert await ask(port, head) == b"hello|GET /x?y HTTP/1.1\r\nHost: a.test\r\nconnection: close\r\n\r\n"


async def test_a_tunnel_carries_bytes_both_ways() -> None:
    async with echo() as server, gateway(a_test="127.0.0.1") as (carrying, port):
        carrying.allow(HostPort("a.test", server))
        answer = await ask(port, f"CONNECT a.test:{server} HTTP/1.1\r\n\r\n", more=b"\0bytes")
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nhello|\0bytes"


async def test_a_place_that_was_not_allowed_is_refused_and_told_once() -> None:
    async with echo() as server, gateway(a_test="127.0.0.1") as (carrying, port):
        carrying.allow(HostPort("a.test", server + 1))
        for _ in range(2):
            assert (await ask(port, f"CONNECT a.test:{server} HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
        (refusal,) = carrying.take_refusals()
        assert refusal.startswith("a.test is 127.0.0.1, an address of this machine or a private network")
        assert carrying.take_refusals() == ()


async def test_closed_hosts_and_nonsense_end_without_a_word() -> None:
    async with gateway() as (carrying, port):
        for request in ("CONNECT quiet.test:443 HTTP/1.1", "GET ftp://a.test/ HTTP/1.1", "nonsense", "GET / HTTP/1.1"):
            assert await ask(port, f"{request}\r\n\r\n") == b""
        assert carrying.take_refusals() == ()
