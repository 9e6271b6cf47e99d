"""What messages weigh: their bytes as UTF-8, as far as these cost tokens."""

import base64
import struct

from treadle.protocol.messages import ContentBlock, Image, Message, Text, Thinking, ToolResult, ToolUse

MOST_IMAGES = 100
"""Images that a request may have: more are refused by usual providers."""

MOST_IMAGE_DATA = 24_000_000
"""Characters of base64 that they may have together: usual providers take a request of up to 32 MB."""

_MEDIA_BYTES = 6_000
"""What a document counts as, and an image at most."""

_PER_IMAGE_TOKEN = 3.6
"""Bytes of text that cost as much."""

_LEAST_CHECKED = 4_000
"""Bytes; a smaller conversation says nothing about a count."""
_FEWEST_PER_BYTE = 1 / 12
_MOST_PER_BYTE = 2.0
_HIDDEN = 30_000
"""Tokens that a provider may count besides what it was sent: of images, searches and prompts of its own."""


_HEAD = 6_000
"""Characters of base64 in which a usual image says how large it is."""

_PIXELS_PER_TOKEN = 750
_TILE = 512
_PER_IMAGE, _PER_TILE = 88, 170
"""Anthropic counts pixels; OpenAI and Google count tiles, a small image one of about 258 tokens (November 2026)."""

_NO_FRAME = frozenset({0xC4, 0xC8, 0xCC})
"""Markers of JPEG between those of frames that begin none."""


def size(message: Message, *, images: bool = False) -> int:
    """Count the bytes of a message (UTF-8), as far as they cost tokens; `images` as for one block."""
    return sum(size_of_block(block, images=images) for block in message.content)


def size_of_block(block: ContentBlock, *, images: bool = False) -> int:
    """Count the bytes of one block (UTF-8), as far as they cost tokens.

    With `images` an image is as large as its pixels, else all are alike: logs of before were counted so.
    """
    match block:
        case Text(text=text) | Thinking(text=text):
            return bytes_of_text(text)
        case ToolUse(name=name, arguments=arguments):
            return len(name) + sum(len(key) + bytes_of_text(str(value)) for key, value in arguments.items())
        case ToolResult(content=content):
            return sum(size_of_block(inner, images=images) for inner in content)
        case Image() if images:
            tokens = most_image_tokens(block)
            return _MEDIA_BYTES if tokens is None else min(round(tokens * _PER_IMAGE_TOKEN), _MEDIA_BYTES)
        case _:
            return _MEDIA_BYTES


def bytes_of_text(text: str) -> int:
    """Count the bytes of a text (UTF-8)."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def is_believable(tokens: int, messages: int, beside: int = 0) -> bool:
    """Whether a provider's count of tokens can be that of so many bytes of messages, and of prompt and tools beside.

    The least goes by the messages alone: they grow, and a wrong count of them hides that.
    """
    least = messages * _FEWEST_PER_BYTE if messages >= _LEAST_CHECKED else 0
    return least <= tokens <= (messages + beside) * _MOST_PER_BYTE + _HIDDEN


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
