"""How connections begin: which name the first bytes say that they are for."""

import re
import struct
from collections.abc import Iterator

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST = 22, 1, 0, 0
_RECORD_HEAD = 5
_MOST_RECORD = 16 * 1024
_FIXED = 2 + 32  # bytes of a hello before its first list: version and random
MOST_HEAD = 64 * 1024
"""Bytes of the head of a request that are read."""

_HOST_FIELD = re.compile(rb"\r?\nhost[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_PORT = re.compile(r":\d{1,5}\Z")


class NotYetError(Exception):
    """More bytes are needed."""


def tls_name(start: bytes) -> str:
    """Give the name that a TLS connection asks for, in lower case; empty where it names none or is no TLS.

    Raises `NotYetError`.
    """
    if start[:1] not in (b"", bytes([_HANDSHAKE])):
        return ""
    if len(start) < _RECORD_HEAD:
        raise NotYetError
    size = int.from_bytes(start[3:_RECORD_HEAD])
    if size > _MOST_RECORD:
        return ""
    if len(start) < _RECORD_HEAD + size:
        raise NotYetError
    try:
        return next(_names(start[_RECORD_HEAD : _RECORD_HEAD + size]), "").lower()
    except (struct.error, IndexError, UnicodeDecodeError):
        return ""


def _names(message: bytes) -> Iterator[str]:
    """Give the names of a ClientHello (RFC 8446, 4.1.2, and RFC 6066, 3)."""
    if message[0] != _CLIENT_HELLO:
        return
    at = 4 + _FIXED
    at += 1 + message[at]  # session
    at += 2 + struct.unpack_from("!H", message, at)[0]  # ciphers
    at += 1 + message[at]  # compression
    (size,) = struct.unpack_from("!H", message, at)
    at, end = at + 2, at + 2 + size
    while at + 4 <= end:
        kind, size = struct.unpack_from("!2H", message, at)
        at += 4
        if kind == _SERVER_NAME:
            _, host, length = struct.unpack_from("!HBH", message, at)
            if host == _HOST:
                yield message[at + 5 : at + 5 + length].decode("ascii")
        at += size


def http_name(start: bytes) -> str:
    """Give the host that an HTTP request is for, in lower case without its port; empty where it is not one alone.

    Raises `NotYetError`.
    """
    head, end, _ = start.partition(b"\r\n\r\n")
    if not end:
        if len(start) > MOST_HEAD:
            return ""
        raise NotYetError
    hosts = {_PORT.sub("", found.decode("latin-1").strip().lower()) for found in _HOST_FIELD.findall(head)}
    return hosts.pop() if len(hosts) == 1 else ""
