"""What goes wrong below the wire API: time limits, redirects, web pages, sizes, certificates, headers."""

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.black_hole import black_hole
from tests.providers.support import KEY, collect, failure_of, fixed_server, provider_at, raw_server, request, response

from treadle.protocol.models import ErrorKind, ModelError, StreamFailure, StreamStop, StreamText
from treadle.protocol.usage import Usage
from treadle.providers.certificates import system_certificates
from treadle.providers.endpoint import StreamLimits
from treadle.providers.http_failures import FEW_RETRIES
from treadle.providers.local_advice import start_advice

EVENTS = {"Content-Type": "text/event-stream"}
HELLO = b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


async def test_a_web_page_is_named_as_such_and_not_retried() -> None:
    page = b"<!DOCTYPE html><html><body>Sign in to the Wi-Fi</body></html>"
    async with fixed_server("200 OK", {"Content-Type": "text/html"}, page) as url:
        failed = await failure_of(provider_at("chat", url), request())
    why = f"the server answered HTML, not the API; check the base URL ({url}/v1)."
    assert failed.error == ModelError(
        kind=ErrorKind.BAD_REQUEST, message=f"chat refused the request: {why}", status=200
    )
    assert not failed.error.retryable


async def test_a_web_page_that_claims_to_be_a_stream_is_found_out() -> None:
    async with fixed_server("200 OK", EVENTS, b"<html><body>Hello</body></html>") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert "answered HTML" in failed.error.message


@pytest.mark.parametrize(("status", "kind"), [("404 Not Found", "bad_request"), ("502 Bad Gateway", "server")])
async def test_an_error_page_of_a_gateway_keeps_the_class_of_its_status(status: str, kind: str) -> None:
    async with fixed_server(status, {"Content-Type": "text/html"}, b"<html>nginx</html>") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert failed.error.kind == kind
    assert "nginx" not in failed.error.message


async def test_a_body_of_another_type_is_refused_with_the_type() -> None:
    async with fixed_server("200 OK", {"Content-Type": "application/pdf"}, b"%PDF") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert "application/pdf, not an event stream" in failed.error.message


