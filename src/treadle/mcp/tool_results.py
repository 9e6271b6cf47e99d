"""What servers answer, as the model reads it: bounded, harmless to show, and marked as the words of others."""

import base64
import binascii
import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mcp_types as types
import msgspec
from msgspec.structs import replace

from treadle.mcp.declaring import harmless_data
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Image, ResultContent, Text
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult, Origin, Outcome
from treadle.workspace.files.text import HeadTail, visible
from treadle.workspace.untrusted import mark_untrusted

ReadImage = Callable[[bytes, str], tuple[Image, str]]
"""Checks an image and scales it to what models take; takes some time. Raises `ToolError`."""

_MOST_CHARACTERS = 60_000
_MOST_IMAGES = 8
_LARGEST_TEXT = 4 * 1024 * 1024  # characters of base64
_CHARSET = regex(r"""charset=["']?([\w.:-]+)""")
_NO_TEXT = regex(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_LARGEST_IMAGE = 6 * 1024 * 1024  # characters of base64


def tool_result(result: types.CallToolResult, server: str, read_image: ReadImage) -> CallResult:
    """Give the result of a call; takes the time that its images take."""
    content = result.content
    texts = list(_texts(content))
    if result.structured_content is not None and not any(text.strip() for text in texts):
        texts.append(_as_json(result.structured_content))
    outcome = Outcome.FAILED if result.is_error else Outcome.OK
    return _result(server, outcome, texts, _raw_images(content), read_image=read_image)


def with_moved(result: CallResult, moved: Sequence[str]) -> CallResult:
    """Add that control files were moved which the server may have made: then the call failed, whatever it says."""
    if not moved:
        return result
    return replace(result, outcome=Outcome.FAILED, content=(*result.content, Text(text="\n" + "\n".join(moved))))


def resource_result(result: types.ReadResourceResult, server: str, read_image: ReadImage) -> CallResult:
    """Give the contents of a resource."""
    texts = [_resource_text(one) for one in result.contents]
    images = [
        (one.blob, one.uri) for one in result.contents if isinstance(one, types.BlobResourceContents) and _is_image(one)
    ]
    return _result(server, Outcome.OK, texts, images, read_image=read_image)


def server_text(server: str, text: str) -> CallResult:
    """Give a text about what a server has, in its words."""
    return _result(server, Outcome.OK, [text], [], read_image=_no_image)


def _no_image(raw: bytes, name: str) -> tuple[Image, str]:
    raise ToolError(f"{name} has {len(raw)} bytes. Continue without it.")


def _result(
    server: str,
    outcome: Outcome,
    texts: Iterable[str],
    images: Iterable[tuple[str, str]],
    *,
    read_image: ReadImage,
) -> CallResult:
    kept = HeadTail(_MOST_CHARACTERS)
    for text in filter(None, texts):
        kept.add(text if text.endswith("\n") else f"{text}\n")
    shown: list[Image] = []
    notes: list[str] = []
    for number, (data, name) in enumerate(images, start=1):
        if number > _MOST_IMAGES:
            notes.append(f"[more than {_MOST_IMAGES} images: the rest was left out]")
            break
        try:
            image, said = read_image(_decoded(data, name), name)
        except ToolError as error:
            notes.append(f"[{visible(error.text)}]")
            continue
        shown.append(image)
        notes += [f"[{visible(said)}]"] if said else []
    body = "\n".join(filter(None, (kept.take().rstrip(), *notes))) or ("" if shown else "(empty)")
    content: list[ResultContent] = [Text(text=mark_untrusted(body, f"MCP server {server}"))] if body else []
    return CallResult(outcome=outcome, content=(*content, *shown), origin=Origin.SERVER)


def _decoded(data: str, name: str) -> bytes:
    if len(data) > _LARGEST_IMAGE:
        raise ToolError(f"{name} has {len(data) * 3 // 4:,} bytes, which is too large. Continue without it.")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolError(f"{name} is damaged. Continue without it.") from error


def _texts(content: Iterable[Any]) -> Iterator[str]:
    for block in content:
        match block:
            case types.TextContent(text=text):
                yield text
            case types.EmbeddedResource(resource=resource) if not _is_image(resource):
                yield _resource_text(resource)
            case types.ResourceLink():
                facts = ", ".join(filter(None, (block.title or block.name, block.mime_type, block.description)))
                yield f"[resource {block.uri} ({facts}); access_mcp_resource reads it]"
            case types.AudioContent(mime_type=mime_type, data=data):
                yield f"[audio, {mime_type}, {len(data) * 3 // 4:,} bytes: left out]"
            case _:
                pass


def _resource_text(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    named = f"[resource {resource.uri}{f', {resource.mime_type}' if resource.mime_type else ''}]"
    if isinstance(resource, types.TextResourceContents):
        return f"{named}\n{resource.text}"
    if _is_image(resource):
        return named
    text = _text_in(resource.blob, resource.mime_type or "")
    return (
        f"{named} ({len(resource.blob) * 3 // 4:,} bytes, not text: left out)" if text is None else f"{named}\n{text}"
    )


def _text_in(blob: str, media_type: str) -> str | None:
    """Read base64 that holds text: in UTF-8, UTF-16 with its mark, or as its type says; nothing where it is none."""
    if len(blob) > _LARGEST_TEXT:
        return None
    said = _CHARSET.search(media_type)
    try:
        raw = base64.b64decode(blob, validate=True)
        wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = raw.decode("utf-16" if wide else said[1] if said else "utf-8-sig")
    except (LookupError, ValueError):
        return None
    return None if _NO_TEXT.search(text) else text


def _is_image(resource: Any) -> bool:
    return isinstance(resource, types.BlobResourceContents) and (resource.mime_type or "").startswith("image/")


def _raw_images(content: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for block in content:
        match block:
            case types.ImageContent(data=data):
                yield data, "the image"
            case types.EmbeddedResource(resource=resource) if isinstance(resource, types.BlobResourceContents):
                if _is_image(resource):
                    yield resource.blob, resource.uri
            case _:
                pass


def _as_json(data: Any) -> str:
    try:
        return msgspec.json.encode(harmless_data(data)).decode()
    except (msgspec.MsgspecError, TypeError):
        return str(data)
