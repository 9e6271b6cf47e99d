"""Images as models take them."""

import base64
from pathlib import PurePath

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image

_LARGEST = 3_750_000  # bytes; models take 5 MB, counted in base64

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


def is_image(name: str) -> bool:
    """Whether a file of this name should be an image that models take."""
    return PurePath(name).suffix.lower() in _ENDINGS


def image_of(raw: bytes, name: str) -> Image:
    """Wrap an image's bytes; their beginning, not the name, tells what it is. Raises `ToolError`."""
    media_type = next((kind for magic, kind in _MAGIC if raw.startswith(magic)), "")
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        media_type = "image/webp"
    if not media_type:
        raise ToolError(f"{name} is not the image that its name says. Use `file` on it to find out what it is.")
    if len(raw) > _LARGEST:
        raise ToolError(f"{name} has {len(raw):,} bytes; models take images of at most {_LARGEST:,}. Shrink a copy.")
    return Image(media_type=media_type, data=base64.b64encode(raw).decode("ascii"))
