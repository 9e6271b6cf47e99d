"""Reading the files of other programs: regular files of bounded size, as text, JSON or TOML of the expected shape."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.config.places import read_regular
from treadle.workspace.files.text import visible

MOST_SETTINGS = 8 * 1024 * 1024
"""Bytes of a settings file: one of Claude Code's also has a history."""

MOST_RULES = 128 * 1024
"""Bytes of a rules file; only a part of it would ever be sent to a model."""


class UnreadableError(Exception):
    """A file cannot be used; the text says why."""


def bounded_text(file: Path, most: int) -> str:
    """Read a file; empty where there is none. Raises `UnreadableError`."""
    try:
        raw = read_regular(file, most)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    if raw is None:
        raise UnreadableError("it is not a file")
    if len(raw) > most:
        raise UnreadableError(f"it is larger than {most // 1024:,} KiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError("it is not UTF-8 text") from error


def settings_table(file: Path) -> dict[str, Any]:
    """Read a JSON or TOML file that holds a table; empty where there is none. Raises `UnreadableError`."""
    text = bounded_text(file, MOST_SETTINGS)
    if not text.strip():
        return {}
    try:
        found: Any = tomllib.loads(text) if file.suffix == ".toml" else msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it is not valid {'TOML' if file.suffix == '.toml' else 'JSON'}") from error
    if not isinstance(found, dict):
        raise UnreadableError("it holds no table")
    return found


def table_in(table: dict[str, Any], *names: str) -> dict[str, Any]:
    """Give a table inside of another; empty where it is missing. Raises `UnreadableError` for something else there."""
    found: Any = table
    for name in names:
        found = found.get(name, {})
        if not isinstance(found, dict):
            raise UnreadableError(f"{'.'.join(names)} in it is no table")
    return dict(found)


def hides_something(text: str) -> bool:
    """Whether a text has characters that a person who reads it does not see as they are, or that steer a terminal."""
    return visible(text.replace("\r\n", "\n")) != text.replace("\r\n", "\n")
