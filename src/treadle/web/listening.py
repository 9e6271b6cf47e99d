"""One port for both: TLS for other devices, HTTP for this computer; the first byte says what a connection speaks."""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Any

from uvicorn import Config

from treadle.door.program import HttpServer
from treadle.web.browsers import PageConnection

_TLS_HANDSHAKE = 0x16
_FIRST_BYTE_SECONDS = 10.0
_MOST_WAITING = 300
"""Connections that said nothing yet; the oldest one ends for a new one."""


_GRACE = 2
"""Seconds that open answers have when the server ends."""


def page_config(application: Any) -> Config:
    """Say how everything that browsers reach is served: nothing that a client says of itself is believed."""
    return Config(
        application,
        http=PageConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=64 * 1024,
    )


class PageServer(HttpServer):
    """Serves; with a `context` connections that begin with TLS get it."""

    def __init__(self, config: Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context
        self._accepting: list[asyncio.Task[None]] = []
        self._waiting: dict[asyncio.Task[None], None] = {}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        if self._context is None:
            await super().startup(sockets)
            return
        await super().startup([])
        for one in sockets or ():
            one.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(one), name="taking connections"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, and end those that are open."""
        tasks = [*self._accepting, *self._waiting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, _ = await loop.sock_accept(listening)
            except OSError:  # too many files are open, or the client went
                await asyncio.sleep(0.1)
                continue
            task = asyncio.create_task(self._begin(taken), name="a new connection")
            self._waiting[task] = None
            task.add_done_callback(lambda done: self._waiting.pop(done, None))
            if len(self._waiting) > _MOST_WAITING:
                next(iter(self._waiting)).cancel()

    async def _begin(self, taken: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        given = False
        try:
            async with asyncio.timeout(_FIRST_BYTE_SECONDS):
                first = await _first_byte(taken)
            context = self._context if first == _TLS_HANDSHAKE else None
            given = True
            with suppress(OSError, ssl.SSLError, TimeoutError):
                await loop.connect_accepted_socket(
                    lambda: self.config.http_protocol_class(  # type: ignore[call-arg]
                        config=self.config, server_state=self.server_state, app_state=self.lifespan.state
                    ),
                    taken,
                    ssl=context,
                    ssl_handshake_timeout=_FIRST_BYTE_SECONDS if context else None,
                )
        except (TimeoutError, OSError):
            pass
        finally:
            if not given:
                taken.close()


async def _first_byte(taken: socket.socket) -> int:
    """Look at the first byte without taking it; -1 where nothing comes any more."""
    loop = asyncio.get_running_loop()
    taken.setblocking(False)
    ready = asyncio.Event()
    loop.add_reader(taken, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(taken)
    found = taken.recv(1, socket.MSG_PEEK)
    return found[0] if found else -1
