"""Two users of a service try to read, steer, list and exhaust each other: each way is tried, and none succeeds.

Every try is made by Alice on what is hers first, where that is possible, so that a try which could never succeed shows.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest
import pytest_asyncio

from tests.e2e.faults.driving import run
from tests.e2e.running import PATIENCE
from tests.web.service.serving import Service, SignedIn, service_here
from treadle.providers.scripted.script import SayText, Turn
from treadle.web import application
from treadle.web.service.service_front import USER_REQUESTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "the-plan-of-alice-7731"
ASKS = "git push origin main"
HELLO = Turn(items=(SayText(text="Hello."),))
TURNS = (HELLO, Turn(items=(SayText(text="Look."), run(ASKS))), HELLO)


@dataclass
class Two:
    """Alice has a session that asks, and a file; Bob is a user, too."""

    service: Service
    alice: SignedIn
    bob: SignedIn
    session: str
    file: Path

    async def state(self) -> tuple[object, ...]:
        """What of Alice's could be changed."""
        cards = (await self.alice.get("/inbox/cards")).text
        listed = (await self.alice.get("/sessions")).text
        files = {str(one): one.read_bytes() for one in (self.alice.folder / "projects").rglob("*") if one.is_file()}
        settings = self.alice.folder / "treadle" / "config.toml"
        kept = settings.read_bytes() if settings.exists() else b""
        return cards.count("data-question"), listed.count(f"/s/{self.session}") > 0, files, kept


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    async with service_here(tmp_path_factory.mktemp("two"), TURNS, users={"alice": (), "bob": ()}) as service:
        alice, bob = await service.sign_in("alice"), await service.sign_in("bob")
        file = alice.folder / "projects" / "plan.txt"
        file.write_text(f"{SECRET}\n")
        session = await alice.start(f"Do it, {SECRET}")
        await alice.shows(session, "Hello.")
        await alice.done(f"/s/{session}/say", text="Now.")
        async with asyncio.timeout(PATIENCE):
            while (await alice.get("/inbox/cards")).text.count("data-question") != 1:
                await asyncio.sleep(0.1)
        yield Two(service, alice, bob, session, file)


def routes() -> Iterator[tuple[str, str]]:
    """Every route of the page, with its method."""
    for route in application._ROUTES:
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, route.path
    yield from (("GET", "/events"), ("GET", "/healthz"), ("POST", "/login"))


BODY: Mapping[str, Any] = {
    "text": "Go on.",
    "question_id": "1",
    "option": "allow_once",
    "mode": "full",
    "name": "browser 99",
    "key": "model",
    "value": "x",
    "token": "",
    "seq": 1,
}


async def ask(client: httpx2.AsyncClient, method: str, path: str, **headers: str) -> httpx2.Response:
    """Ask for something; whoever asks too often asks again."""
    body = json.dumps(BODY).encode() if method == "POST" else None
    kind = {"content-type": "application/json"} if method == "POST" else {}
    async with asyncio.timeout(PATIENCE):
        while True:
            async with client.stream(
                method, path, content=body, headers={"accept": "text/html", **kind, **headers}
            ) as answer:
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    first = await anext(answer.aiter_bytes(), b"")
                    return httpx2.Response(answer.status_code, content=first)
                await answer.aread()
            if answer.status_code != 429:
                return answer
            await asyncio.sleep(0.5)


@dataclass(frozen=True)
class Trick:
    """How Bob asks for what is Alice's: with whose address, cookie and key, and what he adds to it."""

    name: str
    base: str = "bob"
    cookie: str = "bob"
    key: str = "bob"
    path: str = "{base}{path}"
    headers: tuple[tuple[str, str], ...] = ()


TRICKS = (
    Trick("his own page, her session"),
    Trick("her address", base="alice"),
    Trick("her address and her key", base="alice", key="alice"),
    Trick("her address, nobody's cookie", base="alice", cookie="", key="alice"),
    Trick(
        "her name in headers", headers=(("x-forwarded-user", "alice"), ("remote-user", "alice"), ("x-user", "alice"))
    ),
    Trick("her address, her name as a proxy says it", base="alice", headers=(("x-treadle-proxy", ""),)),
)
SIDEWAYS = (
    "{bob}/../{her}{path}",
    "{bob}/%2e%2e/{her}{path}",
    "{bob}/..%2f{her}{path}",
    "//{her}{path}",
    "/{her}//{path}",
    "/{her};{path}",
    "/%7e{short}{path}",
    "/{her}{path}?base={bob}",
    "{bob}{path}?base=/{her}&user=alice&session={session}",
    "/static/../{her}{path}",
    "/static/%2e%2e/{her}{path}",
)


