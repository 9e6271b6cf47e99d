"""What the real APIs refuse of images, documents and sizes."""

import struct
from collections.abc import Iterator

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.scripted.request_rules import (
    CheckedRequest,
    Medium,
    RequestCheck,
    RequestRule,
    decoded,
    media_of,
)
from treadle.providers.wire import dump

_MARKS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
}
_PNG_HEAD = 24
_GIF_HEAD = 10
USUAL_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def _readable(request: CheckedRequest) -> Iterator[str]:
    for medium in request.media:
        raw = decoded(medium)
        if raw is None:
            yield "invalid base64 data"
        elif not raw:
            yield f"{medium.kind}: the data is empty"
        elif medium.kind in _MARKS and not raw.startswith(_MARKS[medium.kind]):
            yield f"the data does not match the media type {medium.kind}"


def kinds(*allowed: str) -> RequestCheck:
    """Make the check of the types of images."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for medium in request.media:
            if medium.is_image and medium.kind not in allowed:
                yield f"unsupported image type {medium.kind}"

    return check


def each_at_most(size: int) -> RequestCheck:
    """Make the check of an image's base64 against a number of bytes."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for medium in request.media:
            if medium.is_image and len(medium.data) > size:
                yield f"image exceeds {size / MEBIBYTE:g} MB maximum: {len(medium.data)} bytes > {size} bytes"

    return check


def images_at_most(most: int) -> RequestCheck:
    """Make the check of how many images a request has."""

    def check(request: CheckedRequest) -> Iterator[str]:
        count = sum(medium.is_image for medium in request.media)
        if count > most:
            yield f"too many images: {count} > {most}"

    return check


def images_of_one_message(most: int) -> RequestCheck:
    """Make the check of how many images a message has."""

    def check(request: CheckedRequest) -> Iterator[str]:
        for turn in request.turns:
            count = sum(medium.is_image for block in turn.blocks for medium in media_of(block))
            if count > most:
                yield f"{turn.where}: too many images: {count} > {most}"

    return check


def sides_at_most(most: int, *, above: int = 0) -> RequestCheck:
    """Make the check of the sides of images in pixels, where a request has more than `above` images."""
    why = " for many-image requests" if above else ""

    def check(request: CheckedRequest) -> Iterator[str]:
        images = [medium for medium in request.media if medium.is_image]
        if len(images) > above:
            for medium in images:
                if max(_sides(medium)) > most:
                    yield f"at least one of the image dimensions exceed max allowed size{why}: {most} pixels"

    return check


def whole_at_most(size: int) -> RequestCheck:
    """Make the check of a whole request; most of what is large enough for it are images."""

    def check(request: CheckedRequest) -> Iterator[str]:
        if sum(len(medium.data) for medium in request.media) > size // 2 and len(dump(request.body)) > size:
            yield f"request exceeds the maximum size of {size // MEBIBYTE} MB"

    return check


def _sides(medium: Medium) -> tuple[int, int]:
    """Width and height in pixels of a PNG or GIF; those of others are not looked for."""
    raw = decoded(medium) or b""
    if medium.kind == "image/png" and len(raw) >= _PNG_HEAD and raw[12:16] == b"IHDR":
        return struct.unpack(">II", raw[16:24])
    if medium.kind == "image/gif" and len(raw) >= _GIF_HEAD:
        return struct.unpack("<HH", raw[6:10])
    return 0, 0


READABLE = RequestRule(
    what="images and documents that can be read",
    source="the 400 of Messages: 'Could not process image', and those of the others, 2026-05",
    check=_readable,
)
