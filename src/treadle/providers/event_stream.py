"""The binary event stream of AWS, `application/vnd.amazon.eventstream`, from bytes, whatever the splits."""

import struct
from zlib import crc32

from treadle.providers.sse import EventTooLargeError, SseEvent

EXCEPTION = "exception:"
"""What the name of an event begins with that is an exception of the service; its type follows."""

_PRELUDE = struct.Struct(">III")
_CHECK = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 and 7 say their length."""

_KNOWN_HEADS = 64


class DamagedFrameError(Exception):
    """A frame is not what its lengths and checksums say."""


class EventStreamDecoder:
    """Feed it chunks of a body; it gives whole messages, each under its type, with its payload as data."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._names: dict[bytes, str] = {}

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the messages they complete; raises its two errors."""
        rest = self._rest
        rest += chunk
        events: list[SseEvent] = []
        start = 0
        while len(rest) - start >= _PRELUDE.size:
            total, head, check = _PRELUDE.unpack_from(rest, start)
            if crc32(rest[start : start + 8]) != check or total < _PRELUDE.size + head + _CHECK.size:
                raise DamagedFrameError("the head of a message is damaged")
            if total > self._limit:
                raise EventTooLargeError
            if len(rest) - start < total:
                break
            frame = bytes(rest[start : start + total])
            if crc32(frame[: -_CHECK.size]) != _CHECK.unpack_from(frame, total - _CHECK.size)[0]:
                raise DamagedFrameError("a message is damaged")
            headers = frame[_PRELUDE.size : _PRELUDE.size + head]
            events.append(SseEvent(self._name(headers), frame[_PRELUDE.size + head : -_CHECK.size]))
            start += total
        del rest[:start]
        return events

    def end(self) -> list[SseEvent]:
        """Give nothing: a message says its length, so that one that was cut is none."""
        return []

    def _name(self, raw: bytes) -> str:
        """The name of a message with these headers; few differ, so each is read once."""
        name = self._names.get(raw)
        if name is None:
            name = _name(_headers(raw))
            if len(self._names) < _KNOWN_HEADS:
                self._names[raw] = name
        return name


def _name(headers: dict[str, str]) -> str:
    match headers.get(":message-type"):
        case "exception":
            return EXCEPTION + headers.get(":exception-type", "")
        case "error":
            return EXCEPTION + headers.get(":error-code", "")
        case _:
            return headers.get(":event-type", "")


def _headers(raw: bytes) -> dict[str, str]:
    """Read the headers that are text; others are passed over. Raises `DamagedFrameError`."""
    found: dict[str, str] = {}
    place = 0
    try:
        while place < len(raw):
            end = place + 1 + raw[place]
            name, kind, place = raw[place + 1 : end], raw[end], end + 1
            if kind in _SIZES:
                place += _SIZES[kind]
                continue
            (size,) = _LENGTH.unpack_from(raw, place)
            place += _LENGTH.size + size
            if place > len(raw):
                raise DamagedFrameError("a header of a message is damaged")
            if kind == _STRING:
                found[name.decode()] = raw[place - size : place].decode()
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise DamagedFrameError("a header of a message is damaged") from error
    return found


def frame(payload: bytes, **headers: str) -> bytes:
    """Write one message; `headers` are named without their colon and with `_` for `-`."""
    head = b"".join(
        b"%c%s%c%s%s" % (len(name), name, _STRING, _LENGTH.pack(len(value)), value)
        for name, value in ((f":{key.replace('_', '-')}".encode(), text.encode()) for key, text in headers.items())
    )
    total = _PRELUDE.size + len(head) + len(payload) + _CHECK.size
    lengths = struct.pack(">II", total, len(head))
    message = lengths + _CHECK.pack(crc32(lengths)) + head + payload
    return message + _CHECK.pack(crc32(message))
