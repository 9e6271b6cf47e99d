"""Images as models take them: what kind they are, how large, and whether they are whole."""

import base64
import importlib.util
import struct
import subprocess
import sys
from pathlib import Path, PurePath

from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image, Text

_LARGEST = 3_750_000  # bytes; models take 5 MB, counted in base64
_LONGEST_SIDE = 8000  # pixels; a larger one makes a provider refuse the request, and every later one that has it

_SCALED_SIDE = 2000  # pixels; with more than 20 images in a request none may be larger, and models see no more of it
_SCALE_SECONDS = 15.0
_SCALE = Path(__file__).parents[1] / "workspace" / "files" / "scale.py"

_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_OTHERS = frozenset({".bmp", ".tif", ".tiff", ".ico", ".heic", ".heif", ".avif", ".psd", ".jxl", ".jp2"})
_NO_SIZE = frozenset({0xD8, 0xDD, 0x01, *range(0xD0, 0xD8)})
_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def is_image(name: str) -> bool:
    """Whether a file of this name is an image."""
    return PurePath(name).suffix.lower() in _ENDINGS | _OTHERS


def image_of(raw: bytes, name: str) -> tuple[Image, str]:
    """Wrap the bytes of an image file, scaled to what models take, and say so; their beginning tells what kind it is.

    Scaling takes up to some seconds; it needs the extra `images`. Raises `ToolError`.
    """
    return _image_of(raw, name, file=True)


def served_image_of(raw: bytes, name: str) -> tuple[Image, str]:
    """Wrap an image that a server sent, as `image_of` does a file. Raises `ToolError`: there is no file to work on."""
    return _image_of(raw, name, file=False)


def _image_of(raw: bytes, name: str, *, file: bool) -> tuple[Image, str]:
    media_type, width, height = _checked(raw, name, file=file)
    if len(raw) <= _LARGEST and max(width, height) <= _SCALED_SIDE:
        return _wrapped(media_type, raw), ""
    made = _scaled(raw)
    found = _read(made) if made else ("", 0, 0, False)
    if found[0] and len(made) <= _LARGEST:
        said = f"{name} is {width:,} by {height:,} pixels and was scaled to {found[1]:,} by {found[2]:,}."
        return _wrapped(found[0], made), said
    if len(raw) > _LARGEST:
        raise _too_large(f"{name} has {len(raw):,} bytes; models accept images of at most {_LARGEST:,}.", file=file)
    if max(width, height) > _LONGEST_SIDE:
        what = (
            f"{name} is {width:,} by {height:,} pixels; models accept images of at most {_LONGEST_SIDE:,} on each side."
        )
        raise _too_large(what, file=file)
    return _wrapped(media_type, raw), ""


def _too_large(what: str, *, file: bool) -> ToolError:
    how = ""
    if importlib.util.find_spec("PIL") is None:
        from treadle.workspace.installed import install_command

        how = f" After `{install_command('images')}` Treadle scales it by itself."
    if file:
        return ToolError(f"{what} Shrink a copy.{how}")
    return ToolError(f"{what} Continue without it.{how}")


def described(image: tuple[Image, str]) -> tuple[Image | Text, ...]:
    """Give an image with what is to be said of it."""
    shown, said = image
    return (shown, Text(text=f"[{said}]")) if said else (shown,)


def _wrapped(media_type: str, raw: bytes) -> Image:
    return Image(media_type=media_type, data=base64.b64encode(raw).decode("ascii"))


def _scaled(raw: bytes) -> bytes:
    """Scale an image in a process of its own; nothing where that cannot be done."""
    command = (sys.executable, "-I", str(_SCALE), str(_SCALED_SIDE), str(_LARGEST))
    try:
        done = subprocess.run(command, input=raw, capture_output=True, timeout=_SCALE_SECONDS, check=False, env={})
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _checked(raw: bytes, name: str, *, file: bool) -> tuple[str, int, int]:
    """Tell the type and the size in pixels of an image that is whole; raises `ToolError`."""
    try:
        media_type, width, height, whole = _read(raw)
    except (struct.error, IndexError):
        raise _damaged(name) from None
    if not media_type and not file:
        raise ToolError(f"{name} is no PNG, JPEG, GIF or WebP, which models accept. Continue without it.")
    if not media_type and PurePath(name).suffix.lower() in _OTHERS:
        raise ToolError(
            f"{name} is an image in a format that models do not accept. Convert a copy to PNG with a command, such as "
            "`magick` or `ffmpeg`, and read that."
        )
    if not media_type:
        raise ToolError(f"{name} is not the kind of image that its name says. Use `file` on it to find out what it is.")
    if not whole or not width or not height:
        raise _damaged(name)
    return media_type, width, height


def _damaged(name: str) -> ToolError:
    return ToolError(f"{name} is damaged or cut off, so no model can see it. Create it again, or continue without it.")


def _read(raw: bytes) -> tuple[str, int, int, bool]:
    """Tell the type (empty if unknown), the width and height in pixels, and whether the end is there.

    Raises `struct.error` or `IndexError` where the header is cut off.
    """
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return ("image/png", *struct.unpack(">II", raw[16:24]), b"IEND" in raw)
    if raw.startswith(b"\xff\xd8\xff"):
        return ("image/jpeg", *_read_jpeg(raw))
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return ("image/gif", *struct.unpack("<HH", raw[6:10]), b";" in raw[-1024:])
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return ("image/webp", *_webp_size(raw), len(raw) >= struct.unpack("<I", raw[4:8])[0] + 8)
    return "", 0, 0, False


def _read_jpeg(raw: bytes) -> tuple[int, int, bool]:
    """Look for the frame's header; the end counts only behind it, since what is before may hold a smaller picture."""
    at = 2
    while True:
        while raw[at] == 0xFF and raw[at + 1] == 0xFF:
            at += 1
        marker = raw[at + 1]
        if raw[at] != 0xFF:
            raise IndexError("no marker")
        if marker in _SIZES:
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height, raw.find(b"\xff\xd9", at) > 0
        at += 2 if marker in _NO_SIZE else 2 + struct.unpack(">H", raw[at + 2 : at + 4])[0]


def _webp_size(raw: bytes) -> tuple[int, int]:
    kind = raw[12:16]
    if kind == b"VP8X":
        return int.from_bytes(raw[24:27], "little") + 1, int.from_bytes(raw[27:30], "little") + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", raw[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", raw[26:30])
    return width & 0x3FFF, height & 0x3FFF
