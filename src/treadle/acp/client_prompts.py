"""The blocks of a prompt as a message: words, images, and what goes along with them."""

import base64
import binascii
import uuid
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from treadle.acp.rpc import INVALID_PARAMS, RpcError
from treadle.acp.shapes import PromptBlock, ResourceContents
from treadle.door.message_parts import enclose
from treadle.protocol.events import Delivery, Prompt
from treadle.protocol.messages import Document, Enclosure, EnclosureKind, Image, Text, UserContent

_PDF = "application/pdf"


def prompt_of(blocks: tuple[PromptBlock, ...], delivery: Delivery) -> Prompt:
    """Put a prompt together; raises `RpcError` for one that has nothing, or a block that no model takes."""
    content: list[UserContent] = []
    enclosed: list[Enclosure] = []
    for block in blocks:
        match block.type:
            case "text":
                content.append(Text(text=block.text or ""))
            case "image":
                content.append(_image(block))
            case "resource_link":
                content.append(Text(text=mention(block.uri or "", block.name or "")))
            case "resource" if block.resource is not None:
                content += _named(block.resource)
                enclosed += _enclosed(block.resource)
            case _:
                raise RpcError(INVALID_PARAMS, f"A prompt cannot have a block of type {block.type}.")
    joined = tuple(_joined(content))
    if not joined:
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return Prompt(id=uuid.uuid4().hex, content=joined, delivery=delivery, enclosed=tuple(enclosed))


def with_words(prompt: Prompt, words: str) -> Prompt:
    """Give a prompt that waits for its turn, with other words and all that came with them."""
    return replace(prompt, content=(Text(text=words), *_no_text(prompt)), delivery=Delivery.QUEUE)


def has_more(prompt: Prompt) -> bool:
    """Whether anything but words is in a prompt."""
    return bool(prompt.enclosed) or any(True for _ in _no_text(prompt))


def _no_text(prompt: Prompt) -> Iterator[UserContent]:
    return (block for block in prompt.content if not isinstance(block, Text))


def mention(uri: str, name: str) -> str:
    """Write a link as a mention, so that the file goes along as far as that is allowed."""
    path = _path_of(uri)
    if not path:
        return f"{name} ({uri})" if name and name != uri else uri
    lines = _lines_of(uri)
    return f' @"{path}"{lines} ' if any(char.isspace() for char in path) else f" @{path}{lines} "


def _joined(content: list[UserContent]) -> Iterator[UserContent]:
    """Put texts that follow on each other into one, as the user wrote them around a link."""
    text = ""
    for block in content:
        if isinstance(block, Text):
            text += block.text
            continue
        if text.strip():
            yield Text(text=text.strip())
        text = ""
        yield block
    if text.strip():
        yield Text(text=text.strip())


def _image(block: PromptBlock) -> Image:
    return Image(media_type=block.mime_type or "image/png", data=_base64(block.data, "an image"))


def _base64(data: str | None, what: str) -> str:
    """Give data without the line ends in it; raises `RpcError` for what is none."""
    joined = "".join((data or "").split())
    try:
        base64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RpcError(INVALID_PARAMS, f"The data of {what} is not base64.") from error
    return joined


def _named(resource: ResourceContents) -> Iterator[UserContent]:
    """Name an enclosed text where it was put, and give what is no text."""
    if resource.text is not None:
        yield Text(text=f" {_origin(resource.uri)} ")
    elif resource.mime_type is not None and resource.mime_type.startswith("image/"):
        yield _image(PromptBlock(type="image", data=resource.blob, mime_type=resource.mime_type))
    elif resource.mime_type == _PDF and resource.blob:
        data = _base64(resource.blob, "a document")
        yield Document(media_type=_PDF, data=data, title=PurePosixPath(_origin(resource.uri)).name)
    else:
        raise RpcError(INVALID_PARAMS, f"{resource.uri} is neither a text nor an image nor a PDF file.")


def _enclosed(resource: ResourceContents) -> Iterator[Enclosure]:
    if resource.text is not None:
        yield enclose(EnclosureKind.FILE, _origin(resource.uri), resource.text)


def _origin(uri: str) -> str:
    path = _path_of(uri)
    return f"{path}{_lines_of(uri)}" if path else uri


def _path_of(uri: str) -> str:
    """Give the path of a file's address; empty for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme == "file":
        return unquote(parts.path)
    if not uri.startswith("/"):
        return ""
    return uri.partition("#")[0] if _lines_of(uri) else uri


def _lines_of(uri: str) -> str:
    """Give the lines that an address names as `#L10:20` or `#L10-L20`."""
    fragment = uri.partition("#")[2].replace("L", "").replace(":", "-")
    first, _, last = fragment.partition("-")
    if not first.isdecimal():
        return ""
    return f":{first}-{last}" if last.isdecimal() else f":{first}"
