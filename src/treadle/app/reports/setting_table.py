"""Every setting with its value, where that comes from, what it is for and what it can be."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from treadle.app.config.edit import key_path
from treadle.app.config.layers import Layer
from treadle.app.config.mistakes import plain_paths, wanted_at
from treadle.app.config.places import config_file
from treadle.app.config.setting_help import help_of
from treadle.app.config.setting_lines import dotted
from treadle.app.reports.origins import setting_lines
from treadle.protocol.base import Record
from treadle.protocol.permissions import Mode

_OLD = ("max_unasked",)


class SettingRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One setting. `text` is its value as `treadle config set` takes it, empty where there is none.

    `own`: it stands in the user's own file. `choices` are all values that it can have, where these are few. Of an
    `address` what may be a secret is left out, so that `text` is not to be saved again.
    """

    key: str
    section: str
    text: str
    origin: str
    about: str
    wanted: str
    choices: tuple[str, ...]
    own: bool
    address: bool


def setting_rows(layers: Sequence[Layer]) -> tuple[SettingRow, ...]:
    """List every setting that has a fixed name, and those of the user's own tables."""
    return tuple(_rows(layers))


def _rows(layers: Sequence[Layer]) -> Iterator[SettingRow]:
    said = {line.key: line for line in setting_lines(layers)}
    paths = [path for path, _ in plain_paths() if path[0] not in _OLD]
    paths += [("modes", mode.value, name) for mode in Mode for name in ("model", "thinking_budget")]
    defaults = dict(plain_paths())
    for path in paths:
        line = said.pop(dotted(path), None)
        if line is None:
            yield _row(path, defaults.get(path), "default")
        else:
            yield _row(path, line.value, line.origin)
    tables = {path[0] for path in paths if len(path) > 1}
    for key, line in said.items():
        if key not in tables and line.value not in ({}, None):
            yield _row(key_path(key), line.value, line.origin)


def _row(path: tuple[str, ...], value: Any, origin: str) -> SettingRow:
    wanted, choices = wanted_at(path)
    return SettingRow(
        key=dotted(path),
        section=path[0] if len(path) > 1 else "",
        text=_text(value),
        origin=origin,
        about=help_of(path),
        wanted=wanted,
        choices=tuple(choices),
        own=origin.startswith(f"{config_file()}:"),
        address=path[-1] in ("base_url", "proxy"),
    )


def _text(value: Any) -> str:
    if value is None or value in ((), []):
        return ""
    plain = msgspec.to_builtins(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
