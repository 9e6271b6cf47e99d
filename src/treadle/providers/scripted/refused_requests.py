"""What the real APIs refuse in a request besides its messages' order: media, parameters of a model, sizes."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.wire import dump

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_MARKS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
}
_MOST_OF_BEDROCK = 20
_USUAL = ("image/png", "image/jpeg", "image/gif", "image/webp")
_REASONS = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-5)(?:[-.].*)?")
"""Models of OpenAI that reason: they know other parameters."""

Body = Mapping[str, Any]


class Medium(Struct, frozen=True, kw_only=True):
    """An image or document of a request: its type as sent, and its base64."""

    kind: str
    data: str


class RequestRule(Struct, frozen=True, kw_only=True):
    """One thing that an API refuses; `source` says where that is known from, and of which month."""

    what: str
    source: str
    check: Callable[[Body, list[Medium]], Iterator[str]]


def _media(value: object) -> Iterator[Medium]:
    """Give every image and document of a body, in whatever form an API has them."""
    match value:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            yield Medium(kind=kind, data=data)
        case {"mimeType": str(kind), "data": str(data)}:
            yield Medium(kind=kind, data=data)
        case {"format": str(kind), "source": {"bytes": str(data)}}:
            yield Medium(kind=_OF_BEDROCK.get(kind, kind), data=data)
        case {"url": str(url)} | {"image_url": str(url)} | {"file_data": str(url)} if found := _DATA_URL.match(url):
            yield Medium(kind=found[1], data=found[2])
        case dict():
            for one in value.values():
                yield from _media(one)
        case list():
            for one in value:
                yield from _media(one)
        case _:
            return


_OF_BEDROCK = {**{kind.partition("/")[2]: kind for kind in _USUAL}, "pdf": "application/pdf"}


def request_problems(rules: tuple[RequestRule, ...], body: Body) -> list[str]:
    """Say everything that these rules refuse in a body."""
    media = list(_media({key: value for key, value in body.items() if key not in ("tools", "toolConfig")}))
    return [problem for rule in rules for problem in rule.check(body, media)]


def _readable(_: Body, media: list[Medium]) -> Iterator[str]:
    for one in media:
        try:
            raw = base64.b64decode(one.data, validate=True)
        except (binascii.Error, ValueError):
            yield "invalid base64 data"
            continue
        if not raw:
            yield f"{one.kind}: the data is empty"
        elif one.kind in _MARKS and not raw.startswith(_MARKS[one.kind]):
            yield f"the data does not match the media type {one.kind}"


def _kinds(*allowed: str) -> Callable[[Body, list[Medium]], Iterator[str]]:
    def check(_: Body, media: list[Medium]) -> Iterator[str]:
        for one in media:
            if one.kind.startswith("image/") and one.kind not in allowed:
                yield f"unsupported image type {one.kind}"

    return check


def _each_at_most(size: int) -> Callable[[Body, list[Medium]], Iterator[str]]:
    def check(_: Body, media: list[Medium]) -> Iterator[str]:
        for one in media:
            if one.kind.startswith("image/") and len(one.data) > size:
                yield f"image exceeds {size / MEBIBYTE:g} MB maximum: {len(one.data)} bytes > {size} bytes"

    return check


def _images_at_most(most: int) -> Callable[[Body, list[Medium]], Iterator[str]]:
    def check(_: Body, media: list[Medium]) -> Iterator[str]:
        count = sum(one.kind.startswith("image/") for one in media)
        if count > most:
            yield f"too many images: {count} > {most}"

    return check


def _images_of_one_message(body: Body, _: list[Medium]) -> Iterator[str]:
    for message in body["messages"]:
        count = sum(one.kind.startswith("image/") for one in _media(message))
        if count > _MOST_OF_BEDROCK:
            yield f"too many images in one message: {count} > {_MOST_OF_BEDROCK}"


def _whole_at_most(size: int) -> Callable[[Body, list[Medium]], Iterator[str]]:
    def check(body: Body, media: list[Medium]) -> Iterator[str]:
        if sum(len(one.data) for one in media) > size // 2 and len(dump(body)) > size:
            yield f"request exceeds {size // MEBIBYTE} MB"

    return check


def _reasoning_parameters(body: Body, _: list[Medium]) -> Iterator[str]:
    if not _REASONS.fullmatch(str(body.get("model"))):
        return
    if "max_tokens" in body:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
    for name in ("temperature", "top_p"):
        if body.get(name, 1) != 1:
            yield f"Unsupported value: '{name}' does not support {body[name]} with this model."


def _thinking_temperature(body: Body, _: list[Medium]) -> Iterator[str]:
    if (body.get("thinking") or {}).get("type") == "enabled" and body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."


def _stream_options(body: Body, _: list[Medium]) -> Iterator[str]:
    if "stream_options" in body and body.get("stream") is not True:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


READABLE = RequestRule(
    what="images and documents that can be read",
    source="the 400 of Messages: 'Could not process image', and those of the others, 2026-05",
    check=_readable,
)
ANTHROPIC_REQUESTS = (
    READABLE,
    RequestRule(what="PNG, JPEG, GIF, WebP", source="docs.claude.com, vision, 2025-11", check=_kinds(*_USUAL)),
    RequestRule(what="5 MB an image", source="docs.claude.com, vision, 2025-11", check=_each_at_most(5 * MEBIBYTE)),
    RequestRule(what="100 images", source="docs.claude.com, vision, 2025-11", check=_images_at_most(100)),
    RequestRule(what="32 MB", source="docs.claude.com, errors, 2025-11", check=_whole_at_most(32 * MEBIBYTE)),
    RequestRule(
        what="no temperature with thinking",
        source="docs.claude.com, extended thinking, 2025-11",
        check=_thinking_temperature,
    ),
)
OPENAI_REQUESTS = (
    READABLE,
    RequestRule(what="PNG, JPEG, GIF, WebP", source="platform.openai.com, images, 2025-11", check=_kinds(*_USUAL)),
    RequestRule(what="50 MB", source="platform.openai.com, images, 2025-11", check=_whole_at_most(50 * MEBIBYTE)),
    RequestRule(
        what="parameters of models that reason",
        source="the 400 of Chat Completions: \"Unsupported parameter: 'max_tokens'\", 2026-05",
        check=_reasoning_parameters,
    ),
    RequestRule(what="stream_options", source="API reference of Chat Completions, 2025-11", check=_stream_options),
)
GEMINI_REQUESTS = (
    READABLE,
    RequestRule(
        what="PNG, JPEG, WebP, HEIC, HEIF",
        source="ai.google.dev, image understanding, 2025-11",
        check=_kinds("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
    ),
    RequestRule(
        what="20 MB", source="ai.google.dev, image understanding, 2025-11", check=_whole_at_most(20 * MEBIBYTE)
    ),
)
BEDROCK_REQUESTS = (
    READABLE,
    RequestRule(what="PNG, JPEG, GIF, WebP", source="API reference: ImageBlock, 2025-11", check=_kinds(*_USUAL)),
    RequestRule(what="3.75 MB an image", source="API reference: Message, 2025-11", check=_each_at_most(5 * MEBIBYTE)),
    RequestRule(what="20 images a message", source="API reference: Message, 2025-11", check=_images_of_one_message),
)
