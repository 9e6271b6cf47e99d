"""Signing in to a server: tokens that are renewed once for all programs, and sign-ins that come to nothing."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError

from tests.mcp.hubs import until
from tests.mcp.test_network import Web, at, served
from treadle.app.config.places import config_file, servers_file
from treadle.app.reports.server_checks import sign_in_to
from treadle.app.security.trusting import session_trust
from treadle.app.servers.identity import KeptSignIn, forget_tokens, keep_sign_in, kept_sign_in
from treadle.app.servers.signing_in import signed_in
from treadle.mcp.transports import BoundedTransport
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import McpServer

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class StrictWeb(Web):
    """Takes each refresh token once; one that comes again ends every token. `said` is how long an access token lasts.

    `instead` is what its token endpoint answers in place of new tokens.
    """

    signs_in = True

    def __init__(self, said: int | None = None) -> None:
        super().__init__()
        self.said = said
        self.made = 0
        self.live = ""
        self.reused: list[str] = []
        self.instead: Callable[[], dict[str, Any]] | None = None

    def tokens(self) -> dict[str, Any]:
        """Give new tokens."""
        self.made += 1
        self.live = f"refresh-{self.made}"
        self.granted.add(f"Bearer access-{self.made}")
        given = {"access_token": f"access-{self.made}", "token_type": "Bearer", "refresh_token": self.live}
        return given if self.said is None else {**given, "expires_in": self.said}

    def grant(self, path: str, body: bytes) -> dict[str, Any]:
        if path == "/register":
            return {**json.loads(body), "client_id": "client-1"}
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if form["grant_type"] == "refresh_token":
            self.refreshes += 1
            if self.instead is not None:
                return self.instead()
            if form["refresh_token"] != self.live:
                self.reused.append(form["refresh_token"])
                self.granted.clear()
                self.live = ""
                return {"status": 400, "error": "invalid_grant"}
        return self.tokens()


def kept_of(web: StrictWeb, url: str) -> KeptSignIn:
    """What is kept once somebody has signed in."""
    base = url.removesuffix("/mcp")
    client = {"client_id": "client-1", "redirect_uris": ["http://127.0.0.1:1/callback"]}
    until = 0.0 if web.said is None else time.time() + web.said
    metadata = web.signing_in("/.well-known/oauth-authorization-server", base)
    assert metadata is not None
    return KeptSignIn(tokens=web.tokens(), client=client, metadata=metadata, until=until)


def person_signed_in(web: StrictWeb, url: str) -> McpServer:
    server = at(url)
    keep_sign_in(server, kept_of(web, url))
    return server


def program_of(server: McpServer) -> httpx2.AsyncClient:
    """One of the programs that sign with what is kept."""
    auth = signed_in(server)
    assert auth is not None
    return httpx2.AsyncClient(auth=auth)


@pytest.mark.parametrize("said", [None, 3600, -1], ids=["nothing", "an hour", "over at once"])
async def test_of_all_who_sign_with_the_same_tokens_one_renews_them(said: int | None) -> None:
    web = StrictWeb(said)
    with served(web) as url:
        server = person_signed_in(web, url)
        async with program_of(server) as one, program_of(server) as other:
            for _ in range(4):
                web.granted.clear()
                came = await asyncio.gather(*(client.post(url, json=PING) for client in (one, other, one, other)))
                assert [found.status_code for found in came] == [200] * 4
            assert web.reused == []
            assert web.refreshes == (4 if said != -1 else 16)
        async with program_of(server) as later:
            assert (await later.post(url, json=PING)).status_code == 200


async def test_tokens_that_another_program_keeps_meanwhile_are_taken_without_asking_for_others() -> None:
    web = StrictWeb()
    with served(web) as url:
        server = person_signed_in(web, url)
        async with program_of(server) as client:
            web.granted.clear()
            person_signed_in(web, url)
            assert (await client.post(url, json=PING)).status_code == 200
        assert web.refreshes == 0


async def test_where_a_refresh_token_is_refused_what_is_kept_by_then_is_used() -> None:
    web = StrictWeb()
    with served(web) as url:
        server = person_signed_in(web, url)
        web.granted.clear()

        def refused() -> dict[str, Any]:
            person_signed_in(web, url)  # as a program does that renews without looking to the right or left
            return {"status": 400, "error": "invalid_grant"}

        web.instead = refused
        async with program_of(server) as client:
            assert (await client.post(url, json=PING)).status_code == 200
        assert web.refreshes == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 400, "error": "invalid_grant"}, "you have to sign in again: treadle mcp login web"),
        ({"status": 503}, "the sign-in cannot be renewed now: HTTP 503"),
        ({"status": 429}, "the sign-in cannot be renewed now: HTTP 429"),
    ],
)
async def test_what_cannot_be_renewed_is_told_and_kept(answer: dict[str, Any], said: str) -> None:
    web = StrictWeb()
    with served(web) as url:
        server = person_signed_in(web, url)
        before = kept_sign_in(server)
        web.granted.clear()
        web.instead = lambda: dict(answer)
        async with program_of(server) as client:
            with pytest.raises(OAuthFlowError, match=said):
                await client.post(url, json=PING)
        assert (web.refreshes, kept_sign_in(server)) == (1, before)
        web.instead = None
        async with program_of(server) as client:
            assert (await client.post(url, json=PING)).status_code == 200


async def test_tokens_that_were_removed_are_not_brought_back() -> None:
    web = StrictWeb()
    with served(web) as url:
        server = person_signed_in(web, url)
        async with program_of(server) as client:
            forget_tokens(server)
            web.granted.clear()
            with pytest.raises(OAuthFlowError, match="sign in again"):
                await client.post(url, json=PING)
        assert (web.refreshes, kept_sign_in(server)) == (0, KeptSignIn())


async def test_a_refusal_is_over_once_a_new_token_is_accepted() -> None:
    web = StrictWeb()
    with served(web) as url:
        token = {"Authorization": f"Bearer {web.tokens()['access_token']}"}
        network = BoundedTransport()
        async with httpx2.AsyncClient(transport=network) as client:
            seen = []
            for method, where, headers in (
                ("POST", "/mcp", {}),
                ("GET", "/.well-known/oauth-authorization-server", {}),
                ("DELETE", "/mcp", token),
                ("POST", "/register", {}),
                ("POST", "/mcp", token),
            ):
                await client.request(method, url.replace("/mcp", where), json=PING, headers=headers)
                seen.append(network.refused)
    assert seen == [401, 401, 401, 401, 0]


class Login:
    """A sign-in as `treadle mcp login web` does it; the address that a browser opens has `query`."""

    async def begin(self) -> None:
        shown: list[str] = []
        self.pasted: list[str] = []

        async def paste() -> str:  # in the thread of the servers, as `show` is called
            await until(lambda: bool(self.pasted))
            return self.pasted[0]

        self.task = asyncio.create_task(sign_in_to("web", session_trust(Path.cwd()), shown.append, paste))
        await until(lambda: bool(shown) or self.task.done())
        query = parse_qs(urlsplit(shown[0]).query)
        self.address, self.state = query["redirect_uri"][0], query["state"][0]

    async def visit(self, rest: str) -> tuple[int, str]:
        """Open an address of the sign-in in a browser."""
        async with httpx2.AsyncClient() as browser:
            page = await browser.get(f"{self.address}{rest}")
            return page.status_code, page.text

    async def said(self) -> str:
        """How it ended, in words."""
        try:
            return str((await self.task).state)
        except ConfigError as error:
            return f"{error.what} {error.why}"


def kept_tokens() -> str:
    file = config_file().with_name("auth.json")
    return file.read_text() if file.exists() else ""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Write the server into the user's own file."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    return lambda url: servers_file().write_text(json.dumps({"mcpServers": {"web": {"url": url}}}))


async def test_a_sign_in_holds_until_there_is_a_new_one(configured: Callable[[str], object]) -> None:
    web, login = StrictWeb(3600), Login()
    with served(web) as url:
        configured(url)
        await login.begin()
        await login.visit(f"?code=the-code&state={login.state}")
        assert await login.said() == "connected"
        before = kept_tokens()
        assert "access-1" in before
        await login.begin()
        login.task.cancel()
        await asyncio.wait((login.task,))
        assert kept_tokens() == before
        await login.begin()
        await login.visit(f"?error=access_denied&state={login.state}")
        assert "the server refused: access_denied" in await login.said()
        assert kept_tokens() == before
        await login.begin()
        await login.visit(f"?code=the-code&state={login.state}")
        assert await login.said() == "connected"
        assert "access-2" in kept_tokens()


async def test_the_browser_is_told_what_is_so_and_another_page_ends_no_sign_in(
    configured: Callable[[str], object],
) -> None:
    web, login = StrictWeb(3600), Login()
    with served(web) as url:
        configured(url)
        await login.begin()
        other = (404, "This is not the address of a sign-in that Treadle waits for.\n")
        wrong = ("?code=evil&state=another", "?error=denied&state=another", "?code=evil", f"?state={login.state}", "/x")
        assert [await login.visit(rest) for rest in wrong] == [other] * len(wrong)
        status, said = await login.visit(f"?code=the-code&state={login.state}")
        assert (status, "Go back to the terminal" in said, "Signed in" in said) == (200, True, False)
        assert await login.said() == "connected"
        await login.begin()
        status, said = await login.visit(f"?error=access_denied&state={login.state}")
        assert (status, said.startswith("You are not signed in.")) == (200, True)
        assert await login.said()


async def test_a_pasted_address_of_another_sign_in_is_refused_in_words(configured: Callable[[str], object]) -> None:
    web, login = StrictWeb(3600), Login()
    with served(web) as url:
        configured(url)
        await login.begin()
        login.pasted.append(f"{login.address}?code=the-code&state=another\n")
        assert "that address is one of another sign-in" in await login.said()


async def test_a_token_that_the_server_does_not_accept_is_told_and_not_kept(
    configured: Callable[[str], object],
) -> None:
    class OtherAudience(StrictWeb):
        def tokens(self) -> dict[str, Any]:
            return {**super().tokens(), "access_token": "for-another"}

    login = Login()
    with served(OtherAudience(3600)) as url:
        configured(url)
        await login.begin()
        await login.visit(f"?code=the-code&state={login.state}")
        assert "it does not accept the token that the sign-in gave" in await login.said()
    assert kept_tokens() == ""
