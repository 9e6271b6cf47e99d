"""Names of models that cannot be: where they were written, what was probably meant, and settings that have one."""

import os
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from treadle.app.config.layers import VARIABLES
from treadle.app.config.mistakes import command
from treadle.app.config.places import config_file, settings_text
from treadle.app.config.sections import Settings
from treadle.app.config.setting_lines import ConfigEntry, dotted, entries
from treadle.app.models.known import USUAL_PROVIDERS, living_names, usual_ref
from treadle.protocol.errors import ConfigError
from treadle.providers.catalogue import find_provider

_NEAREST = 3


def nearest_refs(text: str) -> Sequence[str]:
    """Give the names, `provider/model`, that were probably meant: of the usual providers, their usual models first."""
    text = text.strip().lower()
    rows = [find_provider(name) for name in USUAL_PROVIDERS]
    usual = [ref for row in rows if (ref := usual_ref(row))]
    known = [f"{row.name}/{name}" for row in rows for name in living_names(row)]
    same = [ref for ref in known if ref.partition("/")[2].lower() == text]
    holding = sorted((ref for ref in known if text in ref.partition("/")[2].lower()), key=len)
    close = get_close_matches(text, [ref.partition("/")[2] for ref in known], n=_NEAREST)
    alike = [ref for name in close for ref in known if ref.partition("/")[2] == name]
    found = [*same, *(ref for ref in usual if text in ref), *holding, *alike] if text else usual
    return list(dict.fromkeys(found))[:_NEAREST]


def said_elsewhere(key: str) -> str:
    """Say, after a blank, which variable of the environment overrides a setting; empty where none does."""
    name = next((name for name, field in VARIABLES.items() if field == key and os.environ.get(name)), "")
    return f" {name} is set in the environment and overrides the file." if name else ""


def with_place(error: ConfigError, ref: str) -> ConfigError:
    """Say of a model that cannot be chosen where in the user's file it is written, and how to write another."""
    file = config_file()
    try:
        found = next((one for one in entries(settings_text(file)) if _names_model(one) and one.value == ref), None)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return error
    if found is None:
        return error
    key = dotted(found.path)
    place = f"{file}, line {found.line}, has {key} = {ref!r}."
    fix = f"{error.fix} Change it with {command('set', key, 'PROVIDER/NAME')}."
    return ConfigError(error.code, error.what, why=f"{error.why} {place}".strip(), fix=fix)


def _names_model(entry: ConfigEntry) -> bool:
    return entry.path in (("model",), ("fallback",)) or (
        entry.path[0] in ("modes", "profiles") and entry.path[-1] == "model"
    )


def named_models(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give each model that the settings name, with its path of keys."""
    yield from (((name,), ref) for name in ("model", "fallback") if (ref := getattr(settings, name)))
    yield from ((("profiles", name, "model"), own.model) for name, own in settings.profiles.items() if own.model)
    yield from ((("modes", mode.value, "model"), said.model) for mode, said in settings.modes.items() if said.model)
