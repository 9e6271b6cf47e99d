"""Images and documents that a model does not take, or too many of them: a note stands in their place."""

from msgspec.structs import replace

from treadle.protocol.messages import (
    ContentBlock,
    Document,
    Image,
    Message,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.models import RefusedPart

_BASE64 = 4 / 3


def without_media(message: Message, *, images: bool, documents: bool) -> Message:
    """Leave out what a model cannot take and say what it was; a message without such stays the same object."""
    kept = tuple(_projected(block, images=images, documents=documents) for block in message.content)
    if all(new is old for new, old in zip(kept, message.content, strict=True)):
        return message
    return replace(message, content=kept)


def without_part(message: Message, part: RefusedPart) -> Message:
    """Leave out what a provider refused, each with a line in its place; reasoning loses what its provider signed."""
    kept = tuple(_without(block, part) for block in message.content)
    if all(new is old for new, old in zip(kept, message.content, strict=True)):
        return message
    return replace(message, content=kept)


def _without(block: ContentBlock, part: RefusedPart) -> ContentBlock:
    match block:
        case Thinking() | RedactedThinking() | ToolUse() if part is RefusedPart.THINKING and block.wire is not None:
            return replace(block, wire=None)
        case ToolResult(content=content):
            kept = tuple(_line_for(one, part) for one in content)
            return (
                block
                if all(new is old for new, old in zip(kept, content, strict=True))
                else replace(block, content=kept)
            )
        case Text() | Image() | Document():
            return _line_for(block, part)
        case _:
            return block


def _line_for(block: ResultContent, part: RefusedPart) -> ResultContent:
    match block:
        case Image(media_type=media_type, data=data) if part is RefusedPart.IMAGE:
            what = f"An image ({media_type}, {_size(data)})"
        case Document(media_type=media_type, data=data, title=title) if part is RefusedPart.DOCUMENT:
            what = f"A document ({', '.join(filter(None, (title, media_type, _size(data))))})"
        case _:
            return block
    return Text(text=f"[{what} was left out: the provider refused it. Do not guess what it shows.]")


def images_of(message: Message) -> tuple[int, int]:
    """Count the images of a message, and their characters in base64."""
    sizes = [len(one.data) for block in message.content for one in _inner(block) if isinstance(one, Image)]
    return len(sizes), sum(sizes)


def without_first_image(message: Message) -> Message:
    """Leave out the first image of a message, and say what it was."""
    left = iter((True,))

    def kept(block: ResultContent) -> ResultContent:
        if not isinstance(block, Image) or next(left, None) is None:
            return block
        what = f"An image ({block.media_type}, {_size(block.data)})"
        return Text(text=f"[{what} was left out: there were too many images. Look at it again if you need it.]")

    def of(block: ContentBlock) -> ContentBlock:
        match block:
            case Image():
                return kept(block)
            case ToolResult(content=content):
                return replace(block, content=tuple(map(kept, content)))
            case _:
                return block

    return replace(message, content=tuple(map(of, message.content)))


def _inner(block: ContentBlock) -> tuple[ContentBlock, ...]:
    return block.content if isinstance(block, ToolResult) else (block,)


def _projected(block: ContentBlock, *, images: bool, documents: bool) -> ContentBlock:
    match block:
        case Image() | Document():
            return _plain(block, images=images, documents=documents)
        case ToolResult(content=content):
            inner = tuple(_plain(one, images=images, documents=documents) for one in content)
            unchanged = all(new is old for new, old in zip(inner, content, strict=True))
            return block if unchanged else replace(block, content=inner)
        case _:
            return block


def _plain(block: ResultContent, *, images: bool, documents: bool) -> ResultContent:
    match block:
        case Image(media_type=media_type, data=data) if not images:
            what = f"An image ({media_type}, {_size(data)})"
            return Text(text=f"[{what} was left out: this model cannot see images. Do not guess what it shows.]")
        case Document(media_type=media_type, data=data, title=title) if not documents:
            what = f"A document ({', '.join(filter(None, (title, media_type, _size(data))))})"
            return Text(text=f"[{what} was left out: this model cannot read documents. Read its text with read_file.]")
        case _:
            return block


def _size(data: str) -> str:
    """Say how large what base64 stands for is."""
    size = int(len(data) / _BASE64)
    return f"{size:,} bytes" if size < 10_000 else f"{size // 1024:,} KB"
