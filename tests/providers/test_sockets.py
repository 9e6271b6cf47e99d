"""Connections straight on the event loop: the bytes, the ends, and what goes wrong, plain and encrypted."""

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from treadle.providers.sockets import LoopBackend, SocketStream

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BIG = bytes(range(256)) * 16_384
MOST = 65_536


@asynccontextmanager
async def served(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve connections on a port of this machine."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def silent_until(over: asyncio.Event) -> Serve:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    return serve


async def connected(port: int, certificate: Path | None = None) -> SocketStream:
    if certificate is not None:
        return await encrypted_to(port, ssl.create_default_context(cafile=certificate))
    return await LoopBackend().connect_tcp("127.0.0.1", port, timeout=90.0)


async def encrypted_to(port: int, trusted: ssl.SSLContext, name: str = "localhost") -> SocketStream:
    stream = await LoopBackend().connect_tcp("127.0.0.1", port, timeout=90.0)
    return await stream.start_tls(trusted, name, timeout=90.0)


async def everything(stream: SocketStream) -> bytes:
    return b"".join([data async for data in pieces(stream)])


async def pieces(stream: SocketStream) -> AsyncIterator[bytes]:
    while data := await stream.read(MOST, timeout=90.0):
        assert len(data) <= MOST
        yield data


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_bytes_go_both_ways_whole_however_slowly_they_are_read(
    encrypted: bool, own_certificate: tuple[Path, ssl.SSLContext]
) -> None:
    certificate, context = own_certificate
    heard = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(heard) < len(BIG):
            await asyncio.sleep(0.001)
            heard.extend(await reader.read(300_000))
        writer.write(BIG)
        await writer.drain()
        writer.close()

    async with served(serve, context if encrypted else None) as port:
        stream = await connected(port, certificate if encrypted else None)
        await stream.write(BIG, timeout=90.0)
        found = b""
        async for data in pieces(stream):
            found += data
            await asyncio.sleep(0.001)
        await stream.aclose()
    assert bytes(heard) == BIG
    assert found == BIG


async def test_what_nobody_reads_is_left_in_the_network() -> None:
    sent = 0

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _number in range(64):
            writer.write(BIG)
            await writer.drain()
            sent += len(BIG)
        writer.close()

    async with served(serve) as port:
        stream = await connected(port)
        before = -1
        while before != sent:  # until the server cannot go on
            before = sent
            await asyncio.sleep(0.3)
        assert sent < 32 * len(BIG)
        total = 0
        async for data in pieces(stream):
            total += len(data)
        assert total == 64 * len(BIG)
        await stream.aclose()


async def test_a_reset_is_an_error_after_what_came_before_it() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with served(serve) as port:
        stream = await connected(port)
        await stream.write(b"x")
        with pytest.raises(httpcore2.ReadError, match="reset"):
            await stream.read(MOST)
        with pytest.raises(httpcore2.WriteError, match="reset"):
            await stream.write(b"x")
        await stream.aclose()


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    closed = asyncio.Event()
    async with served(silent_until(closed)) as port:
        stream = await connected(port)
        assert not stream.get_extra_info("is_readable")
        closed.set()
        while not stream.get_extra_info("is_readable"):
            await asyncio.sleep(0.01)
        assert await stream.read(MOST) == b""
        await stream.aclose()


async def test_what_came_while_the_loop_was_busy_counts_as_well() -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    stream = await connected(taken.getsockname()[1])
    server, _ = taken.accept()
    assert not stream.get_extra_info("is_readable")
    server.close()  # nothing of it has reached the loop
    assert stream.get_extra_info("is_readable")
    await stream.aclose()
    taken.close()


async def flood(stream: SocketStream) -> None:
    while True:
        await stream.write(BIG, timeout=0.01)


async def test_waiting_ends_where_it_is_bounded() -> None:
    over = asyncio.Event()
    async with served(silent_until(over)) as port:
        stream = await connected(port)
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(MOST, timeout=0.01)
        with pytest.raises(httpcore2.WriteTimeout):
            await flood(stream)
        with pytest.raises(httpcore2.ConnectTimeout):
            await stream.start_tls(ssl.create_default_context(), "localhost", timeout=0.01)
        over.set()


async def test_a_cancelled_read_loses_nothing() -> None:
    more = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await more.wait()
        writer.write(b"here")
        writer.close()

    async with served(serve) as port:
        stream = await connected(port)
        reading = asyncio.ensure_future(stream.read(MOST))
        await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        more.set()
        assert await everything(stream) == b"here"
        await stream.aclose()


def resolves_to(addresses: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every name have these addresses, without a thread that looks them up."""

    async def found(_: str, port: int, **__: Any) -> list[Any]:
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [
            (family, socket.SOCK_STREAM, 6, "", (one, port)) for family, one in zip(families, addresses, strict=True)
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.1", "127.0.0.1"], ["127.0.0.9", "127.0.0.1"]])
async def test_a_cancelled_connection_is_closed_however_far_it_was(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = asyncio.Event()
    resolves_to(addresses, monkeypatch)
    async with served(silent_until(over)) as port:
        for turns in range(24):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                connecting = asyncio.ensure_future(LoopBackend().connect_tcp("some.host", port, timeout=90.0))
                for _ in range(turns):
                    await asyncio.sleep(0)
                connecting.cancel()
                with suppress(asyncio.CancelledError):
                    await (await connecting).aclose()
                for _ in range(4):
                    await asyncio.sleep(0)
                del connecting
                gc.collect()
            assert [str(one.message) for one in said if one.category is ResourceWarning] == [], turns
        over.set()


async def test_the_next_address_is_tried_where_one_refuses_or_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as held:
        port = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        silent = held.enter_context(socket.create_server(("127.0.0.7", port), backlog=0))
        for _ in range(2):  # what is asked of it now is not answered
            full = held.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(silent.getsockname())
        for places in (["127.0.0.9", "127.0.0.1"], ["127.0.0.7", "127.0.0.1"], ["::1", "127.0.0.9", "127.0.0.1"]):
            resolves_to(places, monkeypatch)
            stream = await LoopBackend().connect_tcp("some.host", port, timeout=90.0)
            assert stream.get_extra_info("server_addr") == ("127.0.0.1", port)
            await stream.aclose()
        resolves_to(["127.0.0.8", "127.0.0.9"], monkeypatch)
        with pytest.raises(httpcore2.ConnectError, match=r"127\.0\.0\.9"):
            await LoopBackend().connect_tcp("some.host", port, timeout=90.0)


async def test_nobody_there_and_a_certificate_of_somebody_else_are_named(
    own_certificate: tuple[Path, ssl.SSLContext],
) -> None:
    certificate, context = own_certificate
    with pytest.raises(httpcore2.ConnectError, match=r"127\.0\.0\.1"):
        await connected(9)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with served(serve, context) as port:
        with pytest.raises(httpcore2.ConnectError, match="certificate verify failed"):
            await encrypted_to(port, ssl.create_default_context())
        with pytest.raises(httpcore2.ConnectError, match="mismatch"):
            await encrypted_to(port, ssl.create_default_context(cafile=certificate), "example.org")
    async with served(serve) as port:
        with pytest.raises(httpcore2.ConnectError):
            await connected(port, certificate)


class FakeTransport(asyncio.Transport):
    """A network that says whether it is read from."""

    reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        pass


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock of the loop that stands still but for the test."""
    now = [1_000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    return now


def streaming(network: FakeTransport) -> SocketStream:
    stream = SocketStream()
    stream.connection_made(network)
    return stream


async def rested(network: FakeTransport, clock: list[float]) -> None:
    clock[0] += 0.04
    while not network.reads:
        await asyncio.sleep(0)


async def test_small_pieces_of_a_fast_reply_are_taken_together_after_the_first_ones(clock: list[float]) -> None:
    network = FakeTransport()
    stream = streaming(network)
    for _ in range(8):
        stream.data_received(b"x")
        assert network.reads
    for _ in range(3):
        stream.data_received(b"x")
        assert not network.reads
        await rested(network, clock)
    assert await stream.read(MOST) == b"x" * 11
    await stream.write(b"?")
    stream.data_received(b"the answer to that")
    assert network.reads


@pytest.mark.parametrize(("pause", "size"), [(0.07, 1), (0.0, 4_096)], ids=["slow", "large"])
async def test_slow_and_large_pieces_are_each_taken_at_once(pause: float, size: int, clock: list[float]) -> None:
    network = FakeTransport()
    stream = streaming(network)
    for _ in range(20):
        stream.data_received(b"x" * size)
        clock[0] += pause
    assert network.reads


async def test_what_nobody_reads_stays_in_the_network_after_a_rest(clock: list[float]) -> None:
    network = FakeTransport()
    stream = streaming(network)
    for _ in range(9):
        stream.data_received(b"x")
    assert not network.reads
    stream.data_received(BIG)  # it was on its way
    await asyncio.sleep(0)
    clock[0] += 0.04
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not network.reads
    await stream.read(len(BIG))
    assert network.reads


async def test_a_connection_that_ends_while_it_rests_ends_for_who_reads(clock: list[float]) -> None:
    stream = streaming(FakeTransport())
    for _ in range(9):
        stream.data_received(b"x")
    stream.connection_lost(None)
    assert [await stream.read(MOST), await stream.read(MOST)] == [b"x" * 9, b""]
    clock[0] += 1
    await asyncio.sleep(0)
