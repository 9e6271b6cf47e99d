"""Changing one value in the user's file; everything else in it, comments too, stays as it is."""

import tomllib
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treadle.app.config.key_hosts import confirm_host, is_known_host, key_name
from treadle.app.config.layers import parse_file
from treadle.app.config.mistakes import breaks_rule, command, file_mistake, wrong_value
from treadle.app.config.places import config_file, settings_text
from treadle.app.config.sections import ProviderSettings, Settings
from treadle.app.config.setting_lines import dotted, leaves, line_of, nested
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.providers.catalogue import find_provider
from treadle.workspace.files.folder_lock import alone
from treadle.workspace.files.private_file import write_private

_Check = Callable[[Settings, tuple[str, ...]], None]
"""Raises `ConfigError` for settings with which no session could start because of the value at a path."""
_PROVIDERS = "providers"
_PROFILES = "profiles"
_ADDRESS = "base_url"
_CHOOSES_KEY = frozenset({"api_key_env", "token_command"})
_REDIRECTS = frozenset({_ADDRESS, "proxy", "ca_file", "api_key_env", "token_command", "headers"})
_Change = Callable[[MutableMapping[str, Any]], None]


class Saved(Record, frozen=True, kw_only=True):
    """The file that was written, and what is still wrong in it, in another place."""

    file: Path
    left: ConfigError | None = None


def set_value(key: str, text: str, check: _Check) -> Saved:
    """Set a dotted key, such as `modes.plan.model`.

    Raises `ConfigError` and changes nothing then, unless an address was set and could not be confirmed.
    """
    path = key_path(key)
    value = _value(path, text)
    saved = _save(path, lambda document: _put(document, path, value), check)
    if provider := _provider_of(path):
        _confirm(path, provider)
    return saved


def add_to_list(key: str, texts: Sequence[str], check: _Check) -> Saved:
    """Add texts to the list that a dotted key names, those that are not in it; raises as `set_value` does."""
    path = key_path(key)

    def change(document: MutableMapping[str, Any]) -> None:
        found: Any = document
        for name in path:
            found = found.get(name) if isinstance(found, MutableMapping) else None
        if isinstance(found, MutableSequence):
            found.extend(text for text in texts if text not in found)
        else:
            _put(document, path, list(texts))

    return _save(path, change, check)


def redirects(path: tuple[str, ...]) -> bool:
    """Whether a setting says where a key goes, which key, or what else does: whoever sets it means just that."""
    if path[0] == _PROFILES:
        return len(path) < 3 or path[2] != "folders"
    if path[0] != _PROVIDERS:
        return path == (_ADDRESS,)
    return len(path) < 3 or path[2] in _REDIRECTS


def _confirm(path: tuple[str, ...], provider: str) -> None:
    """Note the address that was just set, or the key for one that was, as what somebody on this computer wants."""
    try:
        settings = msgspec.convert(parse_file(config_file()), Settings)
    except msgspec.ValidationError:
        return  # nothing is confirmed by a file with a mistake
    if path[0] == _PROFILES:
        own = settings.profiles.get(path[1])
        if own is not None and own.base_url and path[-1] != "folders":
            confirm_host(provider, own.base_url, f"@{path[1]}")
        return
    said = settings.providers.get(provider, ProviderSettings())
    top = settings.base_url if settings.model.partition("/")[0] == provider else ""
    if path == (_ADDRESS,):
        url = top
    elif path[-1] == _ADDRESS or len(path) == len((_PROVIDERS, provider)):
        url = said.base_url  # not the one at the top, which nobody has set now
    elif path[-1] in _CHOOSES_KEY and is_known_host(provider, top or said.base_url):
        url = top or said.base_url
    else:
        return
    if url:
        confirm_host(provider, url, key_name(said))


def _provider_of(path: tuple[str, ...]) -> str:
    """Name the provider that a key is about; empty for none. The address at the top level is that of the model's."""
    if path == (_ADDRESS,):
        return str(parse_file(config_file()).get("model", "")).strip().partition("/")[0]
    if path[0] == _PROFILES and len(path) > 1:
        own = parse_file(config_file()).get(_PROFILES, {}).get(path[1], {})
        return find_provider(model.partition("/")[0]).name if (model := str(own.get("model", ""))) else ""
    return path[1] if path[0] == _PROVIDERS and len(path) > 1 else ""


