"""Servers over HTTP that misbehave: expired sessions, answers without end, refusals."""

import asyncio
import json
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest

from tests.black_hole import black_hole
from tests.e2e.process import Program
from tests.mcp.hubs import call, hub_of, text_of
from tests.ready import TREADLE
from treadle.mcp import server_connection as connection
from treadle.mcp import transports
from treadle.mcp.states import ServerState
from treadle.protocol.errors import ToolError
from treadle.protocol.servers import McpServer, ServerEra, ServerTransport
from treadle.protocol.tools import Outcome, Risk


class Web:
    """A server over streamable HTTP that answers with JSON. `forgets` sessions at so many calls."""

    def __init__(self, *, forgets: int = 0, size: int = 1, status: int = 200, events: bool = False) -> None:
        self.forgets, self.size, self.status, self.events = forgets, size, status, events
        self.begun = 0
        self.called = 0
        self.headers: list[dict[str, str]] = []
        self.granted: set[str] = set()

    signs_in = False
    packs = False
    hangs: threading.Event | None = None
    refreshes = 0

    def signing_in(self, path: str, base: str) -> dict[str, Any] | None:
        """What somebody who signs in reads first."""
        if path.startswith("/.well-known/oauth-protected-resource"):
            return {"resource": f"{base}/mcp", "authorization_servers": [base]}
        if path.startswith("/.well-known/oauth-authorization-server"):
            return {
                "issuer": base,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        return None

    def grant(self, path: str, body: bytes) -> dict[str, Any]:
        """Register a client, or give tokens for a code or a refresh token."""
        if path == "/register":
            return {**json.loads(body), "client_id": "client-1"}
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.refreshes += form["grant_type"] == "refresh_token"
        assert form.get("code", "the-code") == "the-code"
        token = f"access-{len(self.granted)}"
        self.granted.add(f"Bearer {token}")
        return {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1"}

    def answer(self, message: dict[str, Any], session: str) -> tuple[int, dict[str, Any] | None]:
        match message["method"]:
            case "initialize":
                self.begun += 1
                info = {"name": "web", "version": "1"}
                return 200, {
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info,
                }  # fmt: skip
            case "tools/list":
                return 200, {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                if self.forgets:
                    self.forgets -= 1
                    return 404, None
                self.called += 1
                return 200, {"content": [{"type": "text", "text": "x" * self.size}]}
            case _:
                return 202, None


def packed(size: int) -> bytes:
    """So many MiB, once they are unpacked."""
    packer = zlib.compressobj(wbits=31)
    return b"".join([*(packer.compress(b" " * 65_536) for _ in range(size * 16)), packer.flush()])


class ClosedWeb(Web):
    """Registers nobody."""

    def grant(self, path: str, body: bytes) -> dict[str, Any]:
        return {}


@contextmanager
def served(web: Web) -> Iterator[str]:
    """Serve it; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

        def do_GET(self) -> None:
            found = web.signing_in(self.path, f"http://{self.headers['Host']}")
            if found is None:
                self._send(405, b"", "text/plain")
            else:
                self._send(200, json.dumps(found).encode())

        def do_DELETE(self) -> None:
            if web.hangs is not None:
                web.hangs.wait(30)
            self._send(200, b"", "text/plain")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path in ("/register", "/token"):
                given = web.grant(self.path, body)
                status = given.pop("status", 201 if self.path == "/register" else 200)
                self._send(status, json.dumps(given).encode())
                return
            message = json.loads(body)
            if web.signs_in and self.headers.get("Authorization") not in web.granted:
                self._send(401, b"", "text/plain")
                return
            web.headers.append(dict(self.headers))
            if web.status != 200:
                self._send(web.status, b"no", "text/plain")
                return
            if message["method"] == "server/discover":
                error = {"code": -32601, "message": "unknown"}
                self._send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
                return
            status, result = web.answer(message, self.headers.get("mcp-session-id", ""))
            body = (
                b""
                if result is None
                else json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            )
            if web.packs and message["method"] == "tools/call":
                self._send(status, packed(64), encoding="gzip")
            elif web.events and message["method"] == "tools/call":
                self._send(status, b"event: message\ndata: " + body + b"\n\n", "text/event-stream")
            else:
                self._send(status, body)

        def _send(self, status: int, body: bytes, kind: str = "application/json", encoding: str = "") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            if encoding:
                self.send_header("content-encoding", encoding)
            self.send_header("content-length", str(len(body)))
            self.send_header("mcp-session-id", f"session-{web.begun}")
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, address: object) -> None:
            # a client that left is no fault of the server, and its words would be taken for the product's
            if not isinstance(sys.exception(), OSError):
                super().handle_error(request, address)  # type: ignore[arg-type]

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def at(url: str, **more: Any) -> McpServer:
    return McpServer(name="web", transport=ServerTransport.HTTP, url=url, era=ServerEra.LEGACY, **more)


async def test_an_expired_session_is_begun_again_once(tmp_path: Path) -> None:
    web = Web(forgets=1)
    with served(web) as url:
        async with hub_of(tmp_path, at(url)) as hub:
            assert text_of(await call(hub, "mcp__web__read")) == "x"
            assert (web.begun, web.called) == (2, 1)


async def test_a_session_that_expires_again_fails_the_call(tmp_path: Path) -> None:
    web = Web(forgets=2)
    with served(web) as url:
        async with hub_of(tmp_path, at(url)) as hub:
            assert text_of(await call(hub, "mcp__web__read")) == "Session terminated"
            assert web.called == 0
            assert text_of(await call(hub, "mcp__web__read")) == "x"


@pytest.mark.parametrize("events", [False, True])
async def test_an_answer_beyond_the_bound_fails_the_call_and_the_server_stays_usable(
    tmp_path: Path, *, events: bool
) -> None:
    web = Web(size=9 * 1024 * 1024, events=events)
    with served(web) as url:
        async with hub_of(tmp_path, at(url, call_seconds=10)) as hub:
            (ended,) = await asyncio.gather(call(hub, "mcp__web__read"), return_exceptions=True)
            assert isinstance(ended, ToolError) or getattr(ended, "outcome", None) is Outcome.FAILED
            web.size = 3
            assert text_of(await call(hub, "mcp__web__read")) == "xxx"


async def test_a_server_that_hangs_at_the_end_keeps_nobody_and_says_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    web = Web()
    web.hangs = threading.Event()
    with served(web) as url:
        async with hub_of(tmp_path, at(url)) as hub:
            assert hub.health()[0].state is ServerState.CONNECTED
        assert hub.health()[0].state is ServerState.CLOSED
        web.hangs.set()
    assert capfd.readouterr().err == ""


async def test_headers_are_sent_and_a_refusal_is_told(tmp_path: Path) -> None:
    web = Web(status=401)
    with served(web) as url:
        async with hub_of(tmp_path, at(url, headers={"Authorization": "Bearer t0ken"})) as hub:
            (one,) = hub.health()
            assert one.state in (ServerState.RECONNECTING, ServerState.FAILED)
    assert {found["Authorization"] for found in web.headers} == {"Bearer t0ken"}


async def test_nobody_there_does_not_keep_the_first_request_waiting(tmp_path: Path) -> None:
    async with hub_of(tmp_path, at("http://127.0.0.1:9/mcp"), wait=9.0) as hub:
        (one,) = hub.health()
        assert one.state is ServerState.RECONNECTING
        assert "nothing listens at http://127.0.0.1:9/mcp" in one.why.lower()


async def test_an_address_is_named_with_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connection, transports):
        monkeypatch.setattr(module, "connect_seconds", lambda _: 0.1)
    with black_hole() as port:
        async with hub_of(tmp_path, at(f"http://127.0.0.1:{port}/mcp")) as hub:
            why = hub.health()[0].why
    assert why.startswith(f"no connection to http://127.0.0.1:{port}/mcp within 0.1 s. Check the network")
    web = Web()
    with served(web) as url:
        async with hub_of(tmp_path, at(url.replace("http://", "https://"))) as hub:
            assert "does not answer in TLS (WRONG_VERSION_NUMBER)" in hub.health()[0].why
    async with hub_of(tmp_path, at("http://nowhere.invalid/mcp")) as hub:
        assert hub.health()[0].why.startswith("the host of http://nowhere.invalid/mcp (port 80) was not found")


async def test_a_proxy_of_the_environment_serves_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web()
    with served(web) as url:
        monkeypatch.setenv("http_proxy", url.removesuffix("/mcp"))
        async with hub_of(tmp_path, at("http://elsewhere.test/mcp")) as hub:
            assert hub.health()[0].state is ServerState.CONNECTED
    async with hub_of(tmp_path, at("http://elsewhere.test/mcp")) as hub:
        why = hub.health()[0].why
    assert why.startswith("nothing listens at the proxy http://127.0.0.1:")
    assert "for http://elsewhere.test/mcp (port 80). Check HTTPS_PROXY" in why


async def test_a_server_elsewhere_may_change_what_others_see(tmp_path: Path) -> None:
    from treadle.mcp.server_tool import risk_of
    from treadle.mcp.states import DeclaredTool

    tool = DeclaredTool(name="read", description="", parameters={}, digest="", read_only=True)
    far, near = at("https://example.org/mcp"), at("http://localhost:1/mcp")
    assert [risk_of(one, tool) for one in (far, near)] == [Risk.REMOTE, Risk.EXECUTE]
    allowed = at("https://example.org/mcp", allowed=("read",))
    assert risk_of(allowed, tool) is Risk.EXECUTE


@pytest.mark.parametrize("pastes", [False, True])
async def test_signing_in_comes_back_by_itself_or_is_pasted_and_lasts(tmp_path: Path, *, pastes: bool) -> None:
    web = Web()
    web.signs_in = True
    with served(web) as url:
        program = Program(tmp_path / "home")
        (tmp_path / "home").mkdir()
        added = await program.run("mcp", "add", "web", "--url", url, cwd=tmp_path)
        assert (added.code, added.out.splitlines()[1], added.err) == (0, "Sign in: treadle mcp login web", "")
        before = await program.run("mcp", "test", "web", cwd=tmp_path)
        assert (before.code, "To sign in: treadle mcp login web" in before.out) == (1, True)
        process = await asyncio.create_subprocess_exec(
            *TREADLE, "mcp", "login", "web", cwd=tmp_path, env=program.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        while "/authorize?" not in (line := (await process.stdout.readline()).decode()):
            assert line
        query = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
        back = f"{query['redirect_uri']}?code=the-code&state={query['state']}"
        if pastes:
            process.stdin.write(f"{back}\n".encode())
        else:
            assert b"Go back to the terminal" in await asyncio.to_thread(lambda: urlopen(back).read())
        said = await process.stdout.read()
        assert (await process.wait(), said.decode().splitlines()[-1]) == (0, "Signed in to web, which has 1 tool.")
        assert (await program.run("mcp", "test", "web", cwd=tmp_path)).code == 0
        kept = tmp_path / "home" / "auth.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        table = json.loads(kept.read_text())
        ((name, value),) = table["keys"].items()
        table["keys"][name] = json.dumps({**json.loads(value), "until": 1.0})
        kept.write_text(json.dumps(table))
        assert (await program.run("mcp", "test", "web", cwd=tmp_path)).code == 0
        assert web.refreshes == 1
        assert (await program.run("mcp", "remove", "web", cwd=tmp_path)).code == 0
        assert json.loads(kept.read_text())["keys"] == {}


async def test_an_answer_that_grows_when_it_is_unpacked_is_not_read(tmp_path: Path) -> None:
    web = Web()
    web.packs = True
    with served(web) as url:
        async with hub_of(tmp_path, at(url, call_seconds=20)) as hub:
            tracemalloc.start()
            (ended,) = await asyncio.gather(call(hub, "mcp__web__read"), return_exceptions=True)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert isinstance(ended, ToolError) or getattr(ended, "outcome", None) is Outcome.FAILED
            assert most < 8 * 1024 * 1024
        assert {found["Accept-Encoding"] for found in web.headers} == {"identity"}


@pytest.mark.parametrize("project", [False, True])
async def test_a_server_that_asks_to_sign_in_is_kept_with_nothing_approved(tmp_path: Path, *, project: bool) -> None:
    web = Web()
    web.signs_in = True
    (tmp_path / "home").mkdir()
    (tmp_path / "ws").mkdir()
    program = Program(tmp_path / "home")
    file = tmp_path / ("ws/.mcp.json" if project else "home/mcp.json")
    flags = ("--project",) if project else ()
    with served(web) as url:
        added = await program.run("mcp", "add", "web", "--url", url, *flags, cwd=tmp_path / "ws")
        assert (added.code, list(json.loads(file.read_text())["mcpServers"])) == (0, ["web"])
        assert not (tmp_path / "home" / "mcp" / "pins").exists()


async def test_a_server_that_refuses_the_header_it_is_given_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with served(Web(status=401)) as url:
        words = ("mcp", "add", "web", "--url", url, "--header", "Authorization: Bearer t0ken")
        added = await Program(tmp_path / "home").run(*words, cwd=tmp_path)
    assert (added.code, "[mcp-connect]" in added.err) == (78, True)
    assert not (tmp_path / "home" / "mcp.json").exists()


async def test_a_sign_in_that_fails_does_not_lead_back_to_itself(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    program = Program(tmp_path / "home")
    web = ClosedWeb()
    web.signs_in = True
    with served(web) as url:
        (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"web": {"url": url}}}))
        ended = await program.run("mcp", "login", "web", cwd=tmp_path)
    assert ended.code == 78
    assert ended.err.startswith("treadle: You are not signed in to web. [mcp-login]\n")
    assert "treadle mcp login" not in ended.err
