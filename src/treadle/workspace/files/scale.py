"""Scale an image: a program of its own, so that a hostile file meets its decoder alone. Pillow comes with an extra."""

import io
import resource
import sys
from typing import Any

_NOT_INSTALLED = 3
_MOST_PIXELS = 120_000_000
_MEMORY = 2 << 30
_SECONDS = 20


def scaled(raw: bytes, side: int, most: int) -> bytes:
    """Give an image whose sides have at most `side` pixels and whose bytes are at most `most`; the first of several.

    It stays a JPEG, or becomes a PNG, or a JPEG where a PNG is too large. Raises `ValueError` or what Pillow raises.
    """
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None
    with Image.open(io.BytesIO(raw)) as opened:
        if opened.width * opened.height > _MOST_PIXELS:
            raise ValueError(f"it has more than {_MOST_PIXELS:,} pixels")
        is_photo = opened.format == "JPEG"
        if is_photo:
            opened.draft("RGB", (side, side))
        image: Any = ImageOps.exif_transpose(opened)
        image.thumbnail((side, side))
        if is_photo:
            return _written(image.convert("RGB"), "JPEG", quality=88)
        picture = image.convert("RGBA" if image.has_transparency_data else "RGB")
        written = _written(picture, "PNG", optimize=True)
        if len(written) <= most:
            return written
        flat = Image.new("RGB", picture.size, "white")
        flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
        return _written(flat, "JPEG", quality=85)


def _written(image: Any, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def main() -> int:
    """Read an image from standard input, write the scaled one."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    try:
        made = scaled(sys.stdin.buffer.read(), int(sys.argv[1]), int(sys.argv[2]))
    except ImportError:
        return _NOT_INSTALLED
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
