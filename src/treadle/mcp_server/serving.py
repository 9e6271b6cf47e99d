"""Serving: over standard input and output for one client, or over HTTP on loopback for those that have the token."""

import asyncio
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server

from treadle.app.exits import Exit
from treadle.app.presentation.words import clip_text
from treadle.app.report import write_log
from treadle.mcp_server.book import TaskBook
from treadle.mcp_server.server import mcp_server
from treadle.mcp_server.wire import WireLines, WireOutput
from treadle.protocol.errors import ConfigError

TOKEN_VARIABLE = "TREADLE_MCP_TOKEN"  # noqa: S105 - its name
_SHORTEST_TOKEN = 16
_LONGEST_LINE = 1_000
_HOST = "127.0.0.1"
_GRACE = 2
"""Seconds that open answers have when the server ends."""


class ProgramLog(logging.Handler):
    """Writes what the SDK and the HTTP server report into the program's log, a line each: clients that go are usual."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        error = record.exc_info[1] if record.exc_info else None
        why = "" if error is None else f": {error!r}"
        write_log(clip_text(f"{record.name}: {record.getMessage()}{why}", _LONGEST_LINE))


def log_quietly() -> None:
    """Keep libraries from writing to standard error."""
    logging.basicConfig(level=logging.ERROR, handlers=[ProgramLog()], force=True)


async def serve_stdio(book: TaskBook, received_lines: WireLines, output: WireOutput) -> int:
    """Serve the client at standard input and output until it leaves, or a signal; returns the exit code."""
    log_quietly()
    server = mcp_server(book)

    async def talk() -> None:
        async with stdio_server(cast("Any", received_lines), cast("Any", output)) as (received, sent):
            low = server._lowlevel_server  # noqa: SLF001 - the SDK's own way to give it streams is this one
            await low.run(received, sent, low.create_initialization_options())

    async with book:
        return await _until_signal(talk)


async def serve_http(book: TaskBook, port: int) -> int:
    """Serve over streamable HTTP on loopback until a signal; returns the exit code.

    Raises `ConfigError` for a port that cannot be used, and for a token that can be guessed.
    """
    token, listening = _token(), _listen(port)
    log_quietly()
    server = mcp_server(book)

    async def talk() -> None:
        address = f"http://{_HOST}:{listening.getsockname()[1]}/mcp"
        given = f"the token in {TOKEN_VARIABLE}" if os.environ.get(TOKEN_VARIABLE) else token
        sys.stderr.write(f"Serving MCP at {address}\nAuthorization: Bearer {given}\n")
        sys.stderr.flush()
        await _serve_http(server, token, listening)

    async with book:
        return await _until_signal(talk)


async def _serve_http(server: MCPServer[Any], token: str, listening: socket.socket) -> None:
    application = TokenRequired(server.streamable_http_app(host=_HOST), token)
    config = Config(application, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE)
    serving = _HttpServer(config)
    working = asyncio.ensure_future(serving.serve(sockets=[listening]))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        serving.should_exit = True
        await working
        raise


class _HttpServer(Server):
    """Leaves the signals alone: whoever serves takes them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class TokenRequired:
    """Lets requests through that have the token; the comparison takes the same time for every wrong one."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application = application
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "lifespan":
            said = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(said.encode(errors="replace"), self._expected):
                refusal = PlainTextResponse(
                    "The token is missing or wrong.\n", status_code=401, headers={"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._application(scope, receive, send)


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(32)
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            "mcp-token",
            f"The token in {TOKEN_VARIABLE} cannot be used.",
            why=f"It needs {_SHORTEST_TOKEN} characters or more, of ASCII.",
            fix=f"Unset {TOKEN_VARIABLE} to get a new one, or set a longer one.",
        )
    return token


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_HOST, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(
            "port-unusable",
            f"Treadle cannot listen on port {port}.",
            why=str(error),
            fix="Choose another with --port, or leave it out to get a free one.",
        ) from error
    return listening


async def _until_signal(serve: Callable[[], Awaitable[None]]) -> int:
    """Serve until that ends by itself, or SIGINT, SIGTERM or SIGHUP end it; returns the exit code."""
    loop = asyncio.get_running_loop()
    code = Exit.DONE
    serving = asyncio.ensure_future(serve())

    def end(number: signal.Signals) -> None:
        nonlocal code
        code = Exit(128 + number)
        serving.cancel()

    heeded = [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, end, number)
    await asyncio.wait({serving})
    for number in heeded:
        loop.remove_signal_handler(number)
    if code is Exit.DONE:
        serving.result()
    elif not serving.cancelled():
        serving.exception()  # of no interest: the wire was cut in the middle
    return code
