"""The connections of browsers: a request arrives whole in its time, and whoever holds many keeps nobody out."""

import asyncio
import socket
from collections.abc import Iterable
from itertools import count
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from treadle.web.request_guard import ANSWER_HEADERS

MOST_CONNECTIONS = 300

_SECONDS = {"head": 10.0, "body": 60.0}
"""That a request has for its head, and then for its body."""

_UNHEARD = 60_000
"""Milliseconds after which a browser that takes nothing any more is gone."""

_numbers = count()


class PageConnection(H11Protocol):
    """One connection. Where there are too many, the oldest that belongs to nobody who was let in ends for a new one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._number = next(_numbers)
        self._stage = ""
        self._asked = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def belongs(self) -> bool:
        """Whether the newest request on it is of a browser that was let in."""
        if not self._asked:
            return False
        return self.cycle.scope.get("state", {}).get("visitor") is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and make room."""
        super().connection_made(transport)
        self._time("head")
        timeout, own = getattr(socket, "TCP_USER_TIMEOUT", None), transport.get_extra_info("socket")
        if timeout is not None and own.family != socket.AF_UNIX:  # a browser that is gone without a word
            own.setsockopt(socket.IPPROTO_TCP, timeout, _UNHEARD)
        if len(self.connections) > MOST_CONNECTIONS:
            _oldest(self.connections, self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._time("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and say how long the rest may take."""
        super().data_received(data)
        self._asked = bool(self.cycle)
        match self.conn.their_state:
            case h11.IDLE:
                self._time("head")
            case h11.SEND_BODY:
                self._time("body")
            case _:
                self._time("")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, with the headers that every answer has."""
        headers = [*ANSWER_HEADERS.items(), ("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        body = f"{msg}\n".encode()
        for event in (
            h11.Response(status_code=400, headers=[*headers, ("content-length", str(len(body)))]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE, h11.SEND_BODY):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _time(self, stage: str) -> None:
        if stage == self._stage:
            return  # what comes slowly gets no new time
        if self._timer is not None:
            self._timer.cancel()
        self._stage = stage
        self._timer = self.loop.call_later(_SECONDS[stage], self.transport.abort) if stage else None


def _oldest(connections: Iterable[object], newest: PageConnection) -> PageConnection:
    found = [one for one in connections if isinstance(one, PageConnection) and one is not newest and not one.belongs]
    return min(found, key=lambda one: one._number, default=newest)  # noqa: SLF001 - its own kind
