"""`treadle web` as a process: what it is told to do, what is done to it, and who reaches it."""

import asyncio
import hashlib
import re
import signal
import socket
import ssl
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.e2e.faults.driving import run, script
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, model
from tests.rehearsal.surfaces import Reader, Server, Wire, begin_session, words_of
from tests.web.driving import Served, curl, serving
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.workspace.installed import extras, install_command


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_a_server_killed_in_mid_turn_loses_nothing_and_its_session_goes_on_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    steps = script(run("echo 1 >> done.txt"), run("echo 2 >> done.txt"))
    async with ScriptedServer(steps) as behind, Wire(0) as wire:
        server = Server(Program(tmp_path / "home"), (*model(behind), "-C", str(tmp_path / "ws")), wire)
        try:
            await server.start()
            session = await begin_session(server, tmp_path)
            await _asked(server, session, 1)
            await server.end(signal.SIGKILL)
            await server.start()
            async with server.client() as client:
                assert session in (await client.get("/")).text
                shown = (await client.get(f"/s/{session}")).text
                assert "echo 1" in shown
                assert (await client.post(f"/s/{session}/say", json={"text": "Go on."})).status_code == 200
            reader = await _answered_to_its_end(server, session)
        finally:
            await server.end(signal.SIGINT)
        assert server.process is not None
        assert server.process.returncode == 128 + signal.SIGINT
        text = words_of(reader.items)
        assert (text.count("Work."), text.count("Go on.")) == (1, 1)
        assert "2" in (tmp_path / "ws" / "done.txt").read_text().split()


async def _asked(server: Server, session: str, questions: int) -> None:
    async with asyncio.timeout(PATIENCE), server.client() as client:
        while (await client.get("/inbox/cards")).text.count("data-question") < questions:
            await asyncio.sleep(0.05)


async def _answered_to_its_end(server: Server, session: str) -> Reader:
    import random

    reader = Reader(server, session, random.Random(1))
    reading = asyncio.create_task(reader.read())
    try:
        async with asyncio.timeout(PATIENCE):
            while "Done." not in words_of(reader.items):
                await asyncio.sleep(0.05)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    return reader


