"""The body of an answer in pieces of bounded size, unpacked where it was compressed although nobody asked for it."""

import zlib
from collections.abc import Iterator

from treadle.providers.http_client import CompressionError

_LARGEST_PIECE = 1 << 16
_GZIP = zlib.MAX_WBITS | 16
_RAW = -zlib.MAX_WBITS


class Unpacking:
    """Takes a body in pieces and gives others, of 64 KiB at most; what is packed in an unknown way stays as it is."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._start = b""
        self._inner = zlib.decompressobj(_GZIP) if self._encoding in ("gzip", "x-gzip") else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Unpack the next bytes; raises `CompressionError`."""
        if self._encoding == "deflate" and self._inner is None:
            self._start = data = self._start + data
            if len(data) < 2:
                return
            self._inner = zlib.decompressobj(zlib.MAX_WBITS if _is_wrapped(data) else _RAW)
        if self._inner is None:
            yield from (data[start : start + _LARGEST_PIECE] for start in range(0, len(data), _LARGEST_PIECE))
            return
        while data:
            try:
                part = self._inner.decompress(data, _LARGEST_PIECE)
            except zlib.error as error:
                raise CompressionError(str(error)) from error
            data = self._inner.unconsumed_tail
            if part:
                yield part


def _is_wrapped(data: bytes) -> bool:
    """Whether "deflate" begins with the header that it should have, and that some servers leave out (RFC 1950, 2.2)."""
    return data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