def unset_value(key: str, check: _Check) -> Saved:
    """Remove a dotted key, or a whole table. Raises `ConfigError` where it is not there, and changes nothing then."""
    path = key_path(key)
    return _save(path, lambda document: _remove(document, path), check)


def key_path(key: str) -> tuple[str, ...]:
    """Split a dotted key; raises `ConfigError`."""
    try:
        ((path, _),) = leaves(tomllib.loads(f"{key} = 0"))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ConfigError(
            "config-key",
            f"{key!r} is not a setting.",
            why="A setting's key is one name, or several with dots between them.",
            fix="Write it like modes.plan.model, with quotes around names that have dots or slashes.",
        ) from error
    return path


def _save(path: tuple[str, ...], change: _Change, check: _Check) -> Saved:
    """Write the file if the change is sound; a mistake that was there before, elsewhere, does not prevent that."""
    file = config_file()
    try:
        with alone(file.parent):
            return _write(file, path, change, check)
    except OSError as error:
        raise ConfigError(
            "config-unwritable",
            f"The settings file {file} cannot be written.",
            why=str(error),
            fix=f"Correct the permissions of {file.parent}, or free space on its disk. Nothing was changed.",
        ) from error


def _write(file: Path, path: tuple[str, ...], change: _Change, check: _Check) -> Saved:
    import tomlkit

    broken = _mistake(file, parse_file(file)) is not None
    document = tomlkit.parse(settings_text(file) if file.exists() else "")
    change(document)
    text = tomlkit.dumps(document)
    values = tomllib.loads(text)
    left = _mistake(file, values, text)
    if left is None:
        check(msgspec.convert(values, Settings), path)
    elif not broken:
        raise left
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    write_private(file, text.encode(), mode=mode)
    return Saved(file=file, left=left)


def _mistake(file: Path, values: Any, text: str | None = None) -> ConfigError | None:
    try:
        msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        return file_mistake(file, settings_text(file) if text is None else text, str(error))
    return None


def _put(document: MutableMapping[str, Any], path: tuple[str, ...], value: Any) -> None:
    import tomlkit

    table = document
    for depth, name in enumerate(path[:-1], start=1):
        table = table.setdefault(name, tomlkit.table())
        if not isinstance(table, MutableMapping):
            raise _no_table(path[:depth])
    table[path[-1]] = value


def _remove(document: MutableMapping[str, Any], path: tuple[str, ...]) -> None:
    """Remove a value, and the tables that are empty without it and hold no comment."""
    tables = [document]
    for name in path[:-1]:
        inner = tables[-1].get(name)
        if not isinstance(inner, MutableMapping):
            raise _not_set(path)
        tables.append(inner)
    if path[-1] not in tables[-1]:
        raise _not_set(path)
    del tables[-1][path[-1]]
    for table, name in zip(reversed(tables[:-1]), reversed(path[:-1]), strict=True):
        if table[name] or _has_comment(table[name]):
            return
        del table[name]


def _has_comment(table: Any) -> bool:
    return "#" in table.as_string() or bool(table.trivia.comment)


def _not_set(path: Sequence[str]) -> ConfigError:
    return ConfigError(
        "config-unset",
        f"{dotted(path)} is not set in {config_file()}.",
        why="There is nothing to remove.",
        fix="`treadle config` shows each setting and where it comes from.",
    )


def _no_table(path: Sequence[str]) -> ConfigError:
    file, key = config_file(), dotted(path)
    return ConfigError(
        "config-value",
        f"A setting from {file}, line {line_of(settings_text(file), path[0])}, is wrong.",
        why=f"{key} must be a table, but it is a value.",
        fix=f"Remove it first with {command('unset', key)}.",
    )


def _value(path: tuple[str, ...], text: str) -> Any:
    """Read the value as the setting wants it: as text, or else as TOML would."""
    said = ""
    for value in _readings(text):
        try:
            msgspec.convert(nested(path, value), Settings)
        except msgspec.ValidationError as error:
            said = str(error) if breaks_rule(str(error)) else said or str(error)
        else:
            return value
    raise wrong_value("the command line", path, text, said, way="Nothing was saved.")


def _readings(text: str) -> Iterator[Any]:
    """Give what a text can mean: itself, or what TOML reads; of a string in quotes they are no part."""
    try:
        read = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        yield text
        return
    yield from (read,) if isinstance(read, str) else (text, read)
