"""Files that the user sends along with a task: images as images, everything else as text."""

import asyncio
import mimetypes
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from urllib.parse import unquote, urlsplit

from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.messages import Text, UserContent
from treadle.tools.images import image_of, is_image
from treadle.workspace.files.text_files import read_bytes, read_text

_LARGEST_TEXT = 400_000
_LONGEST_PATHS = 20_000
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_OTHER_IMAGES = frozenset({".avif", ".bmp", ".heic", ".heif", ".ico", ".jxl", ".psd", ".tif", ".tiff"})

_FOR_MODEL = " Use list_files"
"""What begins the advice to the model where a path is no file."""


def attach(files: Sequence[Path], tell: Callable[[str], object]) -> tuple[UserContent, ...]:
    """Read the files as blocks of a user message, one for each; tells what was scaled.

    Raises `ConfigError` for one that cannot go along.
    """
    return tuple(_block(file, tell) for file in files)


def image_block(raw: bytes, name: str, tell: Callable[[str], object]) -> UserContent:
    """Wrap the bytes of an image, and tell if it was scaled; raises `ConfigError` for one that no model takes."""
    try:
        image, scaled = image_of(raw, name)
        if scaled:
            tell(scaled)
        return image
    except ToolError as error:
        raise _refused(name, error.text) from error


def dragged_images(pasted: str, folder: Path) -> tuple[Path, ...]:
    """Find the images of a text that is nothing but their paths, as terminals paste files that are dragged in.

    Paths may be quoted, escaped, or `file:` addresses; relative ones are seen from `folder`.
    """
    pasted = pasted.strip()
    if not pasted or len(pasted) > _LONGEST_PATHS or not any(ending in pasted.lower() for ending in _IMAGES):
        return ()
    whole = _image_file(pasted, folder)
    if whole is not None:
        return (whole,)
    try:
        words = shlex.split(pasted)
    except ValueError:
        return ()
    found = [_image_file(word, folder) for word in words]
    return tuple(file for file in found if file is not None) if None not in found else ()


def _image_file(word: str, folder: Path) -> Path | None:
    if word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    try:
        file = folder / Path(word).expanduser()
        return file if file.suffix.lower() in _IMAGES and file.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _refused(name: str, why: str) -> ConfigError:
    why, of_tool, _ = why.partition(_FOR_MODEL)
    fix = "Name a file that is there." if of_tool else "Attach a text, an image or a document instead."
    return ConfigError("attachment", f"{name} cannot be attached.", why=why, fix=fix)


def _block(file: Path, tell: Callable[[str], object]) -> UserContent:
    path, name = str(file.expanduser().absolute()), str(file)
    try:
        if is_image(name):
            return image_block(read_bytes(path, name), name, tell)
        text = read_text(path, name).text
    except ToolError as error:
        raise _refused(name, error.text) from error
    _check_length(text, name)
    return Text(text=f'<file path="{name}">\n{text}\n</file>')


async def read_attached(raw: bytes, name: str, tell: Callable[[str], object]) -> str | UserContent:
    """Read bytes that were attached under a name: a text, that of a document, or an image as a block.

    Raises `ConfigError` for others.
    """
    from treadle.workspace.files.documents import document_text, is_document, is_text_itself

    if is_document(name) and not is_text_itself(name):
        try:
            text = await document_text(raw, name)
        except ToolError as error:
            raise _refused(name, error.text) from error
        _check_length(text, name)
        return text
    return await asyncio.to_thread(_read_plain, raw, name, tell)


def _read_plain(raw: bytes, name: str, tell: Callable[[str], object]) -> str | UserContent:
    with suppress(UnicodeDecodeError):
        text = raw.decode()
        if "\0" not in text:
            _check_length(text, name)
            return text
    if PurePath(name).suffix.lower() not in {*_IMAGES, ""}:
        raise _refused(name, _not_read(name))
    return image_block(raw, name, tell)


def _not_read(name: str) -> str:
    """Say of a file by its name why no model is sent it."""
    if PurePath(name).suffix.lower() in _OTHER_IMAGES:
        return "It is not a picture that models read: these are PNG, JPEG, GIF and WebP."
    if (mimetypes.guess_type(name)[0] or "").startswith(("audio/", "video/")):
        return "Models are sent no sound and no film."
    return "It is not a text in UTF-8, a picture that models read, or a PDF, Word or Excel document."


def _check_length(text: str, name: str) -> None:
    if len(text) > _LARGEST_TEXT:
        raise ConfigError(
            "attachment",
            f"{name} is too long to attach.",
            why=f"It has {len(text):,} characters; the most is {_LARGEST_TEXT:,}.",
            fix="Name it in the task instead. The model then reads the parts that it needs.",
        )
