"""Server-sent events from bytes, whatever the splits; linear in the input and bounded."""

from typing import NamedTuple

import msgspec

STREAM_END = b"[DONE]"
"""The data with which the servers of OpenAI's APIs end a stream."""


class SseEvent(NamedTuple):
    """One event: its name (empty for the default) and its data, lines joined by newlines."""

    name: str
    data: bytes


class EventTooLargeError(Exception):
    """One event is larger than the bound."""


class SseDecoder:
    """Feed it chunks of a body; it gives whole events. Lines may end in LF, CRLF or CR, mixed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events they complete; raises `EventTooLargeError`."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if chunk.endswith(b"\r"):
            self._after_cr = True
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._rest += chunk
        events = self._lines()
        if self._size + len(self._rest) > self._limit:
            raise EventTooLargeError
        return events

    def _lines(self) -> list[SseEvent]:
        """Consume the whole lines of what is held."""
        end = self._rest.rfind(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._rest)
            return []
        lines = bytes(self._rest[:end]).split(b"\n")
        del self._rest[: end + 1]
        self._searched = 0
        events: list[SseEvent] = []
        for line in lines:
            events += self._field(line) if line else self._event()
        return events

    def end(self) -> list[SseEvent]:
        """Give the event that the body ends in: some servers leave out the empty line behind the last one."""
        before = self._field(bytes(self._rest)) if self._rest else []
        self._rest.clear()
        return [*before, *self._event()]

    def _event(self) -> list[SseEvent]:
        """Close the event that is open; one without data, or with blank data, is only a sign of life."""
        name, data = self._name, b"\n".join(self._data)
        self._name, self._data, self._size = b"", [], 0
        return [SseEvent(name.decode("utf-8", "replace"), data)] if data.strip() else []

    def _field(self, line: bytes) -> list[SseEvent]:
        """Take a line; gives the event before it where that is whole and the server left out the empty line."""
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        events: list[SseEvent] = []
        if self._data and ((key == b"data" and value[:1] in (b"{", b"[")) or key == b"event") and self._is_whole():
            events = self._event()
        if key == b"data" and (self._data or not value.startswith(b":")):  # a gateway's comment of another stream
            self._data.append(value)
            self._size += len(value)
        elif key == b"event":
            self._name = value
        return events

    def _is_whole(self) -> bool:
        """Whether the data of the open event is JSON already."""
        try:
            msgspec.json.decode(b"\n".join(self._data))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True
