"""Serving the page: on loopback, or on this computer's network where that is asked for."""

import asyncio
import socket
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uvicorn import Config

from treadle.app.http_serving import HttpServer, listen, log_quietly, until_signal
from treadle.web.application import web_application
from treadle.web.book import SessionBook
from treadle.web.keys import Keys

_GRACE = 2
"""Seconds that open answers have when the server ends."""

_MOST_CONNECTIONS = 300


async def serve_page(folder: Path, flags: Mapping[str, Any], *, port: int, opens: bool, trust: bool) -> int:
    """Serve until a signal; returns the exit code. Raises `ConfigError` for a port that cannot be used."""
    listening = listen("127.0.0.1", port)
    log_quietly()
    keys = Keys()
    number = listening.getsockname()[1]
    hosts = [f"{name}:{number}" for name in ("127.0.0.1", "localhost", "[::1]")]
    async with SessionBook(folder, flags, trust=trust) as book:
        application = web_application(book, keys, hosts, cookie=f"treadle-{number}")

        async def serve() -> None:
            address = f"http://127.0.0.1:{number}/"
            sys.stdout.write(f"{address}#token={keys.token}\n")
            sys.stdout.flush()
            if opens:
                # The browser's command line can be read by others: what it holds can be used once.
                await asyncio.to_thread(webbrowser.open, f"{address}#token={keys.new_link()}")
            await _serve(application, listening)

        return await until_signal(serve, hang_up=False)


async def _serve(application: Any, listening: socket.socket) -> None:
    config = Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    serving = HttpServer(config)
    working = asyncio.ensure_future(serving.serve(sockets=[listening]))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        serving.should_exit = True
        await working
        raise
