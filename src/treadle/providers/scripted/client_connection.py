"""The server's side of one HTTP connection."""

import asyncio
from collections.abc import Mapping

import h11
from msgspec import Struct

MAX_BODY = 64 * 1024 * 1024
READ = 64 * 1024


class Request(Struct, frozen=True, kw_only=True):
    """A whole request; `headers` have lower-case names."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """Takes requests and sends responses, one after the other. A client that leaves raises `ConnectionResetError`.

    `split` is the size in bytes of the pieces that a body is sent in (0: as it is given).
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, split: int) -> None:
        self._reader = reader
        self._writer = writer
        self._split = split
        self._http = h11.Connection(h11.SERVER)

    async def receive(self) -> Request | None:
        """The next request; None when the client is done."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY:
                    raise ConnectionResetError
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request(head, bytes(body))
            else:
                return None

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.send(body)
        await self.finish()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a response."""
        await self._write(self._http.send(h11.Response(status_code=status, headers=list(headers.items()))))

    async def send(self, data: bytes) -> None:
        """Send a part of the body."""
        size = self._split or len(data) or 1
        for start in range(0, len(data), size):
            await self._write(self._http.send(h11.Data(data=data[start : start + size])))

    async def finish(self) -> None:
        """End the response."""
        await self._write(self._http.send(h11.EndOfMessage()))

    async def pause(self, seconds: float) -> None:
        """Wait, unless the client leaves."""
        try:
            data = await asyncio.wait_for(self._reader.read(READ), seconds)
        except TimeoutError:
            return
        if not data:
            raise ConnectionResetError
        self._http.receive_data(data)

    def abort(self) -> None:
        """Close the connection, whatever was promised; what is written is still sent."""
        self._writer.close()

    async def _write(self, data: bytes | None) -> None:
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _request(head: h11.Request, body: bytes) -> Request:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    method, target = head.method.decode("ascii"), head.target.decode("ascii", "replace")
    return Request(method=method, target=target, headers=headers, body=body)
