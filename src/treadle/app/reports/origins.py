"""Which layer each setting comes from, for a person to read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from treadle.app.config.layers import Layer, overlay
from treadle.app.config.places import settings_text
from treadle.app.config.sections import Settings
from treadle.app.config.setting_lines import dotted, entries, leaves
from treadle.app.models.model_rows import without_secrets
from treadle.protocol.base import Record

_HIDDEN = "(hidden)"


class SettingLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One value that counts, under its dotted key, and its place: a layer, with file and line where it is one."""

    key: str
    value: Any
    origin: str


def setting_lines(layers: Sequence[Layer]) -> Iterator[SettingLine]:
    """Give each value that counts; header values are hidden, and so are passwords in addresses."""
    defaults = {name: getattr(Settings(), name) for name in Settings.__struct_fields__}
    values = {name: value for name, value in defaults.items() if not isinstance(value, Mapping)}
    places: dict[tuple[str, ...], str] = {}
    for layer in layers:
        values = overlay(values, layer.values)
        places.update(_places(layer))
    for path, value in sorted(leaves(values), key=lambda leaf: leaf[0]):
        if value != {} and (path != ("max_unasked",) or value is not None):
            yield SettingLine(key=dotted(path), value=_shown(path, value), origin=places.get(path, "default"))


def _places(layer: Layer) -> Mapping[tuple[str, ...], str]:
    if layer.file is None or not layer.values:
        return {path: layer.origin for path, _ in leaves(layer.values)}
    return {entry.path: f"{layer.file}:{entry.line}" for entry in entries(settings_text(layer.file))}


def _shown(path: Sequence[str], value: Any) -> Any:
    if "headers" in path:
        return _HIDDEN
    if path[-1] in ("base_url", "proxy") and value:
        return without_secrets(str(value))
    return value