ECHOES = ("/s/{session_id}/menu",)
"""Routes that say the same of a session that is not there."""


def headers_of(two: Two, trick: Trick) -> dict[str, str]:
    keys = {"alice": two.alice.key, "bob": two.bob.key}
    return {"x-treadle-key": keys.get(trick.key, ""), **dict(trick.headers)}


async def test_no_route_gives_one_user_what_is_the_others(two: Two) -> None:
    before = await two.state()
    nobody = two.service.browser()
    clients = {"bob": two.bob.client, "": nobody}
    bases = {"alice": two.alice.base, "bob": two.bob.base}
    tries = [(trick, method, route) for trick in TRICKS for method, route in routes()]

    async def attempt(trick: Trick, method: str, route: str) -> object:
        path = route.replace("{session_id}", two.session).replace("{seq}", "1")
        answer = await ask(clients[trick.cookie], method, bases[trick.base] + path, **headers_of(two, trick))
        names = two.session in answer.text and two.session not in path
        opened = (
            answer.status_code == 200
            and answer.text.strip()
            and "Opening your page" not in answer.text
            and route not in ECHOES
        )
        got = opened and ("{session_id}" in route or trick.base == "alice")
        return (trick.name, method, route, answer.text[:200]) if SECRET in answer.text or names or got else None

    found: list[object] = []
    for at in range(0, len(tries), 20):
        found += await asyncio.gather(*(attempt(*one) for one in tries[at : at + 20]))
    assert [one for one in found if one is not None] == []
    assert await two.state() == before
    there = await two.bob.get("/sessions")
    assert there.status_code == 200, there.text
    assert len(tries) > 60 * len(TRICKS)
    seen = [
        (await ask(two.alice.client, m, two.alice.base + r.replace("{session_id}", two.session))).text
        for m, r in routes()
        if m == "GET" and r in ("/sessions", "/s/{session_id}", "/s/{session_id}/timeline")
    ]
    assert all(SECRET in text for text in seen), "she sees it herself"


async def test_no_spelling_of_an_address_leads_to_the_page_of_another_user(two: Two) -> None:
    her = two.alice.base.removeprefix("/")
    before = await two.state()
    address = urlsplit(two.service.address)
    for form in SIDEWAYS:
        for path in ("/sessions", f"/s/{two.session}", f"/s/{two.session}/answer"):
            target = form.format(bob=two.bob.base, her=her, short=her[1:], path=path, session=two.session)
            for whole in (target, f"http://{address.netloc}{target}"):
                said = await raw(two, whole, method="POST" if path.endswith("answer") else "GET")
                assert SECRET not in said, (whole, said[:400])
    assert await two.state() == before
    there = await two.bob.get("/sessions")
    assert there.status_code == 200, there.text


HOSTS = (
    "alice.example",
    "127.0.0.1",
    "localhost:1",
    "127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}",
    "",
    "127.0.0.1:{port}.alice.example",
)


async def test_no_name_of_a_host_and_no_smuggled_request_gets_further(two: Two) -> None:
    port = urlsplit(two.service.address).port
    for host in HOSTS:
        said = await raw(two, f"{two.alice.base}/sessions", host=host.format(port=port))
        assert SECRET not in said
        assert said.startswith(("HTTP/1.1 421", "HTTP/1.1 400")), said[:200]
    inner = f"GET {two.alice.base}/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    for extra in (
        f"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{inner}",
        f"Content-Length: 3\r\nContent-Length: 0\r\n\r\n{inner}",
        f"X: 1\n\n{inner}",
    ):
        said = await raw(two, f"{two.bob.base}/s/{two.session}/say", method="POST", extra=extra)
        assert SECRET not in said
        assert two.session not in said.replace(f"/s/{two.session}", "")


async def raw(two: Two, target: str, *, method: str = "GET", host: str | None = None, extra: str = "") -> str:
    """Send a request as no library would, with Bob's cookie; gives all that comes."""
    address = urlsplit(two.service.address)
    cookie = "; ".join(f"{name}={value}" for name, value in two.bob.client.cookies.items())
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: {address.netloc if host is None else host}\r\nCookie: {cookie}\r\n"
        f"Origin: {two.service.address}\r\nContent-Type: application/json\r\nX-Treadle-Key: {two.bob.key}\r\n"
        f"Accept: text/html\r\n"
    )
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"{head}{extra or 'Connection: close'}\r\n\r\n".encode())
    with_end = asyncio.create_task(reader.read())
    try:
        async with asyncio.timeout(3.0 if extra else PATIENCE):
            said = await asyncio.shield(with_end)
    except TimeoutError:
        writer.close()
        said = await with_end
    writer.close()
    return said.decode(errors="replace")


