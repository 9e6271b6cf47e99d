"""Connections that are slow, many, or never read: they end, and nobody else notices."""

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.web.asking import PATIENCE, asked


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def test_what_comes_slowly_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.web.browsers._SECONDS", {"head": 0.3, "body": 0.5})
    async with asked(tmp_path / "home", monkeypatch) as server:
        head = f"POST /login HTTP/1.1\r\nhost: {server.host}\r\n".encode()
        body = b"".join(
            f"{name}: {value}\r\n".encode() for name, value in server.headers(None).items() if name != "host"
        )
        starts = {
            "says nothing": b"",
            "stops in its head": head,
            "stops before its body": head + body + b"content-length: 100\r\n\r\n",
            "stops in its body": head + body + b"content-length: 100\r\n\r\n{",
            "stops in a chunk": head + body + b"transfer-encoding: chunked\r\n\r\n5\r\n{",
        }
        for what, start in starts.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(start)
            left = await _until_closed(reader)
            assert not left.startswith(b"HTTP/1.1 200"), what
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        dripping = asyncio.create_task(_drip(writer, head))
        assert await _until_closed(reader) == b""
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.transport.abort()
        assert (await server.ask("/healthz")).status == 200


async def _drip(writer: asyncio.StreamWriter, text: bytes) -> None:
    for byte in text * 1_000:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.02)


async def test_a_thousand_connections_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncExitStack() as held:
        server = await held.enter_async_context(asked(tmp_path / "home", monkeypatch))
        entrance = server.enter()
        client = await held.enter_async_context(server.client(entrance))
        stream = await held.enter_async_context(client.stream("GET", "/events"))
        heard = stream.aiter_text()
        await anext(heard)
        for number in range(1_000):
            one = held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            one.sendall(b"GET / HTTP/1.1\r\n")
            if number % 100 == 0:
                assert (await server.ask("/inbox", entrance)).status == 200
        assert (await server.ask("/login", method="POST", body={"token": server.keys.token})).status == 200
        server.book.changed.set()
        server.keys.shut_out("browser 1")  # the page that listened still does: it hears that it is shut out
        async with asyncio.timeout(PATIENCE):
            said = "".join([text async for text in heard]).split("\n\n")
        news = {text for text in said if "data" in text and "waiting" not in text and '"foot"' not in text}
        assert news <= {"data: {}"}, "nothing but that the line is alive"


async def test_a_link_lets_one_browser_in_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(tmp_path / "home", monkeypatch) as server:
        owner = server.enter()
        made = await server.ask("/devices/link", owner, method="POST", body={})
        assert "<svg" not in made.text, "another device does not reach a loopback address"
        assert "Only this computer reaches it" in made.text
        secret = made.text.partition("#token=")[2].partition("<")[0]
        many = [server.ask("/login", method="POST", body={"token": secret}) for _ in range(20)]
        assert sorted(one.status for one in await asyncio.gather(*many)) == [200, *[403] * 19]
        shown = await server.ask("/devices", owner)
        assert "browser 2" in shown.text
        assert "a device: sees and works in sessions" in shown.text


async def test_a_paired_device_lets_nobody_in_and_shuts_out_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path / "home", monkeypatch) as server:
        owner, phone = server.enter(), server.enter(paired=True)
        for path, body in (("/devices/link", {}), ("/devices/out", {"name": "browser 1"})):
            assert (await server.ask(path, phone, method="POST", body=body)).status == 403, path
        assert "New link" not in (await server.ask("/devices", phone)).text
        assert (await server.ask("/devices/out", phone, method="POST", body={"name": "browser 2"})).status == 200
        assert (await server.ask("/inbox", phone)).status == 401
        assert (await server.ask("/inbox", owner)).status == 200


async def test_the_name_that_a_browser_gives_itself_is_a_word_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path / "home", monkeypatch) as server:
        agents = ["Mozilla/5.0 (Linux; Android 15) Chrome/140 Safari/5", "<script>evil()</script>", "x" * 9_000]
        for agent in agents:
            body = {"token": server.keys.token}
            assert (await server.ask("/login", method="POST", body=body, user_agent=agent)).status == 200
        shown = (await server.ask("/devices", server.enter())).text
        assert "Chrome on Android" in shown
        assert "evil" not in shown
        assert "xxx" not in shown
