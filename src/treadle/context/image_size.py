"""How large an image is, read off the beginning of its data, and how many tokens providers count for one so large."""

import base64
import struct

from treadle.protocol.messages import Image

_HEAD = 6_000
"""Characters of base64 in which a usual image says how large it is."""

_PIXELS_PER_TOKEN = 750
_TILE = 512
_PER_IMAGE, _PER_TILE = 88, 170
"""Anthropic counts pixels; OpenAI and Google count tiles, of which a small image has one of about 258 tokens."""

_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""Markers of JPEG between those of frames that begin none."""


def most_image_tokens(image: Image) -> int | None:
    """Say how many tokens the provider counts that counts most; None where its size cannot be read."""
    if (pixels := _pixels(image)) is None:
        return None
    width, height = pixels
    tiles = -(-width // _TILE) * -(-height // _TILE)
    return max(width * height // _PIXELS_PER_TOKEN, _PER_IMAGE + _PER_TILE * tiles)


def _pixels(image: Image) -> tuple[int, int] | None:
    try:
        head = base64.b64decode(image.data[:_HEAD], validate=True)
        match image.media_type:
            case "image/png":
                return _found(">II", head, 16, head[12:16] == b"IHDR")
            case "image/gif":
                return _found("<HH", head, 6, head[:3] == b"GIF")
            case "image/jpeg":
                return _jpeg(head)
            case _:
                return None
    except (ValueError, struct.error, IndexError):
        return None


def _found(layout: str, head: bytes, at: int, is_one: bool) -> tuple[int, int] | None:  # noqa: FBT001
    width, height = struct.unpack_from(layout, head, at) if is_one else (0, 0)
    return (width, height) if width and height else None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2 if head[:2] == b"\xff\xd8" else len(head)
    while head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            found = _found(">HH", head, at + 5, True)
            return None if found is None else (found[1], found[0])
        at += 2 + struct.unpack_from(">H", head, at + 2)[0]
    return None
