"""Where in a TOML file each value stands; read only when a mistake or an origin is to be told."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from io import StringIO
from typing import Any

import msgspec

from treadle.protocol.base import Record

_HOOKS = "hooks"


class ConfigEntry(Record, frozen=True, kw_only=True):
    """One value of a file: its path of keys, and the line (from 1) where its statement begins."""

    path: tuple[str, ...]
    value: Any
    line: int


def entries(text: str) -> Iterator[ConfigEntry]:
    """Give the values of a valid TOML text in the order of its lines: one for each value of an inline table.

    A header gives an empty table, so that a wrong name in it has its line too.
    """
    table: tuple[str, ...] = ()
    for line, statement in _statements(text):
        if _is_header(statement):
            table = _path(tomllib.loads(statement))
            yield ConfigEntry(path=table, value={}, line=line)
            continue
        yield from (ConfigEntry(path=table + path, value=value, line=line) for path, value in _leaves(statement))


def first_wrong(text: str, settings: type) -> tuple[ConfigEntry, str] | None:
    """Find the first value that cannot be converted by itself, and what the decoder says of it.

    Hooks are lists of tables: these are looked at together, and after the rest.
    """
    found = list(entries(text))
    together = [
        ConfigEntry(path=(_HOOKS,), value=tomllib.loads(text)[_HOOKS], line=entry.line)
        for entry in found
        if entry.path[0] == _HOOKS
    ]
    for entry in (*(entry for entry in found if entry.path[0] != _HOOKS), *together[:1]):
        try:
            msgspec.convert(nested(entry.path, entry.value), settings)
        except msgspec.ValidationError as error:
            return entry, str(error)
    return None


def line_of(text: str, key: str) -> int:
    """Find the first line that sets a top-level key, or something in its table; 0 where none does."""
    return next((entry.line for entry in entries(text) if entry.path[0] == key), 0)


def dotted(path: Sequence[str]) -> str:
    """Write a path of keys as TOML does."""
    return ".".join(
        key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else f'"{key}"' for key in path
    )


def nested(path: tuple[str, ...], value: Any) -> Any:
    """Put a value under its path of keys."""
    return reduce(lambda inner, key: {key: inner}, reversed(path), value)


def leaves(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give each value of nested tables with its path; an empty table is a value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Give each header and each assignment with its line: as many lines as TOML itself needs to read it."""
    start, gathered = 0, ""
    for number, line in enumerate(StringIO(text), start=1):
        if not gathered:
            start = number
            if not line.strip() or line.lstrip().startswith("#"):
                continue
        gathered += line
        try:
            tomllib.loads(gathered)
        except tomllib.TOMLDecodeError:
            continue
        yield start, gathered
        gathered = ""


def _is_header(statement: str) -> bool:
    return statement.lstrip().startswith("[")


def _path(table: Any) -> tuple[str, ...]:
    path: tuple[str, ...] = ()
    while table:
        if isinstance(table, list):
            table = table[0]
        else:
            ((key, table),) = table.items()
            path += (key,)
    return path


def _leaves(statement: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield from leaves(tomllib.loads(statement))
