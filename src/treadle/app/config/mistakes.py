"""What is wrong with a setting, in plain words: the key, what it may be, and the nearest name."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from treadle.app.config.places import config_file
from treadle.app.config.sections import Settings
from treadle.app.config.setting_lines import dotted, first_wrong, leaves, nested
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError

_LONGEST_SHOWN = 60
_PRIVATE = ("headers", "proxy", "base_url", "options", "settings")
"""Settings whose values may hold a secret."""


class Mistake(Record, frozen=True, kw_only=True):
    """Why a value cannot be, and what helps, as sentences; `key` is its dotted name."""

    key: str
    why: str
    fix: str


_IN_GROUPS = 1_000_000
"""From where on a number is written in groups of three digits, which ports are not."""


def breaks_rule(said: str) -> bool:
    """Whether what the decoder says is a rule of a setting's own, in our words, and not that its type is another."""
    return not said.startswith(("Expected ", "Invalid ", "Object "))


def explain_mistake(path: Sequence[str], value: Any, settings: type, said: str) -> Mistake:
    """Say what is wrong with a value at a path of keys; `said` is what the decoder says of it."""
    key = dotted(path)
    if breaks_rule(said):
        return Mistake(key=key, why=f"{said.partition(' - at `$')[0]}.", fix="")
    node = _at(path, settings)
    if isinstance(node, Mistake):
        return node
    shown = "" if set(_PRIVATE) & set(path) else f" {_shown(value)}"
    why = f"{key} cannot be{shown or ' this'}. It must be {_wanted(node)}."
    return Mistake(key=key, why=why, fix=_nearest(str(value), node))


def first_mistake(values: Mapping[str, Any], origin: str, said: str) -> ConfigError:
    """Make the error of the first value that cannot be."""
    for path, value in leaves(values):
        try:
            msgspec.convert(nested(path, value), Settings)
        except msgspec.ValidationError as error:
            return wrong_value(origin, path, value, str(error))
    return wrong_value(origin, (), None, said)


def wrong_value(origin: str, path: Sequence[str], value: Any, said: str, *, way: str = "") -> ConfigError:
    """Make the error of a value that cannot be; `origin` names its place, and `way` says how it is corrected there."""
    mistake = explain_mistake(path, value, Settings, said)
    what = f"A setting from {origin} is wrong."
    way = way or "docs/configuration.md lists the settings."
    return ConfigError("config-value", what, why=mistake.why, fix=f"{mistake.fix} {way}".strip())


def file_mistake(file: Path, text: str, said: str) -> ConfigError:
    """Make the error of a file whose text is TOML but no settings."""
    found = first_wrong(text, Settings)
    if found is None:
        return wrong_value(str(file), (), None, said, way="Correct it there.")
    entry, why = found
    remove = f", or remove it with {command('unset', dotted(entry.path))}" if file == config_file() else ""
    way = f"Correct it there{remove}."
    return wrong_value(f"{file}, line {entry.line},", entry.path, entry.value, why, way=way)


def require_key(path: Sequence[str], settings: type) -> None:
    """Raise `ConfigError` where the settings have no such key."""
    found = _at(path, settings)
    if isinstance(found, Mistake):
        raise ConfigError("config-key", f"{found.key!r} is not a setting.", why=found.why, fix=found.fix)


def _at(path: Sequence[str], settings: type) -> "inspect.Type | Mistake":
    """Find what is wanted at a path of keys, or what is wrong with the path."""
    node: inspect.Type = inspect.type_info(settings)
    for depth, name in enumerate(path):
        names, key = _names(node), dotted(path)
        if names is not None and name not in names:
            return Mistake(key=key, why=f"There is no setting {key}.", fix=_other_name(path, depth, names))
        inner = _inner(node, name)
        if inner is None:
            above = dotted(path[:depth])
            return Mistake(key=key, why=f"{above} has no settings of its own: it is {_wanted(node)}.", fix="")
        node = _without_none(inner)
    return node


def command(verb: str, key: str, value: str = "") -> str:
    """Write the command that changes a setting."""
    return " ".join(filter(None, ("`treadle config", verb, shlex.quote(key), value))) + "`"


