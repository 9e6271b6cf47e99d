"""Settings in layers: defaults, the user's file, the environment, the command line. The last one that speaks wins."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.places import config_file
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode


class ProviderSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a provider. `api_key_env` names the variable that holds the key."""

    base_url: str = ""
    wire_api: str = ""
    api_key_env: str = ""
    headers: Mapping[str, str] = {}


class ModelSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a model, over what the catalogue knows. Prices are US dollars for a million tokens."""

    context_window: int | None = None
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    tool_protocol: ToolProtocol | None = None


class Settings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a user can set. An empty `model` means: take the first provider that has a key."""

    model: str = ""
    base_url: str = ""
    mode: Mode = Mode.ASK
    tool_protocol: ToolProtocol | None = None
    max_steps: int | None = None
    providers: Mapping[str, ProviderSettings] = {}
    models: Mapping[str, ModelSettings] = {}


_VARIABLES = {
    "TREADLE_MODEL": "model",
    "TREADLE_BASE_URL": "base_url",
    "TREADLE_MODE": "mode",
    "TREADLE_TOOL_PROTOCOL": "tool_protocol",
}


def load_settings(flags: Mapping[str, Any], file: Path | None = None) -> Settings:
    """Put the layers together. `flags` holds only what was given; raises `ConfigError` with the place of a mistake."""
    file = config_file() if file is None else file
    values = _read(file)
    _check(values, str(file))
    from_environment = {field: os.environ[name] for name, field in _VARIABLES.items() if os.environ.get(name)}
    _check(from_environment, "the environment (TREADLE_…)")
    values = {**values, **from_environment, **flags}
    return _check(values, "the command line")


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "config-unreadable",
            f"The settings file {file} cannot be read.",
            why=str(error),
            fix="Mend its permissions or encoding (UTF-8), or move it away to start with the defaults.",
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "config-syntax",
            f"The settings file {file} is not valid TOML.",
            why=str(error),
            fix="Mend that line, or move the file away to start with the defaults.",
        ) from error


def _check(values: Mapping[str, Any], origin: str) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(
            "config-value",
            f"A setting from {origin} is wrong.",
            why=_with_line(str(error), origin),
            fix="`treadle --help` lists the settings; docs/configuration.md explains them.",
        ) from error


def _with_line(text: str, origin: str) -> str:
    """Add the line of the file that holds the key which the message names, where it can be found."""
    file = Path(origin)
    key = text.rpartition("$.")[2].rstrip("`").rpartition(".")[2] if "$." in text else _unknown_key(text)
    if not key or not file.is_file():
        return text
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        if line.split("=")[0].strip().strip("[]\"'").rpartition(".")[2] == key:
            return f"{text} (line {number})"
    return text


def _unknown_key(text: str) -> str:
    return text.partition("unknown field `")[2].partition("`")[0]
