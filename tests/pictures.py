"""Small pictures, made by hand."""

import struct
import zlib


def png(width: int = 1, height: int = 1) -> bytes:
    """A PNG that says it has this size."""
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))]
    chunks += [_chunk(b"IDAT", zlib.compress(b"\0\0")), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def jpeg(width: int = 1, height: int = 1) -> bytes:
    """A JPEG that says it has this size, with a smaller one in its remarks."""
    remark = b"\xff\xe1" + struct.pack(">H", 8) + b"\xff\xd8\xff\xd9  "
    frame = b"\xff\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + remark + frame + b"\xff\xda" + struct.pack(">H", 2) + b"\0\0\xff\xd9"


def gif(width: int = 1, height: int = 1) -> bytes:
    """A GIF that says it has this size."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def webp(width: int = 1, height: int = 1) -> bytes:
    """A WebP that says it has this size."""
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (width - 1).to_bytes(3, "little")
    body += (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", len(body)) + body


def drawn_png(width: int, height: int) -> bytes:
    """A whole PNG of this size that decoders take, in grey."""
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))]
    rows = b"".join(bytes((0, *(row * 7 % 256,) * width)) for row in range(height))
    chunks += [_chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