def _names(node: inspect.Type) -> Sequence[str] | None:
    """Name what a table can hold; None where it is no table, or any name will do."""
    match node:
        case inspect.StructType(fields=fields):
            return [field.encode_name for field in fields]
        case inspect.DictType(key_type=inspect.EnumType() as kind):
            return _members(kind)
        case _:
            return None


def _inner(node: inspect.Type, name: str) -> inspect.Type | None:
    match node:
        case inspect.StructType(fields=fields):
            return next(field.type for field in fields if field.encode_name == name)
        case inspect.DictType(value_type=inner):
            return inner
        case inspect.AnyType():
            return node
        case _:
            return None


def _without_none(node: inspect.Type) -> inspect.Type:
    if isinstance(node, inspect.UnionType):
        return next(one for one in node.types if not isinstance(one, inspect.NoneType))
    return node


def _members(node: inspect.Type) -> Sequence[str]:
    match node:
        case inspect.EnumType(cls=kind):
            return [str(one.value) for one in kind]
        case inspect.LiteralType(values=values):
            return [str(one) for one in values]
        case inspect.VarTupleType(item_type=item):
            return _members(item)
        case _:
            return ()


def _wanted(node: inspect.Type) -> str:
    match node:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            return f"a {'whole ' if isinstance(node, inspect.IntType) else ''}number{_range(node)}"
        case inspect.EnumType() | inspect.LiteralType():
            return f"one of: {', '.join(_members(node))}"
        case inspect.VarTupleType(item_type=inspect.IntType() as item):
            return f"a list of whole numbers, each{_range(item)}"
        case inspect.VarTupleType():
            members = _members(node)
            return f"a list of: {', '.join(members)}" if members else 'a list of strings, such as ["…", "…"]'
        case inspect.StructType() | inspect.DictType():
            names = _names(node)
            return "a table" + (f" with: {', '.join(names)}" if names else "")
        case _:
            return "a string in quotes"


def _range(node: inspect.IntType | inspect.FloatType) -> str:
    least = f" from {node.ge}" if node.ge is not None else f" above {node.gt}" if node.gt is not None else ""
    if node.le is None:
        return least
    return f"{least} to {node.le:,}" if node.le >= _IN_GROUPS else f"{least} to {node.le}"


def _other_name(path: Sequence[str], depth: int, names: Sequence[str]) -> str:
    above, name, below = path[:depth], path[depth], path[depth + 1 :]
    if name.endswith("key"):
        return "Keys do not belong in this file. Store one with `treadle login PROVIDER`."
    close = sorted(get_close_matches(name, names, n=3), key=lambda one: sorted(one) != sorted(name))
    close = close[:2] or [one for one in names if name in one.split("_")][:2]
    near = [dotted((*above, one, *below)) for one in close]
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"{f'Under {dotted(above)} there are' if above else 'The settings are'}: {', '.join(names)}."


def _nearest(text: str, node: inspect.Type) -> str:
    near = get_close_matches(text.lower(), _members(node), n=1)
    if not near:
        return ""
    return f"""Write it as '["{near[0]}"]'.""" if isinstance(node, inspect.VarTupleType) else f"Did you mean {near[0]}?"


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, Mapping) else "a table"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def wanted_at(path: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Say what a setting at a path of keys can be: in words, and its values where these are few."""
    node = _at(path, Settings)
    if isinstance(node, Mistake):
        return "", ()
    choices = ("true", "false") if isinstance(node, inspect.BoolType) else _members(node)
    return _wanted(node), () if isinstance(node, inspect.VarTupleType) else choices


def plain_paths(settings: type = Settings) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give the path of each setting that is in no table with names of the user's own, and its default."""
    for field in inspect.type_info(settings).fields:  # type: ignore[attr-defined]
        match field.type:
            case inspect.StructType(cls=inner):
                yield from (((field.encode_name, *path), default) for path, default in plain_paths(inner))
            case inspect.DictType():
                continue
            case _:
                yield (field.encode_name,), field.default