async def test_it_lives_on_without_its_terminal_and_ends_with_pages_open(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws") as served:
        pipe = served.process.stdout
        assert pipe is not None
        pipe._transport.close()  # type: ignore[attr-defined]
        served.process.send_signal(signal.SIGHUP)
        token = served.link.partition("token=")[2]
        async with httpx2.AsyncClient(base_url=served.address, headers={"origin": served.address}) as client:
            at = (await client.post("/login", json={"token": token})).json()["base"]
            async with client.stream("GET", f"{at}/events") as stream:
                heard = stream.aiter_text()
                await anext(heard)
                served.process.send_signal(signal.SIGINT)
                async with asyncio.timeout(PATIENCE):
                    assert [text async for text in heard if "reload" in text] == []
                    assert await served.process.wait() == 128 + signal.SIGINT


async def test_what_it_cannot_do_is_said_in_a_line(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = await program.run("web", "--no-open", "--port", port)
        assert (ended.code, ended.out) == (Exit.CONFIG, "")
        assert f"cannot listen on port {port}" in ended.err
    ended = await program.run("web", "--no-open", "--host", "0.0.0.0")
    assert ended.code == Exit.CONFIG
    assert "Add --lan" in ended.err
    ended = await program.run("web", "--no-open", "--lan", "--host", "192.0.2.1")
    assert ended.code == Exit.CONFIG
    assert "cannot listen" in ended.err
    without = "import sys; sys.modules['uvicorn'] = None; sys.argv = ['treadle', 'web']; import treadle.__main__ as m"
    ended = await program.run("", command=(sys.executable, "-c", f"{without}; sys.exit(m.main())"))
    if "web" in extras():  # else what is installed here is older than the extra
        assert ended.code == Exit.FAILED
        assert install_command("web") in ended.err


async def test_a_data_directory_that_cannot_be_used_is_said_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    async with serving(tmp_path / "home", tmp_path / "ws") as served:
        assert "200 OK" in curl(f"{served.address}/healthz").stdout
        token = served.link.partition("token=")[2]
        async with httpx2.AsyncClient(base_url=served.address, headers={"origin": served.address}) as client:
            at = (await client.post("/login", json={"token": token})).json()["base"]
            shown = await client.get(f"{at}/", headers={"accept": "text/html"})
            assert shown.status_code == 500
            assert "The session log" in shown.text
            assert "<nav" in shown.text


async def let_in(served: Served, token: str, knock: str) -> None:
    """Say yes on this computer."""
    async with httpx2.AsyncClient(base_url=served.address, headers={"origin": served.address}) as owner:
        given = (await owner.post("/login", json={"token": token})).json()
        headers = {"x-treadle-key": given["key"]}
        said = await owner.post(f"{given['base']}/devices/knock", json={"id": knock, "yes": True}, headers=headers)
        assert said.status_code == 200


async def test_on_the_network_a_link_lets_in_and_the_token_does_not(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws", "--lan") as served:
        assert served.process.stdout is not None
        link = (await served.process.stdout.readline()).decode().strip()
        assert "Compare the SHA-256 fingerprint" in (await served.process.stdout.readline()).decode()
        printed = (await served.process.stdout.readline()).decode().strip()
        port = urlsplit(served.address).port
        parts = urlsplit(link)
        host, fragment = parts.netloc, parse_qs(parts.fragment)
        assert parts.scheme == "https"
        assert host.endswith(f":{port}")
        assert fragment["sha256"] == [printed.replace(":", "").lower()]
        token, (secret,) = served.link.partition("token=")[2], fragment["token"]
        assert "421" in curl(f"{served.address}/", "-H", f"host: {host}").stdout.splitlines()[0]
        if socket.gethostname().lower() in host:
            pytest.skip("this computer has no network")
        assert "421" in curl(f"https://{host}/", "-k", "-H", f"host: evil.example:{port}").stdout.splitlines()[0]
        shown = ssl.get_server_certificate((str(parts.hostname), port or 0))
        assert hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest() == fragment["sha256"][0]
        own = {"origin": f"https://{host}"}
        async with httpx2.AsyncClient(base_url=f"https://{host}", headers=own, verify=False) as client:
            assert "Open the link" in (await client.get("/")).text
            answers = [await client.post("/login", json={"token": one}) for one in (secret, secret, token)]
            assert [one.status_code for one in answers] == [202, 403, 403]
            knock = answers[0].json()
            assert (await client.post("/login", json={"knock": knock["knock"]})).status_code == 202, "nobody said yes"
            asked = (await served.process.stdout.readline()).decode()
            assert f"shows the code {knock['code']}? Answer on the page" in asked
            await let_in(served, token, knock["knock"])
            answers = [await client.post("/login", json={"knock": knock["knock"]}) for _ in range(2)]
            assert [one.status_code for one in answers] == [200, 403]
            cookie = answers[0].headers["set-cookie"].lower()
            assert {"secure", "httponly", "samesite=strict"} <= {one.strip() for one in cookie.split(";")}
            shown = (await client.get(f"{answers[0].json()['base']}/devices")).text
            assert "a device: sees and works in sessions" in shown
            assert "New link" not in shown
            carried = f"{answers[0].headers['set-cookie'].partition(';')[0]}"
        plain = curl(f"http://{host}/inbox", "-H", f"cookie: {carried}").stdout
        assert "308" in plain.splitlines()[0]
        assert f"location: https://{host}/inbox" in plain
        assert "<nav" not in plain
        posted = curl(f"http://{host}/login", "-d", f'{{"token": "{token}"}}', "-H", "content-type: application/json")
        assert "403" in posted.stdout.splitlines()[0]
        assert "served with TLS alone" in posted.stdout
        async with httpx2.AsyncClient(base_url=served.address, headers={"origin": served.address}) as owner:
            given = (await owner.post("/login", json={"token": token})).json()
            headers = {"x-treadle-key": given["key"]}
            made = await owner.post(f"{given['base']}/devices/link", json={}, headers=headers)
            assert f"https://{host}/#token=" in made.text
            assert printed in made.text.replace("<wbr>", "")


@pytest.mark.skipif(not has_ipv6(), reason="this computer has no IPv6")
async def test_at_an_address_of_ipv6_the_page_is_called_by_it_in_brackets_alone(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws", "--host", "0:0::1") as served:
        port = urlsplit(served.address).port
        assert served.address == f"http://[::1]:{port}"
        token = served.link.partition("token=")[2]
        async with httpx2.AsyncClient(base_url=served.address) as client:
            for origin in (f"http://[::2]:{port}", f"http://::1:{port}"):
                refused = await client.post("/login", json={"token": token}, headers={"origin": origin})
                assert refused.status_code == 403, origin
            own = {"origin": served.address}
            given = (await client.post("/login", json={"token": token}, headers=own)).json()
            headers = {**own, "x-treadle-key": given["key"]}
            made = await client.post(f"{given['base']}/devices/link", json={}, headers=headers)
            assert f"http://[::1]:{port}/#token=" in made.text
        for host in (f"[::]:{port}", "[::1]", f"::1:{port}", f"[0:0::1]:{port}", f"[::ffff:127.0.0.1]:{port}"):
            assert "421" in curl(f"{served.address}/", "-g", "-H", f"host: {host}").stdout.splitlines()[0], host


@pytest.mark.skipif(not has_ipv6(), reason="this computer has no IPv6")
async def test_all_addresses_of_both_kinds_are_listened_on_and_each_only_by_its_own_name(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", tmp_path / "ws", "--lan", "--host", "::") as served:
        port = urlsplit(served.address).port
        assert served.address == f"http://127.0.0.1:{port}"
        for address in ("127.0.0.1", "[::1]"):
            assert "200 OK" in curl(f"http://{address}:{port}/healthz", "-g").stdout
            other = curl(f"http://{address}:{port}/", "-g", "-H", f"host: [fe80::1]:{port}")
            assert "421" in other.stdout.splitlines()[0]
        token = served.link.partition("token=")[2]
        async with httpx2.AsyncClient(base_url=f"http://[::1]:{port}") as client:
            near = await client.post("/login", json={"token": token}, headers={"origin": f"http://[::1]:{port}"})
            assert near.status_code == 200, "loopback of IPv6 is this computer, too"


async def test_in_a_terminal_the_link_is_drawn_and_a_kept_device_is_let_in_again_by_the_next_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "ws").mkdir()
    program, command = Program(tmp_path / "home"), ("web", "--lan", "--no-open", "-C", str(tmp_path / "ws"))
    async with on_terminal(program, *command) as shown:
        await shown.until_shown("▀", "Open it on another device")
        link = re.search(r"https://(\S+?)/#token=([\w-]+)", shown.shown)
        assert link is not None
        host, secret = link.groups()
        if socket.gethostname().lower() in host:
            pytest.skip("this computer has no network")
        own = {"origin": f"https://{host}"}
        async with httpx2.AsyncClient(base_url=f"https://{host}", headers=own, verify=False) as phone:
            knock = (await phone.post("/login", json={"token": secret})).json()["knock"]
            await shown.until_shown("Let in A browser")
            shown.type("keep\r")
            while (answer := await phone.post("/login", json={"knock": knock})).status_code == 202:
                await asyncio.sleep(0.05)
            base = answer.json()["base"]
            cookie = answer.headers["set-cookie"].partition(";")[0]
        shown.type("\x03")
        assert await shown.ended() == 128 + signal.SIGINT
    async with serving(tmp_path / "home", tmp_path / "ws", "--lan", "--port", host.rpartition(":")[2]):
        seen = curl(f"https://{host}{base}/devices", "-k", "-H", f"cookie: {cookie}").stdout
        assert "browser 1</strong> (this one)" in seen or "A browser</strong> (this one)" in seen


async def test_the_browser_that_it_opens_is_given_a_link_that_works_once(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new; mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    (tmp_path / "ws").mkdir()
    program = Program(tmp_path / "home", {"BROWSER": f"{browser} %s"})
    process = await program.start("web", "-C", str(tmp_path / "ws"))
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            printed = (await process.stdout.readline()).decode().strip()
            while not opened.exists():
                await asyncio.sleep(0.02)
        base, _, secret = opened.read_text().partition("/#token=")
        assert printed.partition("/#token=")[0] == base
        assert secret not in printed
        async with httpx2.AsyncClient(base_url=base, headers={"origin": base}) as client:
            answers = [await client.post("/login", json={"token": secret}) for _ in range(2)]
            assert [one.status_code for one in answers] == [200, 403]
            shown = (await client.get(f"{answers[0].json()['base']}/devices")).text
            assert "New link" in shown  # it is the user's own
    finally:
        process.terminate()
        await process.communicate()