@pytest.mark.parametrize("status", ["200 OK", "202 Accepted", "204 No Content"])
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/plain", ""])
async def test_an_answer_without_a_body_is_no_refusal_and_is_tried_again(status: str, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    async with fixed_server(status, headers, b"") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert (failed.error.kind, failed.error.retryable) == (ErrorKind.MALFORMED_STREAM, True)
    assert "not an event stream" not in failed.error.message


async def test_a_stream_with_another_status_is_refused_with_the_status() -> None:
    async with fixed_server("201 Created", EVENTS, b"data: {}\n\n") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert failed.error.kind is ErrorKind.BAD_REQUEST
    assert "answered HTTP status 201, not an event stream" in failed.error.message


async def test_an_error_with_status_200_is_an_error() -> None:
    body = b'{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}'
    async with fixed_server("200 OK", {"Content-Type": "application/json"}, body) as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert failed.error.kind is ErrorKind.RATE_LIMIT


async def test_a_redirect_is_not_followed_but_named_without_its_query() -> None:
    headers = {"Location": f"https://evil.example/v1?key={KEY}", "Content-Length": "0"}
    async with fixed_server("307 Temporary Redirect", headers, b"") as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert (failed.error.kind, failed.error.status) == (ErrorKind.BAD_REQUEST, 307)
    assert "https://evil.example/v1," in failed.error.message


PROXIES: tuple[dict[str, str], ...] = ({}, {"HTTP_PROXY": "", "NO_PROXY": "*"})
"""Without proxies in the environment plain connections serve, with any those of the HTTP library."""


@pytest.mark.parametrize("environment", PROXIES, ids=["plain", "library"])
async def test_where_nothing_listens_the_address_is_named_and_few_retries_are_of_use(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, environment)
    async with fixed_server("200 OK", EVENTS, b"") as url:
        pass
    error = (await failure_of(provider_at("anthropic", f"{url}/v1?key={KEY}"), request())).error
    assert (error.kind, error.retries) == (ErrorKind.NETWORK, FEW_RETRIES)
    assert f"nothing listens at {url}/v1." in error.message
    assert error.fix.startswith("Start the server. If the address is wrong, correct it with --base-url URL")
    assert KEY not in error.message + error.fix


@pytest.mark.parametrize("environment", PROXIES, ids=["plain", "library"])
async def test_a_host_that_there_is_not_is_named(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, environment)
    error = (await failure_of(provider_at("anthropic", "http://nowhere.invalid/v1"), request())).error
    assert (error.kind, error.retries) == (ErrorKind.NETWORK, FEW_RETRIES)
    assert "the host of http://nowhere.invalid/v1 (port 80) was not found" in error.message
    assert "Check whether this machine is online" in error.fix


@pytest.mark.parametrize("environment", PROXIES, ids=["plain", "library"])
async def test_a_server_without_tls_is_said_at_once(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, environment)
    async with plain_server() as url:
        secure = url.replace("http://", "https://")
        error = (await failure_of(provider_at("anthropic", secure), request())).error
    assert error.kind is ErrorKind.BAD_REQUEST
    assert f"{secure} does not answer in TLS" in error.message
    assert "write its address with http://" in error.fix


@pytest.mark.parametrize("status", ["404 Not Found", "405 No", "410 Gone", "501 No"])
async def test_a_page_in_place_of_the_api_names_the_address_and_is_not_asked_again(status: str) -> None:
    async with fixed_server(status, {"Content-Type": "text/html"}, b"<html>nginx</html>") as url:
        error = (await failure_of(provider_at("chat", url), request())).error
    assert (error.kind, error.retryable) == (ErrorKind.BAD_REQUEST, False)
    assert f"check the base URL ({url}/v1)" in error.message


@pytest.mark.parametrize("environment", PROXIES, ids=["plain", "library"])
async def test_a_port_that_takes_nothing_is_named_once(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, environment)
    with black_hole() as port:
        provider = provider_at("anthropic", f"http://127.0.0.1:{port}", limits=StreamLimits(connect=0.05))
        error = (await failure_of(provider, request())).error
    assert (error.kind, error.retries) == (ErrorKind.TIMEOUT, 0)
    assert f"no connection to http://127.0.0.1:{port}" in error.message
    assert "within 0.05 s (connect_timeout)" in error.message


@pytest.mark.parametrize("named", ["setting", "environment"])
async def test_a_proxy_that_refuses_is_named_and_nothing_counts_as_sent(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, {})
    async with plain_server(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as proxy:
        if named == "environment":
            monkeypatch.setenv("HTTPS_PROXY", proxy)
        provider = provider_at("anthropic", "https://api.test", proxy=proxy if named == "setting" else "")
        events = [event async for event in provider.stream(request())]
        await provider.close()
    (failed,) = events  # no usage before it: nothing may be billed
    assert isinstance(failed, StreamFailure)
    assert (failed.error.kind, failed.error.retries) == (ErrorKind.NETWORK, FEW_RETRIES)
    assert f"the proxy {proxy} gave no connection to https://api.test" in failed.error.message
    assert "(403 Forbidden)" in failed.error.message
    assert failed.error.fix.startswith("Check the proxy: HTTPS_PROXY in the environment")


@pytest.mark.parametrize("said", [b"", b"\x05\x00garbage\r\n\r\n", None], ids=["closes", "garbage", "silent"])
async def test_a_proxy_that_does_not_answer_is_named_and_nothing_counts_as_sent(
    said: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, {})
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(silent_server() if said is None else plain_server(said))
        limits = StreamLimits(connect=0.2, first_byte=0.2)
        provider = provider_at("anthropic", "https://api.test", proxy=proxy, limits=limits)
        events = [event async for event in provider.stream(request())]
        await provider.close()
    (failed,) = events  # no usage before it: nothing may be billed
    assert isinstance(failed, StreamFailure)
    assert failed.error.kind is ErrorKind.NETWORK
    assert f"the proxy {proxy} gave no connection to https://api.test" in failed.error.message
    assert failed.error.fix.startswith("Check the proxy: HTTPS_PROXY in the environment")


async def test_a_socks_proxy_of_the_environment_is_refused_and_nothing_counts_as_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    _set(monkeypatch, {"ALL_PROXY": "socks5://127.0.0.1:1"})
    provider = provider_at("anthropic", "https://api.test")
    (failed,) = [event async for event in provider.stream(request())]
    assert isinstance(failed, StreamFailure)
    assert "its proxy cannot be used: SOCKS needs the package socksio" in failed.error.message
    assert "ALL_PROXY" in failed.error.fix


async def test_a_server_that_speaks_no_http_is_named_and_https_is_advised() -> None:
    async with plain_server(b"\x15\x03\x01\x00\x02\x02\x46") as url:
        error = (await failure_of(provider_at("chat", url), request())).error
    assert f"{url}/v1 gave no answer of HTTP" in error.message


@pytest.mark.parametrize(
    ("provider", "port", "advice"),
    [
        ("ollama", None, "Start it: ollama serve."),
        ("openai-compatible", 11434, "Start the server, such as: ollama serve."),
        ("openai-compatible", 1234, "Start the server, such as: lms server start."),
        ("vllm", 8000, "Start it: vllm serve MODEL."),
        ("openai-compatible", 5, "Start the server."),
    ],
)
def test_the_program_to_start_is_named(provider: str, port: int | None, advice: str) -> None:
    assert start_advice(provider, port) == advice


async def test_what_has_answered_before_is_away_for_a_while_and_tried_as_often_as_usual() -> None:
    async with fixed_server("500 No", {"Content-Type": "application/json"}, b"{}") as url:
        provider = provider_at("chat", url)
        assert (await failure_of(provider, request())).error.kind is ErrorKind.SERVER
    error = (await failure_of(provider, request())).error
    assert (error.kind, error.retries) == (ErrorKind.NETWORK, None)
    assert f"nothing listens at {url}/v1." in error.message


@asynccontextmanager
async def plain_server(
    said: bytes = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
) -> AsyncGenerator[str, None]:
    """A server that answers whatever comes first in plain text."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def silent_server() -> AsyncGenerator[str, None]:
    """A server that takes everything and says nothing."""
    ended = asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ended.set()


def _set(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("url", ["", "ftp://example.org", "http://", "no url at all", "http://[::1"])
async def test_a_base_url_that_is_none_is_a_bad_request(url: str) -> None:
    failed = await failure_of(provider_at("anthropic", url), request())
    assert failed.error.kind is ErrorKind.BAD_REQUEST


@pytest.mark.parametrize("key", ["sk-\nnew", "sk-ключ"])
async def test_a_key_that_cannot_be_sent_is_said_without_showing_it(key: str) -> None:
    failed = await failure_of(provider_at("chat", "http://127.0.0.1:9", api_key=key), request())
    assert failed.error.kind is ErrorKind.AUTHENTICATION
    assert key not in failed.error.message


async def test_keys_in_headers_and_urls_stay_out_of_messages() -> None:
    secret = "header-secret-value"
    body = f"You sent {secret} and {KEY} and pa55word".encode()
    async with fixed_server("400 Bad Request", {"Content-Type": "text/plain"}, body) as url:
        with_password = url.replace("http://", "http://me:pa55word@")
        failed = await failure_of(provider_at("chat", with_password, headers={"X-Key": secret}), request())
    assert failed.error.message == "chat refused the request: You sent [secret] and [secret] and [secret]."


@pytest.mark.parametrize("key", ["k", "key", "API", "1234567"])
async def test_a_key_of_a_few_letters_makes_no_holes_in_messages(key: str) -> None:
    async with fixed_server("400 Bad Request", {"Content-Type": "text/plain"}, b"API key 1234567 not known") as url:
        failed = await failure_of(provider_at("chat", url, api_key=key), request())
    assert failed.error.message == "chat refused the request: API key 1234567 not known."


async def test_a_server_that_stays_silent_runs_into_the_first_limit() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw_server(answer) as url:
        provider = provider_at("chat", url, limits=StreamLimits(connect=0.01, first_byte=0.02))
        failed = await failure_of(provider, request())
    assert failed.error.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("first", [b"", HELLO])
async def test_a_body_that_stands_still_runs_into_a_limit(first: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", EVENTS, first))
        await reader.read()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at("chat", url, limits=StreamLimits(first_byte=0.2, idle=0.2)), request())
    assert failed.error.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("limits", [StreamLimits(first_byte=60.0, idle=0.2), StreamLimits(first_byte=0.2, idle=60.0)])
async def test_silence_after_the_first_byte_and_silence_before_it_have_a_limit_each(limits: StreamLimits) -> None:
    begun = limits.idle < limits.first_byte

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", EVENTS, HELLO if begun else b""))
        await reader.read()

    async with raw_server(answer) as url:
        failed = await failure_of(provider_at("chat", url, limits=limits), request())
    why = "nothing arrived for 0.2 s (idle_timeout)" if begun else "did not begin within 0.2 s (first_byte_timeout)"
    assert (failed.error.kind, why in failed.error.message) == (ErrorKind.TIMEOUT, True)


async def test_a_reply_that_takes_longer_than_one_silence_may_is_read_to_its_end() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", EVENTS, b""))
        for _ in range(8):
            writer.write(HELLO)
            await writer.drain()
            await asyncio.sleep(0.4)
        writer.write(STOP)
        await writer.drain()

    async with raw_server(answer) as url:
        events = await collect(provider_at("chat", url, limits=StreamLimits(idle=3.0)), request())
    assert isinstance(events[-1], StreamStop)


async def test_comments_keep_a_slow_stream_alive() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", EVENTS, b""))
        for byte in b": wait\n\n: wait\n\n" + HELLO + STOP:
            await asyncio.sleep(0.001)
            writer.write(bytes([byte]))
            await writer.drain()

    async with raw_server(answer) as url:
        events = await collect(provider_at("chat", url, limits=StreamLimits(idle=5.0)), request())
    assert [type(event) for event in events] == [StreamText, StreamStop]


async def test_one_huge_event_and_a_huge_body_are_refused() -> None:
    small = StreamLimits(event=10_000, body=50_000)
    async with fixed_server("200 OK", EVENTS, b"data: " + b"x" * 20_000) as url:
        failed = await failure_of(provider_at("chat", url, limits=small), request())
    assert (failed.error.kind, "an event is larger" in failed.error.message) == (ErrorKind.MALFORMED_STREAM, True)
    async with fixed_server("200 OK", EVENTS, HELLO * 2_000) as url:
        failed = await failure_of(provider_at("chat", url, limits=small), request())
    assert (failed.error.kind, "the reply is larger" in failed.error.message) == (ErrorKind.MALFORMED_STREAM, True)


@pytest.mark.parametrize("body", [HELLO, b"", b"data: {not json}\n\n", b'data: {"choices": 7}\n\n', b"data: \xff\n\n"])
async def test_a_body_that_ends_early_or_is_no_json_is_malformed(body: bytes) -> None:
    async with fixed_server("200 OK", EVENTS, body) as url:
        failed = await failure_of(provider_at("chat", url), request())
    assert failed.error.kind is ErrorKind.MALFORMED_STREAM


async def test_what_was_billed_before_a_failure_is_kept() -> None:
    body = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
    async with fixed_server("200 OK", EVENTS, HELLO + body) as url:
        events = await collect(provider_at("chat", url), request())
    assert isinstance(events[-1], StreamFailure)
    assert events[-1].usage == Usage(input_tokens=5, output_tokens=2)


async def test_a_reply_is_whole_at_its_last_event_even_if_the_server_keeps_the_connection_open() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", EVENTS, HELLO + STOP))
        await reader.read()

    async with raw_server(answer) as url:
        events = await collect(provider_at("chat", url), request())
    assert isinstance(events[-1], StreamStop)


async def say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(response("200 OK", EVENTS, HELLO + STOP))
    await writer.drain()


async def test_an_untrusted_certificate_is_not_retried(own_certificate: tuple[Path, ssl.SSLContext]) -> None:
    certificate, context = own_certificate
    async with raw_server(say_hello, context) as url:
        place = url.replace("127.0.0.1", "localhost")
        for written in (place, place.replace("https", "HTTPS")):
            failed = await failure_of(provider_at("chat", written), request())
            assert (failed.error.kind, "cannot be trusted" in failed.error.message) == (ErrorKind.BAD_REQUEST, True)
            assert ("SSL_CERT_FILE" in failed.error.fix, "base URL" in failed.error.fix) == (True, False)
            assert "ca_file under [providers.chat]" in failed.error.fix
        events = await collect(provider_at("chat", place, ca_file=str(certificate)), request())
        assert isinstance(events[-1], StreamStop)


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_of_the_environment_are_used_on_this_machine_too(
    own_certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    certificate, context = own_certificate
    folder = tmp_path / "certificates"
    folder.mkdir()
    shutil.copy(certificate, folder / "own.pem")
    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(name, str(certificate if name == "SSL_CERT_FILE" else folder))
    system_certificates.cache_clear()
    try:
        async with raw_server(say_hello, context) as url:
            events = await collect(provider_at("chat", url.replace("127.0.0.1", "localhost")), request())
    finally:
        system_certificates.cache_clear()
    assert isinstance(events[-1], StreamStop)


@pytest.mark.parametrize(
    ("wrong", "why", "fix"),
    [
        ({"ca_file": "/nowhere/ca.pem"}, "the CA certificates /nowhere/ca.pem cannot be read (No such file", "ca_file"),
        ({"proxy": "what://is:this"}, "its proxy cannot be used", "Check proxy under [providers.chat]"),
        (
            {"proxy": "socks5://127.0.0.1:1"},
            "cannot be used: SOCKS needs the package socksio",
            "Check proxy under [providers",
        ),
    ],
)
async def test_a_ca_file_or_proxy_that_cannot_be_used_is_said(
    wrong: dict[str, object], why: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    failed = await failure_of(provider_at("chat", "https://localhost:9", **wrong), request())
    assert (failed.error.kind, why in failed.error.message, fix in failed.error.fix) == (
        ErrorKind.BAD_REQUEST,
        True,
        True,
    )


def test_the_systems_certificates_are_read_once_and_checked_with() -> None:
    reading = system_certificates()
    assert reading is system_certificates()
    context = reading.result()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


async def test_a_file_of_certificates_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    system_certificates.cache_clear()
    try:
        failed = await failure_of(provider_at("chat", "https://nowhere.invalid"), request())
    finally:
        system_certificates.cache_clear()
    assert (failed.error.kind, "missing.pem cannot be read" in failed.error.message) == (ErrorKind.BAD_REQUEST, True)
