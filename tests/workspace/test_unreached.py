"""Why there is no connection, seen with real sockets: each obstacle is named with the address that was tried."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.black_hole import black_hole

from treadle.providers.endpoint import CONNECT_HERE, StreamLimits
from treadle.workspace.unreached import Obstacle, connect_seconds, place_named, proxy_of, why_unreached


async def tried(url: str, *, connect: float = 60.0, proxy: str = "") -> BaseException:
    """Try to fetch a URL; gives what was raised."""
    async with httpx2.AsyncClient(
        trust_env=False, proxy=proxy or None, timeout=httpx2.Timeout(60.0, connect=connect)
    ) as client:
        try:
            await client.get(url)
        except httpx2.HTTPError as error:
            return error
    raise AssertionError("it was reached")


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def answering(said: bytes) -> Iterator[int]:
    """A port whose first connection gets these bytes, whatever it sent."""
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.recv(65_536)
                taken.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        yield int(listening.getsockname()[1])
        thread.join()


async def test_a_closed_port_and_a_host_that_there_is_not_are_named() -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    found = why_unreached(await tried(f"{url}?key=x"), f"{url}?key=x", seconds=9.0)
    assert (found.obstacle, found.text) == (Obstacle.REFUSED, f"nothing listens at {url}")
    url = f"http://localhost:{closed_port()}"
    assert why_unreached(await tried(url), url, seconds=9.0).text == f"nothing listens at {url}"
    found = why_unreached(await tried("http://me:pw@nowhere.invalid"), "http://me:pw@nowhere.invalid", seconds=9.0)
    assert found.obstacle is Obstacle.NO_HOST
    assert found.text.startswith("the host of http://nowhere.invalid (port 80) was not found (")


async def test_a_port_that_says_nothing_is_named_with_the_bound() -> None:
    with black_hole() as port:
        url = f"http://127.0.0.1:{port}"
        found = why_unreached(await tried(url, connect=0.05), url, seconds=0.05)
    assert (found.obstacle, found.text) == (Obstacle.SILENT, f"no connection to {url} within 0.05 s")


async def test_a_server_without_tls_is_named_and_a_certificate_that_nobody_vouches_for() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        url = f"https://127.0.0.1:{port}"
        found = why_unreached(await tried(url), url, seconds=9.0)
    assert found.obstacle is Obstacle.NO_TLS
    assert found.text == f"{url} does not answer in TLS (WRONG_VERSION_NUMBER)"
    untrusted = ssl.SSLCertVerificationError(1, "verify failed")
    untrusted.verify_message = "self-signed certificate"
    found = why_unreached(untrusted, "https://own.test/v1", seconds=9.0)
    assert found.text == "the certificate of own.test cannot be trusted (self-signed certificate)"


async def test_a_proxy_that_refuses_or_is_not_there_is_named_in_place_of_the_address() -> None:
    url = "https://api.test/v1"
    with answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as port:
        proxy = f"http://me:pw@127.0.0.1:{port}"
        found = why_unreached(await tried(url, proxy=proxy), url, seconds=9.0, proxy=proxy)
    shown = f"the proxy http://127.0.0.1:{port}"
    assert (found.obstacle, found.text) == (
        Obstacle.PROXY,
        f"{shown} gave no connection to {url} (port 443) (403 Forbidden)",
    )
    proxy = f"http://127.0.0.1:{closed_port()}"
    found = why_unreached(await tried(url, proxy=proxy), url, seconds=9.0, proxy=proxy)
    assert found.text == f"nothing listens at the proxy {proxy} for {url} (port 443)"


def test_what_several_addresses_said_is_read_and_other_errors_are_said_in_words() -> None:
    both = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] Connect call failed")
    assert why_unreached(both, "http://localhost:1", seconds=1.0).obstacle is Obstacle.REFUSED
    away = OSError(errno.ENETUNREACH, "Network is unreachable")
    assert why_unreached(away, "http://10.0.0.1:1", seconds=1.0).text == (
        "there is no connection to http://10.0.0.1:1 (the network cannot be reached)"
    )


def test_the_bounds_are_below_three_seconds_here_and_ten_elsewhere() -> None:
    assert [connect_seconds(f"http://{host}:1") < 3.0 for host in ("localhost", "127.0.0.1", "[::1]")] == [True] * 3
    assert connect_seconds("https://api.test") < 10.0
    assert (CONNECT_HERE, StreamLimits().connect) == (connect_seconds("http://localhost"), connect_seconds("http://x"))


def test_the_proxy_of_the_environment_is_that_of_the_scheme_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert proxy_of("https://api.test") == ""
    monkeypatch.setenv("HTTPS_PROXY", "http://p.test:1")
    monkeypatch.setenv("NO_PROXY", "near.test")
    urls = ("https://api.test", "http://api.test", "https://near.test", "https://localhost:1")
    assert [proxy_of(url) for url in urls] == ["http://p.test:1", "", "", ""]
    assert place_named(str(tmp_path)) == str(tmp_path)
