"""Names of models that cannot be: where they were written, what was probably meant, and settings that have one."""

import os
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from treadle.app.config.addresses import bind_base_url, require_bound
from treadle.app.config.edit import set_value
from treadle.app.config.lines import ConfigEntry, dotted, entries
from treadle.app.config.mistakes import command
from treadle.app.config.settings import VARIABLES, Settings
from treadle.app.models.choosing import USUAL_PROVIDERS, Models
from treadle.app.models.known import living_names, usual_ref
from treadle.app.models.said import checked_url
from treadle.app.places import config_file
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


def check_setting(settings: Settings, path: tuple[str, ...]) -> None:
    """Raise `ConfigError` for settings with which no session could start, because of what stands at a path of keys."""
    models = Models(settings)
    if path[0] in ("model", "base_url"):
        require_bound(bind_base_url(settings, settings.model))
    if path[-1] == "base_url":
        said = settings.base_url if len(path) == 1 else settings.providers[path[1]].base_url
        if said:
            checked_url(said)
    for key, ref in _refs(settings):
        touched = (
            key == path[: len(key)] or path == key[: len(path)] or path[:2] == ("providers", ref.partition("/")[0])
        )
        if touched:
            models.spec(ref)
    if path[0] == "providers" and len(path) > 1 and path[1] in settings.providers:
        models.row(path[1])


def save_default(ref: str, thinking: int | None = None) -> str:
    """Make a model the default in the user's settings, and with it how much it thinks; gives what to say of that.

    Raises `ConfigError` and saves nothing that no session could start with.
    """
    saved = set_value("model", ref, check_setting)
    if thinking is not None:
        saved = set_value("thinking_budget", str(thinking), check_setting)
    return f"{ref} is the default now. Saved in {saved.file}.{said_elsewhere('model')}"


def said_elsewhere(key: str) -> str:
    """Say, after a blank, which variable of the environment overrides a setting; empty where none does."""
    name = next((name for name, field in VARIABLES.items() if field == key and os.environ.get(name)), "")
    return f" {name} is set in the environment and overrides the file." if name else ""


def with_place(error: ConfigError, ref: str) -> ConfigError:
    """Say of a model that cannot be chosen where in the user's file it is written, and how to write another."""
    file = config_file()
    try:
        found = next((one for one in entries(file.read_text()) if _names_model(one) and one.value == ref), None)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return error
    if found is None:
        return error
    key = dotted(found.path)
    place = f"{file}, line {found.line}, has {key} = {ref!r}."
    fix = f"{error.fix} Change it with {command('set', key, 'PROVIDER/NAME')}."
    return ConfigError(error.code, error.what, why=f"{error.why} {place}".strip(), fix=fix)


def _names_model(entry: ConfigEntry) -> bool:
    return entry.path in (("model",), ("fallback",)) or (entry.path[0] == "modes" and entry.path[-1] == "model")


def _refs(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give each model that the settings name, with its path of keys."""
    yield from (((name,), ref) for name in ("model", "fallback") if (ref := getattr(settings, name)))
    yield from ((("modes", mode.value, "model"), said.model) for mode, said in settings.modes.items() if said.model)
