"""Whoever asks the page's server as the page never does is refused, byte by byte."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tests.web.asking import PATIENCE, Asked, asked
from treadle.web.page_keys import Keys
from treadle.web.request_guard import PageGuard


@pytest.fixture
async def hurried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    """A server to which all requests come in one moment, however long this computer takes for them."""
    async with asked(tmp_path / "home", monkeypatch, clock=lambda: 1_000.0) as found:
        yield found


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    async with asked(tmp_path / "home", monkeypatch) as found:
        yield found


START = {"folder": "/nowhere", "text": "go"}


async def test_every_answer_has_the_policy_for_its_content(server: Asked) -> None:
    entrance = server.enter()
    answers = [
        await server.ask("/"),
        await server.ask("/healthz"),
        await server.ask("/static/app.js"),
        await server.ask("/static/none.js"),
        await server.ask("/none", entrance),
        await server.ask("/sessions", entrance, method="POST", body=START),
        await server.ask("/", host="evil.example"),
        await server.ask("/", method="DELETE"),
        await server.raw(b"no http at all\r\n\r\n"),
        await server.raw(b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"),
    ]
    assert [one.status for one in answers] == [200, 200, 200, 404, 404, 400, 421, 405, 400, 400]
    for one in answers:
        assert "default-src 'none'" in one.headers["content-security-policy"]
        assert one.headers["x-dns-prefetch-control"] == "off"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
    assert "Open the link" in answers[0].text
    assert "set-cookie" not in answers[0].headers


async def test_a_name_that_somebody_else_leads_here_is_not_served(server: Asked) -> None:
    entrance = server.enter()
    for host in ("evil.example", "localhost", "127.0.0.1.evil.example", "0.0.0.0", "[::ffff:127.0.0.1]"):
        named = f"{host}:{server.port}"
        found = await server.ask("/", entrance, host=named, origin=f"http://{named}")
        assert found.status == 421, host
    for named in ("127.0.0.1", "127.0.0.1:1", "[::1]", f" {server.port}"):
        assert (await server.ask("/", entrance, host=named)).status in (400, 421), named


async def test_a_request_without_a_host_is_not_served(server: Asked) -> None:
    assert (await server.raw(b"GET / HTTP/1.0\r\n\r\n")).status == 421
    assert (await server.raw(b"GET / HTTP/1.1\r\n\r\n")).status == 400
    absolute = f"GET http://evil.example/ HTTP/1.1\r\nhost: {server.host}\r\nconnection: close\r\n\r\n"
    assert (await server.raw(absolute.encode())).status == 401


NOT_THE_PAGE: tuple[dict[str, str], ...] = (
    {"origin": ""},
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "https://HOST"},
    {"origin": "http://HOST.evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "none"},
    {"content_type": ""},
    {"content_type": "text/plain"},
    {"content_type": "application/x-www-form-urlencoded"},
    {"content_type": "multipart/form-data"},
    {"x_treadle_key": ""},
    {"x_treadle_key": "guessed"},
)


async def test_only_the_page_itself_may_act(server: Asked) -> None:
    entrance = server.enter()
    for more in NOT_THE_PAGE:
        filled = {name: value.replace("HOST", server.host) for name, value in more.items()}
        refused = await server.ask("/sessions", entrance, method="POST", body=START, **filled)
        assert refused.status == 403, more
        assert "/nowhere" not in refused.text
    taken = await server.ask("/sessions", entrance, method="POST", body=START)
    assert taken.status == 400
    assert "/nowhere" in taken.text


COMES_FROM = (
    ("same-origin", "cors", "empty", 200),
    ("none", "navigate", "document", 200),
    ("cross-site", "navigate", "document", 200),
    ("cross-site", "navigate", "iframe", 403),
    ("same-site", "navigate", "object", 403),
    ("same-site", "no-cors", "image", 403),
    ("cross-site", "no-cors", "script", 403),
    ("cross-site", "cors", "empty", 403),
    ("same-site", "websocket", "websocket", 403),
)


async def test_a_page_of_elsewhere_may_lead_here_and_nothing_else(server: Asked) -> None:
    entrance = server.enter()
    for site, mode, dest, status in COMES_FROM:
        more = {"sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": dest}
        assert (await server.ask("/inbox", entrance, **more)).status == status, more
        assert (await server.ask("/static/app.js", None, **more)).status == status, more


async def test_who_has_no_cookie_sees_nothing(server: Asked) -> None:
    for path in ("/inbox", "/events", "/s/x", "/devices", "/inbox/cards", "/%2e%2e/", "//", "/static"):
        assert (await server.ask(path)).status == 401, path
    assert (await server.ask("/sessions", method="POST", body=START)).status == 401
    guessed = (await server.ask("/inbox", cookie=f"{server.cookie_name}=guessed")).status
    other = (await server.ask("/inbox", cookie=f"treadle-1={server.enter().cookie}")).status
    assert (guessed, other) == (401, 401)


async def test_the_cookie_is_found_among_those_of_other_servers(server: Asked) -> None:
    own = f"{server.cookie_name}={server.enter().cookie}"
    for others in (
        'a={"b": [1,"2"]}; {own}',
        "{own}; x",
        "=; ;{own}",
        'q="; {own}',
        f"{server.cookie_name}=old; {{own}}",
    ):
        found = await server.ask("/inbox", cookie=others.replace("{own}", own))
        assert found.status == 200, others


async def test_a_browser_of_another_run_or_shut_out_is_not_known(server: Asked) -> None:
    entrance, stranger = server.enter(), Keys()
    foreign = stranger.let_in(stranger.token)
    assert foreign is not None
    assert (await server.ask("/inbox", foreign)).status == 401
    (one,) = server.keys.visitors()
    server.keys.shut_out(one[0].name)
    assert (await server.ask("/inbox", entrance)).status == 401


async def test_wrong_tokens_keep_the_right_one_from_nothing(server: Asked) -> None:
    wrong = [server.ask("/login", method="POST", body={"token": f"no-{number}"}) for number in range(300)]
    assert {one.status for one in await asyncio.gather(*wrong)} == {403}
    right = await server.ask("/login", method="POST", body={"token": server.keys.token})
    assert right.status == 200
    cookie = right.headers["set-cookie"]
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert server.keys.token not in cookie


async def test_many_requests_of_strangers_do_not_slow_down_who_was_let_in(hurried: Asked) -> None:
    entrance = hurried.enter()
    strangers = [await hurried.ask("/healthz") for _ in range(260)]
    assert {one.status for one in strangers} == {200, 429}
    assert (await hurried.ask("/inbox", entrance)).status == 200


async def test_one_who_opens_many_pages_at_once_gets_all_of_their_fixed_files(hurried: Asked) -> None:
    entrance = hurried.enter()
    files = [await hurried.ask("/static/app.js", entrance) for _ in range(260)]
    assert {one.status for one in files} == {200}
    pages = [await hurried.ask("/healthz", entrance) for _ in range(260)]
    assert {one.status for one in pages} == {200, 429}


async def test_a_body_is_bounded_with_and_without_its_length(server: Asked) -> None:
    entrance = server.enter()
    for path, length in (("/sessions", 17_000_000), ("/s/x/say", 17_000_000), ("/s/x/answer", 5_000_000)):
        big = b'{"folder": "' + b"x" * length + b'"}'
        assert (await server.ask(path, entrance, method="POST", body=big)).status == 413
    assert (await server.ask("/login", method="POST", body={"token": "x" * 5_000})).status == 413
    for path, length in (("/login", 20_000), ("/sessions", 17_000_000)):
        head = [f"POST {server.path(path)} HTTP/1.1", "transfer-encoding: chunked", "connection: close"]
        head += [f"{name}: {value}" for name, value in server.headers(entrance).items()]
        chunk = f"{length:x}\r\n".encode() + b"x" * length + b"\r\n0\r\n\r\n"
        found = await server.raw("\r\n".join([*head, "", ""]).encode() + chunk)
        assert found.status == 413, path
    for said in ("-1", "1e3", "9" * 30, "0x10"):
        head = ["POST /login HTTP/1.1", f"content-length: {length}"]
        head += [f"{name}: {value}" for name, value in server.headers(None).items()]
        assert (await server.raw("\r\n".join([*head, "", ""]).encode())).status in (400, 413), said


NO_BODIES = (
    b"",
    b"{",
    b"[" * 100_000,
    b'{"folder": ' * 20_000 + b"1" + b"}" * 20_000,
    b'{"folder": "\\ud800", "text": "go"}',
    b'{"folder": "\xff\xfe", "text": "go"}',
    b'{"folder": 1, "text": "go"}',
    b'{"folder": "a\\u0000b", "text": "go"}',
    b'{"folder": "~nobody-of-this-name/x", "text": "go"}',
    b'{"folder": "' + b"a/" * 4_000 + b'", "text": "go"}',
    b'{"folder": "/", "text": "go"}',
    b'{"folder": "/nowhere", "text": "  \\u2028"}',
)


async def test_a_body_that_is_none_is_said_to_be(server: Asked) -> None:
    entrance = server.enter()
    for body in NO_BODIES:
        found = await server.ask("/sessions", entrance, method="POST", body=body)
        assert found.status == 400, (body[:80], found.text)


ODD_NAMES = ("x", "%00", "..%2f..%2fetc", "%2e%2e", "a" * 4_000, "%F0%9F%92%A9", "%ff", "'%20OR%201=1--", "<script>")


async def test_odd_names_of_sessions_are_of_none(server: Asked) -> None:
    for session in ODD_NAMES:
        await _is_of_none(server, session)


async def _is_of_none(server: Asked, session: str) -> None:
    entrance = server.enter()
    for path in (f"/s/{session}", f"/s/{session}/items?before=1", f"/s/{session}/items?before={'9' * 5_000}"):
        found = await server.ask(path, entrance, accept="text/html")
        assert found.status == 404, path
        assert "<script>" not in found.text.lower().replace('<script type="module"', "")
    for act in ("say", "answer", "change", "interrupt"):
        body = {"text": "x", "question_id": "q", "option": "allow_once"}
        assert (await server.ask(f"/s/{session}/{act}", entrance, method="POST", body=body)).status == 404, act


@pytest.mark.parametrize(
    "path",
    ["..%2fkeys.py", "../keys.py", "%2e%2e/keys.py", "....//keys.py", "/etc/passwd", "%00", "a%0d%0aset-cookie:x"],
)
async def test_nothing_but_the_files_of_the_page_is_served(server: Asked, path: str) -> None:
    found = await server.ask(f"/static/{path}")
    assert found.status in (401, 404)
    assert "set-cookie" not in found.headers
    assert b"LINK_SECONDS" not in found.body


async def test_head_is_answered_without_a_stream(server: Asked) -> None:
    entrance = server.enter()
    assert (await server.ask("/inbox", entrance, method="HEAD")).status == 200
    assert (await server.ask("/events", entrance, method="HEAD")).status == 405


@pytest.mark.parametrize("cursor", ["", ".", "x.y", f"a.{'9' * 5_000}", "a.-1", "a.٣", "%00.%ff"])
async def test_odd_cursors_begin_anew(server: Asked, cursor: str) -> None:
    async with server.client(server.enter()) as client, client.stream("GET", f"/events?cursor={cursor}") as found:
        assert found.status_code == 200
        assert "data:" in await anext(text async for text in found.aiter_text() if "data:" in text)


async def test_a_browser_that_is_shut_out_hears_no_more(server: Asked) -> None:
    async with server.client(server.enter()) as client, client.stream("GET", "/events") as stream:
        heard = stream.aiter_text()
        await anext(heard)
        server.keys.shut_out("browser 1")
        async with asyncio.timeout(90):
            assert [text async for text in heard if "data" in text and "waiting" not in text] == []


async def test_one_browser_listens_with_so_many_pages_and_no_more(server: Asked) -> None:
    entrance = server.enter()
    head = [f"{name}: {value}" for name, value in server.headers(entrance).items()]
    request = "\r\n".join([f"GET {server.path('/events')} HTTP/1.1", *head, "", ""]).encode()
    opened = []
    for _ in range(24):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request)
        assert b" 200 " in await reader.readline()
        opened.append(writer)
    assert (await server.ask("/events", entrance)).status == 503
    for writer in opened:
        writer.close()
    async with asyncio.timeout(PATIENCE):  # pages that went make room
        while await _status_of_events(server, request) != 200:
            await asyncio.sleep(0.02)


async def _status_of_events(server: Asked, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("[2001:db8::7]:8000", 200),
        ("[2001:DB8::7]:8000", 200),
        ("[2001:db8::8]:8000", 421),
        ("2001:db8::7:8000", 421),
        ("[2001:db8::7]", 421),
    ],
)
async def test_on_a_network_the_page_is_called_by_the_address_of_ipv6_that_a_connection_came_to(
    host: str, status: int
) -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("served")(scope, receive, send)

    keys = Keys()
    guard = PageGuard(page, keys, ["127.0.0.1:8000"], cookie="c", empty=str, network=True)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await guard({**scope, "server": ("2001:db8::7", 8000)}, receive, send)

    transport = httpx2.ASGITransport(app=serve, client=("2001:db8::9", 50_000))
    async with httpx2.AsyncClient(transport=transport, base_url="https://127.0.0.1:8000") as client:
        assert (await client.get("/healthz", headers={"host": host})).status_code == status
