"""Serving: over standard input and output for one client, or over HTTP on loopback for those that have the token."""

import asyncio
import hmac
import os
import secrets
import socket
import sys
from typing import Any, cast

from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config

from treadle.door.program import HttpServer, listen, log_quietly, until_signal
from treadle.mcp_server.client_wire import WireLines, WireOutput
from treadle.mcp_server.task_book import TaskBook
from treadle.mcp_server.task_server import mcp_server
from treadle.protocol.errors import ConfigError

TOKEN_VARIABLE = "TREADLE_MCP_TOKEN"  # noqa: S105 - its name
_SHORTEST_TOKEN = 16
_HOST = "127.0.0.1"
_GRACE = 2
"""Seconds that open answers have when the server ends."""


async def serve_stdio(book: TaskBook, received_lines: WireLines, output: WireOutput) -> int:
    """Serve the client at standard input and output until it leaves, or a signal; returns the exit code."""
    log_quietly(serving=True)
    server = mcp_server(book)

    async def talk() -> None:
        async with stdio_server(cast("Any", received_lines), cast("Any", output)) as (received, sent):
            low = server._lowlevel_server  # noqa: SLF001 - the SDK's own way to give it streams is this one
            await low.run(received, sent, low.create_initialization_options())

    async with book:
        return await until_signal(talk)


async def serve_http(book: TaskBook, port: int) -> int:
    """Serve over streamable HTTP on loopback until a signal; returns the exit code.

    Raises `ConfigError` for a port that cannot be used, and for a token that can be guessed.
    """
    token, listening = _token(), listen(_HOST, port)
    log_quietly(serving=True)
    server = mcp_server(book)

    async def talk() -> None:
        address = f"http://{_HOST}:{listening.getsockname()[1]}/mcp"
        given = f"the token in {TOKEN_VARIABLE}" if os.environ.get(TOKEN_VARIABLE) else token
        sys.stderr.write(f"Serving MCP at {address}\nAuthorization: Bearer {given}\n")
        sys.stderr.flush()
        await _serve_http(server, token, listening)

    async with book:
        return await until_signal(talk)


async def _serve_http(server: MCPServer[Any], token: str, listening: socket.socket) -> None:
    application = TokenRequired(server.streamable_http_app(host=_HOST), token)
    config = Config(application, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE)
    serving = HttpServer(config)
    working = asyncio.ensure_future(serving.serve(sockets=[listening]))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        serving.end()
        await working
        raise


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
