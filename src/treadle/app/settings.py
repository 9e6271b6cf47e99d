"""What a user can set, and the layers it comes from: defaults, user, workspace, environment, command line."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from treadle.app.places import config_file
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]


class ProviderSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a provider. `api_key_env` names the variable that holds the key. Timeouts are seconds."""

    base_url: str = ""
    wire_api: str = ""
    api_key_env: str = ""
    headers: Mapping[str, str] = {}
    proxy: str = ""
    ca_file: str = ""
    connect_timeout: Seconds | None = None
    first_byte_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None


class ModelSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a model, over what the catalogue knows. Prices are US dollars for a million tokens."""

    context_window: Tokens | None = None
    max_output: Tokens | None = None
    input_price: Dollars | None = None
    output_price: Dollars | None = None
    tool_protocol: ToolProtocol | None = None


class ModeSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs in one mode; what is not said here is as elsewhere. A thinking budget of 0 turns thinking off."""

    model: str = ""
    thinking_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Settings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a user can set. An empty `model` means: take the first provider that has a key."""

    model: str = ""
    base_url: str = ""
    mode: Mode = Mode.ASK
    tool_protocol: ToolProtocol | None = None
    max_steps: Tokens | None = None
    thinking_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None
    modes: Mapping[Mode, ModeSettings] = {}
    providers: Mapping[str, ProviderSettings] = {}
    models: Mapping[str, ModelSettings] = {}

    def in_mode(self, mode: Mode) -> ModeSettings:
        """Give the model and thinking budget that count in a mode."""
        said = self.modes.get(mode, ModeSettings())
        return ModeSettings(
            model=said.model or self.model,
            thinking_budget=self.thinking_budget if said.thinking_budget is None else said.thinking_budget,
        )


class Layer(Record, frozen=True, kw_only=True):
    """One source of settings as it came: nested values, and the file they were read from, if any."""

    origin: str
    values: Mapping[str, Any]
    file: Path | None = None


WORKSPACE_FILE = Path(".treadle") / "config.toml"
VARIABLES = {
    "TREADLE_MODEL": "model",
    "TREADLE_BASE_URL": "base_url",
    "TREADLE_MODE": "mode",
    "TREADLE_TOOL_PROTOCOL": "tool_protocol",
    "TREADLE_MAX_STEPS": "max_steps",
    "TREADLE_THINKING_BUDGET": "thinking_budget",
}
"""Environment variables and the settings that they give."""

_USERS_OWN = {
    "base_url": "An address decides who reads your files and your key.",
    "providers": "Addresses, headers and key variables decide who reads your files and your key.",
}
"""What a workspace may not set, and why."""


def load_settings(
    flags: Mapping[str, Any], file: Path | None = None, *, workspace: Path | None = None, trusted: bool = False
) -> Settings:
    """Put the layers together. `flags` holds only what was given; raises `ConfigError` with the place of a mistake.

    The file of `workspace` is read only if the workspace is `trusted`.
    """
    return merge(read_layers(flags, file, workspace=workspace, trusted=trusted))


def read_layers(
    flags: Mapping[str, Any], file: Path | None = None, *, workspace: Path | None = None, trusted: bool = False
) -> tuple[Layer, ...]:
    """Read and check each layer, the weakest first; raises `ConfigError`."""
    user = _read_file(config_file() if file is None else file)
    layers = [user]
    if workspace is not None and trusted:
        layers.append(_read_workspace(workspace / WORKSPACE_FILE, merge(layers).mode))
    layers += [Layer(origin=name, values=_from_variable(name)) for name in VARIABLES if os.environ.get(name)]
    layers.append(Layer(origin="the command line", values=flags))
    check(flags, "the command line")
    return tuple(layers)


def merge(layers: Sequence[Layer]) -> Settings:
    """Let the last layer that speaks win, value by value."""
    values: dict[str, Any] = {}
    for layer in layers:
        values = overlay(values, layer.values)
    return msgspec.convert(values, Settings)


def overlay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Put values over others; a model or budget said plainly above also counts over those of single modes below."""
    plain = above.keys() & ModeSettings.__struct_fields__
    modes = below.get("modes")
    if plain and modes:
        kept = {mode: {key: one for key, one in said.items() if key not in plain} for mode, said in modes.items()}
        below = {**below, "modes": kept}
    return _deep(below, above)


def _deep(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _deep(under, value) if isinstance(value, dict) and isinstance(under, dict) else value
    return merged


def check(values: Mapping[str, Any], origin: str) -> None:
    """Raise `ConfigError` when values are no settings."""
    try:
        msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise wrong_value(origin, str(error)) from error


def wrong_value(origin: str, why: str) -> ConfigError:
    """Make the error of a value that cannot be; `origin` names its place."""
    fix = "docs/configuration.md lists the settings; `treadle config` shows those that count."
    if "key`" in why:
        fix = "Keys do not belong into this file: store one with `treadle login PROVIDER`."
    return ConfigError("config-value", f"A setting from {origin} is wrong.", why=why, fix=fix)


def _from_variable(name: str) -> Mapping[str, Any]:
    field = VARIABLES[name]
    try:
        settings = msgspec.convert({field: os.environ[name]}, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise wrong_value(f"the environment variable {name}", str(error)) from error
    return {field: getattr(settings, field)}


def _read_file(file: Path) -> Layer:
    values = _parse(file)
    try:
        msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        from treadle.app.config_lines import first_wrong_line

        line, why = first_wrong_line(file.read_text(), Settings) or (0, str(error))
        raise wrong_value(f"{file}, line {line}," if line else str(file), why) from error
    return Layer(origin=str(file), values=values, file=file)


def _parse(file: Path) -> dict[str, Any]:
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
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "config-syntax",
            f"The settings file {file} is not valid TOML.",
            why=str(error),
            fix="Mend that line, or move the file away to start with the defaults.",
        ) from error


def _read_workspace(file: Path, users_mode: Mode) -> Layer:
    """Read what a repository sets: never where requests go, and never more than the user lets run without asking."""
    layer = _read_file(file)
    modes = list(Mode)
    mode = Mode(layer.values.get("mode", users_mode))
    if modes.index(mode) > modes.index(users_mode):
        raise _not_here(file, "mode", f"{mode} lets more run without asking than your own {users_mode}.")
    for key, why in _USERS_OWN.items():
        if key in layer.values:
            raise _not_here(file, key, why)
    return layer


def _not_here(file: Path, key: str, why: str) -> ConfigError:
    from treadle.app.config_lines import line_of

    place = f"{file}, line {line_of(file.read_text(), key)}"
    fix = f"Remove it there; if you want it, set it in your own file: {config_file()}."
    return ConfigError("config-workspace", f"{place}: a workspace may not set {key}.", why=why, fix=fix)
