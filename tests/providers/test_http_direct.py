"""The HTTP client of model calls, against servers that answer byte by byte as they are told."""

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import zlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.support import collect, failure_of, fixed_server, provider_at, raw_server, request, response

from treadle.protocol.models import ErrorKind, StreamStop
from treadle.providers.certificates import certificates_of, system_certificates
from treadle.providers.http_client import (
    AddressError,
    CompressionError,
    ConnectTimeoutError,
    HeaderError,
    HttpError,
    HttpResponse,
    IdleTimeoutError,
)
from treadle.providers.http_direct import DirectClient, target_of
from treadle.providers.unpacking import Unpacking

EVENTS = {"Content-Type": "text/event-stream"}
REPLY = b'data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Asked:
    """What a server was asked, and by how many connections."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0


@asynccontextmanager
async def server(answers: Sequence[bytes]) -> AsyncGenerator[tuple[str, Asked], None]:
    """A server that gives one answer after the other on each connection, and then closes it; gives its URL."""
    asked = Asked()
    ended: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.connections += 1
        ended.extend(filter(None, [asyncio.current_task()]))
        try:
            for answer in answers:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split()[0])
                asked.requests.append(head + await reader.readexactly(size))
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", asked
    await asyncio.gather(*ended)


def client(*, idle: float = 5.0) -> DirectClient:
    return DirectClient(None, connect=5.0, idle=idle)


async def body_of(answer: HttpResponse) -> bytes:
    try:
        async with aclosing(answer.aiter_bytes()) as pieces:
            return b"".join([piece async for piece in pieces])
    finally:
        await answer.aclose()


def sized(body: bytes, *more: str) -> bytes:
    lines = ("HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *more, "", "")
    return "\r\n".join(lines).encode() + body


async def test_a_request_arrives_whole_and_its_answer_is_read() -> None:
    async with server([sized(b"fine", "X-A: 1", "x-a: 2")]) as (url, asked):
        direct = client()
        answer = await direct.post(f"{url}/v1/a b?q=\u00e4", {"accept": "*/*"}, b"{}")
        assert (answer.status_code, answer.headers["x-a"]) == (200, "1, 2")
        assert await body_of(answer) == b"fine"
        await direct.aclose()
    head, _, body = asked.requests[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /v1/a%20b?q=%C3%A4 HTTP/1.1"
    assert lines[1].lower() == b"host: " + url.removeprefix("http://").encode()
    assert (b"accept: */*" in lines, body) == (True, b"{}")


async def test_a_connection_is_used_again_after_a_body_that_was_read() -> None:
    async with server([sized(b"one"), sized(b"two")]) as (url, asked):
        direct = client()
        assert [await body_of(await direct.post(url, {}, b"")) for _ in range(2)] == [b"one", b"two"]
        await direct.aclose()
        assert asked.connections == 1


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(sized(b"one", "Connection: close"), id="closed-as-said"),
        pytest.param(sized(b"one") + b"HTTP/1.1 200 OK\r\n\r\nforged", id="something-unasked-follows"),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\none", id="old"),
    ],
)
async def test_a_connection_that_may_not_be_used_again_is_not(first: bytes) -> None:
    answers = [first] if first.startswith(b"HTTP/1.0") else [first, sized(b"never")]
    async with server(answers) as (url, asked):
        direct = client()
        for _ in range(2):
            assert await body_of(await direct.post(url, {}, b"")) == b"one"
        await direct.aclose()
        assert asked.connections == 2


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    async with server([sized(b"one")]) as (url, asked):
        direct = client()
        for _ in range(3):
            assert await body_of(await direct.post(url, {}, b"")) == b"one"
            await asyncio.sleep(0.01)
        await direct.aclose()
        assert asked.connections == 3


async def test_an_answer_that_is_left_unread_costs_its_connection() -> None:
    async with server([sized(b"one"), sized(b"two")]) as (url, asked):
        direct = client()
        await (await direct.post(url, {}, b"")).aclose()
        assert await body_of(await direct.post(url, {}, b"")) == b"one"
        await direct.aclose()
        assert asked.connections == 2


async def test_two_requests_at_a_time_have_a_connection_each() -> None:
    async with server([sized(b"one")]) as (url, asked):
        direct = client()
        answers = await asyncio.gather(*(direct.post(url, {}, b"") for _ in range(2)))
        assert [await body_of(answer) for answer in answers] == [b"one", b"one"]
        await direct.aclose()
        assert asked.connections == 2


async def test_an_answer_is_given_back_to_a_client_that_is_closed_already() -> None:
    async with server([sized(b"one"), sized(b"two")]) as (url, _):
        direct = client()
        answer = await direct.post(url, {}, b"")
        await direct.aclose()
        assert await body_of(answer) == b"one"


async def test_interim_answers_are_passed_over() -> None:
    async with server([b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + sized(b"fine")]) as (url, _):
        direct = client()
        assert await body_of(await direct.post(url, {}, b"")) == b"fine"
        await direct.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\n",
    ],
)
async def test_what_is_no_whole_answer_is_an_error(answer: bytes) -> None:
    async with server([answer]) as (url, _):
        direct = client()
        with pytest.raises((HttpError, OSError)):
            await body_of(await direct.post(url, {}, b""))
        await direct.aclose()


async def test_a_server_that_says_nothing_more_is_an_idle_timeout() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await reader.read()

    async with raw_server(answer) as url:
        direct = client(idle=0.05)
        with pytest.raises(IdleTimeoutError):
            await body_of(await direct.post(url, {}, b""))
        await direct.aclose()


async def test_no_connection_in_time_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        direct = DirectClient(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), connect=0.05, idle=5.0)
        with pytest.raises(ConnectTimeoutError):
            await direct.post(f"https://127.0.0.1:{port}", {}, b"")


@pytest.mark.parametrize("header", ["a\r\nb: c", "\x00", "x\n"])
async def test_a_header_that_would_become_two_is_not_sent(header: str) -> None:
    async with server([sized(b"")]) as (url, asked):
        direct = client()
        with pytest.raises(HeaderError):
            await direct.post(url, {"x": header}, b"")
        await direct.aclose()
        assert asked.connections == 0


async def test_https_is_never_spoken_in_the_clear() -> None:
    async with server([sized(b"")]) as (url, asked):
        with pytest.raises(AddressError):
            await client().post(url.replace("http:", "https:"), {}, b"")
        assert asked.connections == 0


async def test_a_reader_who_waits_holds_the_server_back() -> None:
    written = 0

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while written < 64:
            writer.write(b"x" * (1 << 20))
            await writer.drain()
            written += 1

    async with raw_server(answer) as url:
        direct = client()
        answered = await direct.post(url, {}, b"")
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.05)
        assert written < 64
        assert len(await body_of(answered)) == 64 << 20
        await direct.aclose()


@pytest.mark.parametrize(
    ("url", "host", "port", "name"),
    [
        ("http://Example.org/v1", "example.org", 80, "example.org"),
        ("https://example.org:443", "example.org", 443, "example.org"),
        ("https://example.org:8443", "example.org", 8443, "example.org:8443"),
        ("http://[::1]:8000/", "::1", 8000, "[::1]:8000"),
        ("http://m\u00fcnchen.example", "xn--mnchen-3ya.example", 80, "xn--mnchen-3ya.example"),
    ],
)
def test_a_url_leads_to_a_host_and_a_port(url: str, host: str, port: int, name: str) -> None:
    target = target_of(url)
    assert (target.host, target.port, target.name) == (host, port, name)


@pytest.mark.parametrize("url", ["", "x", "ftp://h", "http://", "http://h:x", "http://h:99999", "http://[::1"])
def test_a_url_that_leads_nowhere_is_said(url: str) -> None:
    with pytest.raises(AddressError):
        target_of(url)


def test_the_name_and_password_of_a_url_become_a_header() -> None:
    assert target_of("http://me:p%40ss@h/").authorization == "Basic bWU6cEBzcw=="
    assert target_of("http://h/").authorization == ""


@given(st.text(), st.text())
def test_a_path_never_holds_what_would_end_the_line(path: str, query: str) -> None:
    try:
        target = target_of(f"http://h/{path}?{query}")
    except AddressError:
        return
    assert target.path.isascii()
    assert target.path.isprintable()
    assert " " not in target.path


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate ": raw_deflate,
    "": bytes,
    "br": bytes,
}


@given(st.sampled_from(sorted(PACKED)), st.binary(max_size=300_000), st.integers(1, 5_000))
@settings(max_examples=50)
def test_a_packed_body_is_unpacked_however_it_is_split(encoding: str, data: bytes, size: int) -> None:
    packed, unpacking = PACKED[encoding](data), Unpacking(encoding)
    pieces = [part for at in range(0, len(packed), size) for part in unpacking.feed(packed[at : at + size])]
    assert b"".join(pieces) == data
    assert all(0 < len(piece) <= 1 << 16 for piece in pieces)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_that_is_none_is_an_error(encoding: str) -> None:
    with pytest.raises(CompressionError):
        list(Unpacking(encoding).feed(b"\xff\xff\xff\xff plain text"))


async def test_a_reply_that_was_packed_without_being_asked_is_read() -> None:
    headers = {**EVENTS, "Content-Encoding": "gzip"}
    async with fixed_server("200 OK", headers, gzip.compress(REPLY)) as url:
        events = await collect(provider_at("chat", url), request())
    assert isinstance(events[-1], StreamStop)
    async with fixed_server("200 OK", headers, REPLY) as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert (failed.error.kind, "compression" in failed.error.message) == (ErrorKind.MALFORMED_STREAM, True)


@pytest.mark.parametrize("by_environment", [True, False])
async def test_a_proxy_is_asked_in_the_servers_place(by_environment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    async with server([response("200 OK", EVENTS, REPLY)]) as (url, asked):
        if by_environment:
            monkeypatch.setenv("HTTP_PROXY", url)
        provider = provider_at("chat", "http://models.invalid", proxy="" if by_environment else url)
        events = await collect(provider, request())
    assert isinstance(events[-1], StreamStop)
    assert asked.requests[0].startswith(b"POST http://models.invalid/v1/chat/completions HTTP/1.1\r\n")


async def test_what_fails_behind_a_proxy_is_typed_too() -> None:
    async with server([b"SSH-2.0-OpenSSH_9.6\r\n"]) as (url, _):
        failed = await failure_of(provider_at("chat", "http://models.invalid", proxy=url), request())
    assert failed.error.kind is ErrorKind.NETWORK
    async with server([response("200 OK", {**EVENTS, "Content-Length": "999"}, REPLY[:20])]) as (url, _):
        failed = await failure_of(provider_at("chat", "http://models.invalid", proxy=url), request())
    assert failed.error.kind is ErrorKind.NETWORK


def test_the_systems_certificates_are_loaded_once() -> None:
    first = system_certificates()
    assert first is system_certificates()
    context = first.result()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_file_of_certificates_counts_for_all_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    file = tmp_path / "ca.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Own"]
    subprocess.run([*command, "-keyout", str(tmp_path / "key.pem"), "-out", str(file)], check=True, capture_output=True)
    assert len(certificates_of(str(file)).get_ca_certs()) == 1
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    system_certificates.cache_clear()
    try:
        assert len(system_certificates().result().get_ca_certs()) == 1
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
        system_certificates.cache_clear()
        with pytest.raises(OSError, match="No such file"):
            system_certificates().result()
    finally:
        system_certificates.cache_clear()
