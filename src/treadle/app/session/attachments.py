"""Files that the user sends along with a task: images as images, everything else as text."""

from collections.abc import Sequence
from pathlib import Path

from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.messages import Text, UserContent
from treadle.tools.images import image_of, is_image
from treadle.workspace.files import read_bytes, read_text

_LARGEST_TEXT = 400_000


def attach(files: Sequence[Path]) -> tuple[UserContent, ...]:
    """Read the files as blocks of a user message; raises `ConfigError` for one that cannot go along."""
    return tuple(_block(file) for file in files)


def _block(file: Path) -> UserContent:
    path, name = str(file.expanduser().absolute()), str(file)
    try:
        if is_image(name):
            return image_of(read_bytes(path, name), name)
        text = read_text(path, name).text
    except ToolError as error:
        raise ConfigError(
            "attachment", f"{name} cannot be attached.", why=error.text, fix="Name a text file or an image."
        ) from error
    if len(text) > _LARGEST_TEXT:
        raise ConfigError(
            "attachment",
            f"{name} is too long to attach.",
            why=f"It has {len(text):,} characters; the most is {_LARGEST_TEXT:,}.",
            fix="Name it in the task instead. The model then reads the parts that it needs.",
        )
    return Text(text=f'<file path="{name}">\n{text}\n</file>')
