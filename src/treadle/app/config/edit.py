"""Changing one value in the user's file; everything else in it, comments too, stays as it is."""

import tomllib
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.config.lines import leaves, nested
from treadle.app.config.settings import Settings, read_layers, wrong_value
from treadle.app.places import config_file
from treadle.protocol.errors import ConfigError
from treadle.workspace.private_file import write_private


def set_value(key: str, text: str) -> Path:
    """Set a dotted key, such as `modes.plan.model`; gives the file. Raises `ConfigError` and changes nothing then."""
    import tomlkit

    file = config_file()
    read_layers({}, file)
    path = _path(key)
    value = _value(path, text)
    document = tomlkit.parse(file.read_text() if file.exists() else "")
    table: MutableMapping[str, Any] = document
    for name in path[:-1]:
        table = table.setdefault(name, tomlkit.table())
    table[path[-1]] = value
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    write_private(file, tomlkit.dumps(document).encode(), mode=mode)
    return file


def _path(key: str) -> tuple[str, ...]:
    try:
        ((path, _),) = leaves(tomllib.loads(f"{key} = 0"))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ConfigError(
            "config-key",
            f"{key!r} is not a key of the settings.",
            why="A key is one name, or several with dots between them.",
            fix="Write it like modes.plan.model, with quotes around names that have dots or slashes.",
        ) from error
    return path


def _value(path: tuple[str, ...], text: str) -> Any:
    """Read the value as the setting wants it: as text, or else as TOML would."""
    why = ""
    for value in _readings(text):
        try:
            msgspec.convert(nested(path, value), Settings)
        except msgspec.ValidationError as error:
            why = why or str(error)
        else:
            return value
    raise wrong_value("the command line", why)


def _readings(text: str) -> Iterator[Any]:
    yield text
    try:
        yield tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return