async def test_neither_a_command_nor_a_folder_nor_a_process_of_one_user_reaches_the_other(two: Two) -> None:
    bob, folder = two.bob, two.alice.folder
    control = await two.alice.start("Hello?")
    await two.alice.shows(control, "Hello.")
    await two.alice.done(f"/s/{control}/say", text=f"!cat {two.file}")
    await two.alice.shows(control, SECRET)
    session = await bob.start("Hello?")
    await bob.shows(session, "Hello.")
    commands = (
        f"cat {two.file}",
        f"ls -R {folder} {folder.parent}",
        f"echo mine > {two.file}",
        f"cp -r {folder} copy; cat copy/projects/plan.txt",
        "cat /proc/*/environ /proc/*/cmdline | tr '\\0' ' '",
        "cat /proc/*/root/etc/shadow; for p in /proc/[0-9]*; do ls $p/root" + str(folder) + "; done",
        "ls -R /tmp /run /var/tmp /root /home",
        "find / -xdev -name '*.sock' -o -name 'sessions.db' -path '*alice*'",
        f"mount --bind {folder.parent} /tmp; unshare -r ls {folder}",
        f"chroot / cat {two.file}; cat {two.service.data}/users.json",
        f"python3 -c 'import os; os.listdir(\"{folder}\")'",
        f"ln -s {folder} link; cat link/projects/plan.txt",
        f"sqlite3 {folder}/treadle/sessions.db .dump; strings {folder}/treadle/sessions.db",
    )
    for command in commands:
        await bob.post(f"/s/{session}/say", text=f"!{command}")
    shown = await bob.shows(session, "link/projects/plan.txt", "sessions.db .dump")
    assert SECRET not in shown
    for said in (
        f"@{two.file} what?",
        f"/add-dir {folder}",
        f"/export md {folder}/projects/x.md",
        f"/resume {two.session}",
    ):
        answer = await bob.post(f"/s/{session}/say", text=said)
        assert SECRET not in answer.text
    for other in (folder, folder / "projects", folder / ".." / "alice" / "projects"):
        answer = await bob.post("/sessions", folder=str(other), text="Read it.")
        assert answer.status_code == 400, (other, answer.text)
        assert SECRET not in (await bob.get(f"/folders?folder={quote(str(other))}")).text
    assert two.file.read_text() == f"{SECRET}\n"
    assert sorted(one.name for one in two.file.parent.iterdir()) == ["plan.txt"]
    with suppress(httpx2.HTTPError):
        await bob.post(f"/s/{session}/say", text="!kill -9 -1")  # all that he can reach is his own
    two.bob = await two.service.sign_in("bob")
    assert (await two.alice.get("/inbox/cards")).text.count("data-question") == 1


async def test_a_crowd_of_one_user_leaves_the_other_room(two: Two) -> None:
    bob, address = two.bob, urlsplit(two.service.address)
    streams = [asyncio.create_task(_listens(bob)) for _ in range(USER_REQUESTS + 20)]
    slow = [socket.create_connection((address.hostname, address.port)) for _ in range(350)]
    try:
        for number, one in enumerate(slow):
            one.send(b"GET / HTTP/1.1\r\nHost:" if number % 2 else b"POST /login HTTP/1.1\r\n")
        async with asyncio.timeout(PATIENCE):
            while not any(one.done() and one.result() == 429 for one in streams):
                await asyncio.sleep(0.1)
        answer = await two.alice.get("/sessions")
        assert (answer.status_code, SECRET in answer.text) == (200, True)
        flood = await asyncio.gather(*(ask_once(bob) for _ in range(600)))
        assert set(flood) <= {200, 429}
        assert (await two.alice.get("/sessions")).status_code == 200
        assert (await two.alice.get("/inbox/cards")).text.count("data-question") == 1
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        for connection in slow:
            connection.close()


async def _listens(who: SignedIn) -> int:
    try:
        async with who.client.stream("GET", f"{who.base}/events") as stream:
            if stream.status_code == 200:
                async for _ in stream.aiter_bytes():
                    pass
            return stream.status_code
    except httpx2.HTTPError:
        return 0  # of too many connections some are cut


async def ask_once(who: SignedIn) -> int:
    return (await who.client.get("/static/page.css")).status_code
