"""What a user can set, and the layers it comes from: defaults, user, workspace, environment, command line."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.config.places import config_file, settings_text
from treadle.app.config.sections import BudgetSettings, ModeSettings, Settings
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode


class Layer(Record, frozen=True, kw_only=True):
    """One source of settings as it came: nested values, and the file they were read from, if any.

    `of_workspace` says that the values came with the files of a project, not from the user.
    """

    origin: str
    values: Mapping[str, Any]
    file: Path | None = None
    of_workspace: bool = False


WORKSPACE_FILE = Path(".treadle") / "config.toml"
VARIABLES = {
    "TREADLE_MODEL": "model",
    "TREADLE_BASE_URL": "base_url",
    "TREADLE_PROFILE": "profile",
    "TREADLE_MODE": "mode",
    "TREADLE_TOOL_PROTOCOL": "tool_protocol",
    "TREADLE_MAX_STEPS": "max_steps",
    "TREADLE_MAX_RETRIES": "max_retries",
    "TREADLE_THINKING_BUDGET": "thinking_budget",
    "TREADLE_SCREEN_READER": "screen_reader",
}
"""Environment variables and the settings that they give."""

_USERS_OWN = {
    "animation": "It is about your terminal, not about the project.",
    "add_dirs": "Only the user decides which folders may be read and changed.",
    "approve": "Only the user decides what runs without asking.",
    "base_url": "An address decides who gets your files and your key.",
    "disable_all_hooks": "A folder cannot turn your own hooks off.",
    "editing": "Only you decide which keys you use.",
    "hooks_from": "Only you decide whose hooks run.",
    "keys": "Only you decide which keys you use.",
    "instructions": "They are your own words to every model; a project has rules files for that.",
    "language": "Only you decide in which language you are written to.",
    "pass_variables": "Only you decide what commands see of your environment.",
    "network.allow": "Only you decide which hosts commands reach. With network.needs they are asked about together.",
    "network.loopback_ports": "Only you decide which servers of your machine commands reach.",
    "links": "It is about your terminal, not about the project.",
    "profile": "Only you decide which of your keys is used.",
    "profiles": "Only you decide which of your keys is used.",
    "providers": "Addresses, headers and key variables decide who gets your files and your key.",
    "try_first": "Only the user decides whether commands are tried in a throw-away copy.",
    "gpu": "Only you decide which devices of your machine commands get.",
    "sandbox": "Only the user decides whether commands need a sandbox.",
    "screen_reader": "Only you decide how Treadle is shown to you.",
    "status_line": "Only you decide which programs run by themselves.",
    "theme": "It is about your terminal, not about the project.",
    "wait_for_reset": "Only you decide whether a session waits for hours.",
    "web_search": "A search costs money and sends parts of your text to a search service.",
}
"""What a workspace may not set, and why."""


def load_settings(
    flags: Mapping[str, Any], file: Path | None = None, *, workspace: Path | None = None, trusted: bool = False
) -> Settings:
    """Put the layers together. `flags` holds only what was given; raises `ConfigError` with the place of a mistake.

    The file of `workspace` is read only if the workspace is `trusted`. The top-level base URL becomes the address of
    the provider that the user's own model names; the model of a workspace does not say whose it is.
    """
    layers = read_layers(flags, file, workspace=workspace, trusted=trusted)
    settings = merge_layers(layers)
    if settings.profiles:
        settings = _in_profile(settings, layers, workspace)
    if settings.base_url:
        from treadle.app.config.addresses import bind_base_url, require_bound

        profile = settings.profiles.get(settings.profile)
        of_profile = profile is not None and profile.model == settings.model
        own = merge_layers([layer for layer in layers if not layer.of_workspace]).model
        settings = bind_base_url(settings, settings.model if of_profile else own)
        if settings.model:
            require_bound(settings)
    return settings


def _in_profile(settings: Settings, layers: Sequence[Layer], workspace: Path | None) -> Settings:
    """Settle the profile: what was said for this run, else the one of the nearest folder, else the user's own.

    Its model counts unless this run names another, and so does its address.
    """
    said = {key for layer in layers if layer.file is None for key, value in layer.values.items() if value}
    name = settings.profile
    if "profile" not in said and workspace is not None:
        name = _profile_of_folder(settings, workspace) or name
    own = settings.profiles.get(name)
    if own is not None and own.base_url and not own.model:
        raise ConfigError(
            "base-url-alone",
            f"The profile {name} has a base URL and no model.",
            why="It is the address of one provider only, which model of the profile names.",
            fix=f"Set it: treadle config set profiles.{name}.model PROVIDER/NAME",
        )
    model = settings.model if own is None or not own.model or "model" in said else own.model
    profiles = settings.profiles
    if own is not None and "base_url" in said and _provider(model) == _provider(own.model):
        profiles = {**profiles, name: msgspec.structs.replace(own, base_url=settings.base_url)}
    return msgspec.structs.replace(settings, profile=name, model=model, profiles=profiles)


def _provider(ref: str) -> str:
    return ref.partition("/")[0].partition("@")[0]


def _profile_of_folder(settings: Settings, workspace: Path) -> str:
    folder, found = workspace.expanduser().resolve(), [(0, "")]
    for name, own in settings.profiles.items():
        for one in own.folders:
            around = Path(one).expanduser().resolve()
            if folder.is_relative_to(around):
                found.append((len(around.parts), name))
    return max(found)[1]


def read_layers(
    flags: Mapping[str, Any], file: Path | None = None, *, workspace: Path | None = None, trusted: bool = False
) -> tuple[Layer, ...]:
    """Read and check each layer, the weakest first; raises `ConfigError`."""
    user = _read_file(config_file() if file is None else file)
    layers = [user]
    if workspace is not None and trusted:
        layers.append(_read_workspace(workspace / WORKSPACE_FILE, merge_layers(layers)))
    layers += [Layer(origin=name, values=_from_variable(name)) for name in VARIABLES if os.environ.get(name)]
    layers.append(Layer(origin="the command line", values=flags))
    check(flags, "the command line")
    return tuple(layers)


def merge_layers(layers: Sequence[Layer]) -> Settings:
    """Let the last layer that speaks win, value by value."""
    values: dict[str, Any] = {}
    for layer in layers:
        values = overlay(values, layer.values)
    if "hooks" in values:
        from treadle.app.config.hook_settings import all_hooks

        values["hooks"] = all_hooks((one.origin, one.values, one.of_workspace) for one in layers)
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
        from treadle.app.config.mistakes import first_mistake

        raise first_mistake(values, origin, str(error)) from error


def _from_variable(name: str) -> Mapping[str, Any]:
    field = VARIABLES[name]
    try:
        settings = msgspec.convert({field: os.environ[name]}, Settings, strict=False)
    except msgspec.ValidationError as error:
        from treadle.app.config.mistakes import wrong_value

        way = f"Set {name} to another value, or unset it."
        raise wrong_value(
            f"the environment variable {name}", (field,), os.environ[name], str(error), way=way
        ) from error
    return {field: getattr(settings, field)}


def _read_file(file: Path) -> Layer:
    values = parse_file(file)
    try:
        msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        from treadle.app.config.mistakes import file_mistake

        raise file_mistake(file, settings_text(file), str(error)) from error
    return Layer(origin=str(file), values=values, file=file)


def parse_file(file: Path) -> dict[str, Any]:
    """Read a file as TOML, nothing where there is none; raises `ConfigError` with the line of a mistake."""
    try:
        text = settings_text(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            "config-unreadable",
            f"The settings file {file} cannot be read.",
            why=str(error),
            fix="Correct its permissions or encoding (UTF-8), or move it away to start with the defaults.",
        ) from error
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "config-syntax",
            f"The settings file {file} is not valid TOML.",
            why=str(error),
            fix=f"Correct that line in {file}, or move the file away to start with the defaults.",
        ) from error


def _read_workspace(file: Path, users: Settings) -> Layer:
    """Read what a repository sets: never where requests go, and never more than the user lets run or lets be spent."""
    layer = _read_file(file)
    for key, why in _USERS_OWN.items():
        table, _, name = key.rpartition(".")
        if name in (layer.values.get(table, {}) if table else layer.values):
            raise _not_here(file, key, why)
    # What the budget does not say of itself is as the user has it, here and when the layers are put together.
    budget = _deep(msgspec.to_builtins(users.budget), layer.values.get("budget", {}))
    wanted = msgspec.convert({**layer.values, "budget": budget}, Settings)
    modes = list(Mode)
    if "mode" in layer.values and modes.index(wanted.mode) > modes.index(users.mode):
        raise _not_here(file, "mode", f"{wanted.mode} lets more run without asking than your own {users.mode}.")
    if key := next((key for key, ref in _models_of(layer.values) if "@" in ref.partition("/")[0]), ""):
        raise _not_here(file, key, _USERS_OWN["profile"])
    _require_no_more(file, layer.values, wanted, users)
    values = layer.values
    if "network" in values:  # a project adds to what you deny, and lifts none of it
        of_both = {
            name: [*getattr(users.network, name), *values["network"].get(name, ())] for name in ("deny", "needs")
        }
        values = {**values, "network": of_both}
    return msgspec.structs.replace(layer, values=values, of_workspace=True)


def _require_no_more(file: Path, values: Mapping[str, Any], wanted: Settings, users: Settings) -> None:
    """Raise `ConfigError` where a repository wants more than the user allows, or says what something costs."""
    for key, most, value in _limits(wanted, users):
        if key in values and most is not None and value is not None and value > most:
            raise _not_here(file, key, f"{value:,} is more than your own {most:,}.")
    for ref, said in wanted.models.items():
        if said.input_price is not None or said.output_price is not None:
            raise _not_here(file, "models", f"Prices decide what cost is shown to you for {ref}.")


def _models_of(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give each model that a file names, with its key."""
    yield from ((key, values[key]) for key in ("model", "fallback") if key in values)
    yield from (("modes", said["model"]) for said in values.get("modes", {}).values() if "model" in said)


def _limits(wanted: Settings, users: Settings) -> Iterator[tuple[str, float | None, float | None]]:
    """Give each limit's key, what the user allows, and what the workspace wants; None is not said."""
    for name in ("max_steps", "max_seconds", "max_auto_approved", "max_retries"):
        yield name, getattr(users, name), getattr(wanted, name)
    yield "max_unasked", users.max_auto_approved, wanted.max_unasked
    for name in BudgetSettings.__struct_fields__:
        yield "budget", getattr(users.budget, name), getattr(wanted.budget, name)
    for mode in Mode:
        most = users.in_mode(mode).thinking_budget
        yield "thinking_budget", most, wanted.thinking_budget
        yield "modes", most, wanted.modes.get(mode, ModeSettings()).thinking_budget


def _not_here(file: Path, key: str, why: str) -> ConfigError:
    from treadle.app.config.setting_lines import line_of

    place = f"{file}, line {line_of(settings_text(file), key)}"
    fix = f"Remove it there; if you want it, set it in your own file: {config_file()}."
    return ConfigError("config-workspace", f"{place}: a workspace may not set {key}.", why=why, fix=fix)
