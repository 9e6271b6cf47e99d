"""`treadle serve`: who gets in, whose turn it is, what is bounded, and how it ends."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx2

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, left_of
from tests.web.service.serving import kill_page, service_here
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import SayText, Turn, Wait
from treadle.web.service.service_front import PROXY_HEADER, USER_REQUESTS
from treadle.web.service.service_users import UserBook
from treadle.web.service.user_confinement import FolderSize, folder_size

HOLDS = tuple(Turn(items=(Wait(seconds=PATIENCE * 2), SayText(text="Late."))) for _ in range(20))
TALK = tuple(Turn(items=(SayText(text="Hello."),)) for _ in range(20))


async def test_turns_wait_with_a_place_and_those_of_one_user_keep_no_other_waiting(tmp_path: Path) -> None:
    users = {"alice": (), "bob": ("--turns", "1")}
    async with service_here(tmp_path, HOLDS, "--all-turns", "2", users=users, begins=False) as service:
        token = await service.secret("metrics")
        await service.begin()
        alice, bob = await asyncio.gather(service.sign_in("alice"), service.sign_in("bob"))
        sessions = [await bob.start(f"Work {number}.") for number in range(3)]
        await service.until(token, turns_waiting=2)
        assert "place 2 in the queue" in await bob.status(sessions[2], "place")
        await alice.start("Mine.")
        async with asyncio.timeout(PATIENCE):
            while (await service.metrics(token)).get('treadle_turns_working{user="alice"}') != 1:
                await asyncio.sleep(0.1)
        found = await service.metrics(token)
        assert (found['treadle_turns_working{user="bob"}'], found["treadle_turns_waiting"]) == (1, 2)
        await bob.done(f"/s/{sessions[2]}/interrupt")
        await service.until(token, turns_waiting=1)
        await bob.done(f"/s/{sessions[0]}/interrupt")
        await service.until(token, turns_waiting=0)
        found = await service.metrics(token)
        assert found['treadle_turns_total{user="bob"}'] == 2
        assert found["treadle_turns_most"] == 2


async def test_a_token_lets_in_until_there_is_another_one_and_a_page_that_died_comes_back(tmp_path: Path) -> None:
    async with service_here(tmp_path, TALK, users={"alice": ()}) as service:
        stranger = service.browser()
        for token in ("", "x" * 43, service.tokens["alice"][:-1], "\ud800"):
            body = ('{"token": "' + token.encode("unicode-escape").decode().replace("\\u", "\\u") + '"}').encode()
            answer = await stranger.post("/login", content=body, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 403), (token, answer.text)
        shown = await stranger.get("/", headers={"accept": "text/html"})
        assert (shown.status_code, "Sign in with the token" in shown.text) == (401, True)
        assert (await stranger.get("/metrics")).status_code == 401
        alice = await service.sign_in("alice")
        session = await alice.start("Hello?")
        await alice.shows(session, "Hello.")
        kill_page(alice.folder)
        async with asyncio.timeout(PATIENCE):
            while "Opening your page" not in (await alice.get(f"/s/{session}")).text:
                await asyncio.sleep(0.1)
        said = (await alice.client.post("/login", json={"token": ""})).json()
        assert said["base"] != alice.base
        alice.base, alice.client.headers["x-treadle-key"] = said["base"], said["key"]
        await alice.shows(session, "Hello.")
        await alice.done("/devices/out", name="browser 1")
        assert (await alice.get("/sessions")).status_code == 401
        alice = await service.sign_in("alice")
        await service.add("alice")
        assert (await alice.get("/sessions")).status_code == 401
        alice = await service.sign_in("alice")
        ended = await service.program.run("serve", "remove", "alice", "--data", str(service.data))
        assert (ended.code, "Their folder stays" in ended.err) == (0, True)
        assert (await alice.get("/sessions")).status_code == 401
        assert (await alice.client.post("/login", json={"token": service.tokens["alice"]})).status_code == 403


async def test_a_proxy_names_users_only_with_its_secret(tmp_path: Path) -> None:
    async with service_here(tmp_path, TALK, users={"alice": (), "bob": ()}, begins=False) as service:
        ended = await service.program.run(
            "serve", "--data", str(service.data), "--user-header", "X-User", "--port", "0"
        )
        assert (ended.code, "treadle serve proxy" in ended.err) == (Exit.CONFIG, True)
        secret = await service.secret("proxy")
        await service.begin("--user-header", "X-User")
        good = {"x-user": "alice", PROXY_HEADER: secret}
        for headers, status in (
            ({"x-user": "alice"}, 403),
            ({"x-user": "alice", PROXY_HEADER: "x"}, 403),
            ({"x-user": "carol", PROXY_HEADER: secret}, 403),
            ({PROXY_HEADER: secret}, 403),
        ):
            client = service.browser(**headers)
            answer = await client.post("/login", json={"token": service.tokens["alice"]})
            assert answer.status_code == status, (headers, answer.text)
        client = service.browser(**good)
        base = (await client.post("/login", json={"token": ""})).json()["base"]
        assert (await client.get(f"{base}/sessions")).status_code == 200
        client.headers["x-user"] = "bob"
        assert "Opening your page" in (await client.get(f"{base}/sessions", headers={"accept": "text/html"})).text
        assert (await client.get(f"{base}/sessions")).status_code == 401
        del client.headers["x-user"]
        assert (await client.get(f"{base}/sessions")).status_code == 401


async def test_a_full_folder_begins_nothing_new_and_what_no_user_may_do_is_refused(tmp_path: Path) -> None:
    async with service_here(tmp_path, TALK, users={"alice": ("--disk-gb", "0.000001")}) as service:
        alice = await service.sign_in("alice")
        refused = await alice.post("/sessions", folder=str(alice.folder / "projects"), text="Hello?")
        assert (refused.status_code, refused.json()["code"]) == (503, "service-disk")
        assert "at most 1e-06 GB" in refused.json()["what"]
        for path in ("/s/x/say", "/s/x/open", "/s/x/fork", "/s/x/review/message", "/s/x/commit/message"):
            assert (await alice.post(path, text="Hello?")).json()["code"] == "service-disk", path
        link = await alice.post("/devices/link")
        assert (link.status_code, "this service lets nobody do" in link.text) == (403, True)
        assert (await alice.get("/settings")).status_code == 200


def test_a_folder_that_cannot_be_looked_into_has_no_known_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert folder_size(tmp_path / "file").unread == str(tmp_path / "file"), "it is not taken for an empty one"
    assert folder_size(tmp_path / "gone") == FolderSize(0)
    size = folder_size(tmp_path)
    assert size.taken > 0
    assert size.unread == ""


async def test_another_token_keeps_the_limits_of_a_user_and_a_changed_one_applies_while_their_page_runs(
    tmp_path: Path,
) -> None:
    limits = ("--turns", "1", "--day-cost", "3", "--disk-gb", "1")
    async with service_here(tmp_path, TALK, users={"alice": limits}) as service:

        async def listed() -> str:
            return (await service.program.run("serve", "list", "--data", str(service.data))).out

        async def shows(limit: str) -> None:
            alice = await service.sign_in("alice")
            async with asyncio.timeout(PATIENCE):
                while limit not in (await alice.get("/usage")).text:
                    await asyncio.sleep(0.1)
            assert (
                f">{limit.removeprefix('$').removesuffix('.00')} applies" in (await alice.get("/settings/budgets")).text
            )

        await shows("$3.00")
        await service.add("alice")
        assert await listed() == "alice  1 turn at a time, $3.00 a day, 1 GB\n"
        await service.add("alice", "--day-cost", "7")
        assert await listed() == "alice  1 turn at a time, $7.00 a day, 1 GB\n"
        await shows("$7.00")


def test_administrators_who_add_users_at_the_same_time_lose_none(tmp_path: Path) -> None:
    def add(number: int) -> None:
        UserBook(tmp_path / "data").add(f"user{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(UserBook(tmp_path / "data").all()) == 40


async def test_sigterm_waits_for_turns_lets_nobody_in_and_a_second_one_ends_them(tmp_path: Path) -> None:
    turns = (Turn(items=(Wait(seconds=2.0), SayText(text="In time."))), *HOLDS)
    async with service_here(tmp_path, turns, users={"alice": ()}) as service:
        alice = await service.sign_in("alice")
        session = await alice.start("Be quick.")
        await alice.shows(session, "Be quick.")
        service.send(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            while (await alice.client.get("/healthz")).status_code != 503:
                await asyncio.sleep(0.02)
        assert (await service.browser().post("/login", json={"token": service.tokens["alice"]})).status_code == 503
        assert await service.ended() == 0
        await service.begin("--grace", "600")
        alice = await service.sign_in("alice")
        await alice.shows(session, "In time.")
        await alice.done(f"/s/{session}/say", text="And now?", id="now")
        await alice.shows(session, "And now?")
        service.send(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            while (await alice.client.get("/healthz")).status_code != 503:
                await asyncio.sleep(0.02)
        service.send(signal.SIGTERM)
        assert await service.ended() == 0
        assert left_of(str(service.data)) == []
        await service.begin()
        alice = await service.sign_in("alice")
        await alice.shows(session, "And now?", "In time.")


async def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    for flags, words in (
        (("--host", "0.0.0.0"), "without TLS"),
        (("--address", "ftp://x"), "is no address"),
        (("add", "../bob"), "cannot be the name"),
        (("add",), "needs a name"),
        (("remove", "bob"), "no user 'bob'"),
        (("--all-turns", "0"), "--all-turns 0 is too little"),
    ):
        ended = await program.run("serve", *flags, "--data", str(tmp_path / "data"))
        assert words in ended.err, ended.err
        assert ended.code in (Exit.CONFIG, Exit.USAGE)
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "users.json").write_text("{")
    ended = await program.run("serve", "list", "--data", str(tmp_path / "data"))
    assert (ended.code, "cannot be read" in ended.err) == (Exit.CONFIG, True)


async def test_what_a_browser_listens_to_ends_with_it_and_with_the_token_that_it_came_with(tmp_path: Path) -> None:
    async with service_here(tmp_path, TALK, users={"alice": ()}) as service:
        alice = await service.sign_in("alice")
        session = await alice.start("Hello?")
        await alice.done("/shells", on=True)
        listens = (("GET", "/events", None), ("POST", f"/s/{session}/shell", {"columns": 80, "rows": 24}))
        for method, path, body in listens:
            for _ in range(USER_REQUESTS + 5):
                async with alice.client.stream(method, alice.base + path, json=body) as stream:
                    assert stream.status_code == 200, path
        async with AsyncExitStack() as held:
            pieces = []
            for method, path, body in listens:
                stream = await held.enter_async_context(alice.client.stream(method, alice.base + path, json=body))
                pieces.append(stream.aiter_bytes())
            await service.add("alice")
            async with asyncio.timeout(PATIENCE):
                for one in pieces:
                    with suppress(httpx2.RemoteProtocolError):  # cut off in the middle
                        async for _ in one:
                            pass
        assert (await alice.get("/inbox")).status_code == 401
